"""What a report shows beyond what its document says itself: all that takes working out, done once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moot.graph.documents import DebateDocument, as_far_as_it_goes
from moot.graph.documents.document import PropositionStanding
from moot.graph.documents.reading import shown_config
from moot.graph.reports.cast import People
from moot.graph.reports.positions import DebaterPosition, contested, read_standings
from moot.graph.reports.spending import Comparison, Figure, Prompts, read_plan, read_prompts, read_usage
from moot.graph.reports.transcript_blocks import Transcript, anchors_of, read_transcript
from moot.graph.reports.verdict_view import Panel, VerdictView, read_panel
from moot.graph.reports.wording import as_json, cleaned, clock, shortened
from moot.nodes.blackboard.outcome import unfolded
from moot.nodes.protocols.protocol import Protocol
from moot.nodes.protocols.protocol_table import rules_of
from moot.state.config.model_settings import RECORDED
from moot.state.ledger import MOTION

TITLE = 160
"""Characters of a topic that still make a title."""
NOTES = {
    "running": "Still running: this is what has been said so far.",
    "paused": "Paused: this is what has been said so far.",
    "waiting": "Waiting for an answer from a person.",
    "limit": "Ended at one of its limits.",
    "failed": "Ended by a failure: see the notes at the end.",
}


@dataclass(frozen=True)
class Report:
    """The contents of a report, without any markup."""

    document: DebateDocument
    title: str
    topic: str
    """The whole topic, where the title does not hold it."""
    name: str
    status_note: str
    facts: tuple[Figure, ...]
    people: People
    anchors: dict[str, str]
    verdict: VerdictView | None
    solution: str
    panel: Panel
    standings: tuple[DebaterPosition, ...]
    contested: Sequence[PropositionStanding]
    propositions: Mapping[str, str]
    """Words of all propositions, by id."""
    threshold: float | None
    """Agreement at which a council ends, where that is known."""
    prompts: Prompts
    usage: tuple[Figure, ...]
    plan: tuple[Comparison, ...]
    transcript: Transcript
    errors: tuple[str, ...]
    """What went wrong, each after where it did."""
    config: str

    @property
    def rules(self) -> Protocol:
        """The protocol by which the result is told."""
        return rules_of(self.document)

    @property
    def at_a_glance(self) -> str:
        """As much of the solution as one page has room for."""
        return self.rules.at_a_glance(self.solution)

    @property
    def leads(self) -> bool:
        """Whether the answer stands before the verdict, because it is what was asked for."""
        return bool(self.solution and self.rules.answer_leads)

    @property
    def has_rounds(self) -> bool:
        """Whether there is anything to tell round by round."""
        board = self.document["blackboard"]
        return bool(board["standing"]["rounds"] or board["reflections"] or self.document.get("convergence"))


def read(given: object) -> Report:
    """Read a document of format `moot.debate/1`; what is missing in it is missing in the report."""
    document = as_far_as_it_goes(DebateDocument, cleaned(given))
    people = People(document)
    anchors = anchors_of(document["transcript"])
    transcript = read_transcript(document, people, anchors)
    panel = read_panel(document, people)
    verdict = panel.decision
    topic, name = document["topic"].strip(), document["name"] or document["id"]
    solution = unfolded(document["solution"]) if rules_of(document).always_answers else document["solution"]
    status, because = document["status"], document.get("ended_because", "").strip()
    status_note = NOTES.get(status, "")
    if status == "limit" and because:
        status_note = f"Ended at one of its limits: {because}."
    return Report(
        document=document,
        title=shortened(topic, TITLE) or name or "A debate",
        topic=topic if topic != shortened(topic, TITLE) else "",
        name=name,
        status_note=status_note,
        facts=_facts(document, people, transcript),
        people=people,
        anchors=anchors,
        verdict=verdict,
        solution=solution or (verdict.solution if verdict else ""),
        panel=panel,
        standings=read_standings(document, people),
        contested=contested(document),
        propositions={
            each["id"]: "The question itself" if each["id"] == MOTION and len(topic) > TITLE else each["text"]
            for each in document["blackboard"]["standing"]["propositions"]
        },
        threshold=shown_config(document)["termination"].get("threshold"),
        prompts=read_prompts(document),
        usage=read_usage(document["usage"]),
        plan=read_plan(document),
        transcript=transcript,
        errors=tuple(f"Step {each['step']}, {each['node']}: {each['error']}" for each in document["errors"]),
        config=as_json(document["config"]) if document["config"] else "",
    )


def _facts(document: DebateDocument, people: People, transcript: Transcript) -> tuple[Figure, ...]:
    rounds = max((entry["round"] for entry in document["transcript"]), default=0)
    began, ended = clock(document["created_at"]), clock(document["updated_at"])
    because, verdict = document.get("ended_because", "").strip(), document["verdict"]
    named = [entry["model"] for entry in document["transcript"]] + [verdict["model"] if verdict else ""]
    unchecked = ", of a capable model; facts unchecked"
    models = [
        each + (unchecked if each.startswith(RECORDED) else "") for each in dict.fromkeys(filter(None, named))
    ]
    facts = [
        Figure("Protocol", document["protocol"]),
        Figure("Debaters", str(len(people) or "")),
        Figure("Messages", f"{transcript.count:,}"),
        Figure("Rounds", str(rounds or "")),
        Figure("Began", began),
        Figure("Last change", ended if ended != began else ""),
        Figure("Ended", because if document["status"] == "done" else ""),
        Figure("Models", ", ".join(models)),
        Figure("Id", document["id"] if document["name"] else ""),
    ]
    return tuple(fact for fact in facts if fact.value)

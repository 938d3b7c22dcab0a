"""What a report shows beyond what its document says itself: all that takes working out, done once."""

from moot.graph.documents import DebateDocument, as_far_as_it_goes
from moot.graph.documents.reading import shown_config
from moot.graph.reports.cast import People
from moot.graph.reports.positions import read_standings
from moot.graph.reports.spending import Figure, Prompts, read_plan, read_usage
from moot.graph.reports.transcript_blocks import Transcript, anchors_of
from moot.graph.reports.verdict_view import Panel
from moot.graph.reports.wording import as_json, clean_strings, clock, shorten
from moot.nodes.blackboard.outcome import strip_marks
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


class Report:
    """The contents of a report, without any markup."""

    def __init__(self, given: object) -> None:
        """Read a document of format `moot.debate/1`; what is missing in it is missing in the report."""
        self.document = document = as_far_as_it_goes(DebateDocument, clean_strings(given))
        topic, board = document["topic"].strip(), document["blackboard"]
        self.name = document["name"] or document["id"]
        short = shorten(topic, TITLE)
        self.title = short or self.name or "A debate"
        self.topic = topic if topic != short else ""
        """The whole topic, where the title does not hold it."""
        status, because = document["status"], document.get("ended_because", "").strip()
        self.status_note = NOTES.get(status, "")
        if status == "limit" and because:
            self.status_note = f"Ended at one of its limits: {because}."

        self.people = People(document)
        self.anchors = anchors_of(document["transcript"])
        self.transcript = Transcript(document, self.people, self.anchors)
        self.facts = tuple(fact for fact in self._facts(because) if fact.value)
        self.panel = Panel(document, self.people)
        self.verdict = self.panel.decision

        self.rules = rules_of(document)
        """The protocol by which the result is told."""
        answer = strip_marks(document["solution"]) if self.rules.always_answers else document["solution"]
        self.solution = answer or (self.verdict.solution if self.verdict else "")
        self.at_a_glance = self.rules.at_a_glance(self.solution)
        """As much of the solution as one page has room for."""
        self.leads = bool(self.solution and self.rules.answer_leads)
        """Whether the answer stands before the verdict, because it is what was asked for."""

        self.standings = read_standings(document, self.people)
        known = board["standing"]["propositions"]
        self.contested = [each for each in known if each["status"] in ("disputed", "settled")]
        """What was in dispute, or given up."""
        self.propositions = {each["id"]: each["text"] for each in known}
        """Words of all propositions, by id."""
        if MOTION in self.propositions and len(topic) > TITLE:
            self.propositions[MOTION] = "The question itself"
        self.has_rounds = bool(
            board["standing"]["rounds"] or board["reflections"] or document.get("convergence")
        )
        self.threshold: float | None = shown_config(document)["termination"].get("threshold")
        """Agreement at which a council ends, where that is known."""

        self.prompts = Prompts(document["receipts"])
        self.usage = read_usage(document["usage"])
        self.plan = read_plan(document)
        self.errors = [f"Step {each['step']}, {each['node']}: {each['error']}" for each in document["errors"]]
        """What went wrong, each after where it did."""
        self.config = as_json(document["config"]) if document["config"] else ""

    def _facts(self, because: str) -> list[Figure]:
        document, verdict = self.document, self.document["verdict"]
        rounds = max((entry["round"] for entry in document["transcript"]), default=0)
        began, ended = clock(document["created_at"]), clock(document["updated_at"])
        named = [entry["model"] for entry in document["transcript"]] + [verdict["model"] if verdict else ""]
        unchecked = ", of a capable model; facts unchecked"
        models = [
            each + (unchecked if each.startswith(RECORDED) else "")
            for each in dict.fromkeys(filter(None, named))
        ]
        return [
            Figure("Protocol", document["protocol"]),
            Figure("Debaters", str(len(self.people) or "")),
            Figure("Messages", f"{self.transcript.count:,}"),
            Figure("Rounds", str(rounds or "")),
            Figure("Began", began),
            Figure("Last change", ended if ended != began else ""),
            Figure("Ended", because if document["status"] == "done" else ""),
            Figure("Models", ", ".join(models)),
            Figure("Id", document["id"] if document["name"] else ""),
        ]

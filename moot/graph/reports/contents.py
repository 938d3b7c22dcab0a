"""Everything that a report shows, read once from a `moot.debate/1` document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moot.graph.reports.board_section import Board, read_board
from moot.graph.reports.cast import People
from moot.graph.reports.ending import Convergence, read_convergence, status_note
from moot.graph.reports.fields import (
    as_count,
    as_dict,
    as_dicts,
    as_json,
    as_list,
    as_text,
    as_texts,
    cleaned,
    shortened,
)
from moot.graph.reports.panels import Panel, read_panel
from moot.graph.reports.positions import Standing, read_standings
from moot.graph.reports.spending import Comparison, Figure, Prompts, read_plan, read_prompts, read_usage
from moot.graph.reports.transcript_blocks import Transcript, anchors_of, read_transcript
from moot.graph.reports.verdict_view import VerdictView, read_verdict, rubrics_in

TITLE = 160
"""Characters of a topic that still make a title."""


@dataclass(frozen=True)
class Summary:
    """One version of a summary."""

    name: str
    version: int
    covers: tuple[str, str]
    before: int
    after: int
    made_by: str
    latency: str
    at: str
    text: str
    points: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Report:
    """The contents of a report, without any markup."""

    title: str
    topic: str
    name: str
    status: str
    status_note: str
    facts: tuple[Figure, ...]
    people: People
    anchors: dict[str, str]
    verdict: VerdictView | None
    solution: str
    panel: Panel
    standings: tuple[Standing, ...]
    board: Board
    convergence: Convergence
    summaries: tuple[Summary, ...]
    prompts: Prompts
    usage: tuple[Figure, ...]
    plan: tuple[Comparison, ...]
    transcript: Transcript
    errors: tuple[str, ...]
    config: str

    @property
    def has_rounds(self) -> bool:
        """Whether there is anything to tell round by round."""
        return bool(self.board.rounds or self.board.reflections or self.convergence.checks)


def read(document: dict[str, Any]) -> Report:
    """Read a document of format `moot.debate/1`; what is missing in it is missing in the report."""
    document = as_dict(cleaned(document))
    people = People(document)
    anchors = anchors_of(as_dicts(document.get("transcript")))
    transcript = read_transcript(document, people, anchors)
    rubrics = rubrics_in(document)
    verdict = read_verdict(_decision(document), people, rubrics)
    status, topic = as_text(document.get("status")), as_text(document.get("topic")).strip()
    name = as_text(document.get("name")) or as_text(document.get("id"))
    return Report(
        title=shortened(topic, TITLE) or name or "A debate",
        topic=topic if topic != shortened(topic, TITLE) else "",
        name=name,
        status=status,
        status_note=status_note(document),
        facts=_facts(document, people, transcript),
        people=people,
        anchors=anchors,
        verdict=verdict,
        solution=as_text(document.get("solution")) or (verdict.solution if verdict else ""),
        panel=read_panel(document, people, rubrics),
        standings=read_standings(document, people),
        board=read_board(document, people),
        convergence=read_convergence(document),
        summaries=tuple(_summary(raw, people) for raw in as_dicts(document.get("summaries"))),
        prompts=read_prompts(document),
        usage=read_usage(document),
        plan=read_plan(document),
        transcript=transcript,
        errors=tuple(_error(raw) for raw in as_list(document.get("errors"))),
        config=as_json(document["config"]) if as_dict(document.get("config")) else "",
    )


def _decision(document: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict, or the failed one of a lone judge: never another judge's in its place."""
    verdicts = as_dicts(document.get("verdicts"))
    failed = verdicts and all(as_text(verdict.get("status")) == "failed" for verdict in verdicts)
    return as_dict(document.get("verdict")) or (verdicts[-1] if failed else {})


def _error(raw: Any) -> str:
    """Return what went wrong, after where it did."""
    if not isinstance(raw, dict):
        return as_text(raw)
    return f"Step {as_count(raw.get('step'))}, {as_text(raw.get('node'))}: {as_text(raw.get('error'))}"


def _facts(document: dict[str, Any], people: People, transcript: Transcript) -> tuple[Figure, ...]:
    rounds = max((as_count(e.get("round")) for e in as_dicts(document.get("transcript"))), default=0)
    began, ended = (as_text(document.get(key))[:16].replace("T", " ") for key in ("created_at", "updated_at"))
    facts = [
        Figure("Protocol", as_text(document.get("protocol"))),
        Figure("Debaters", str(len(people) or "")),
        Figure("Messages", f"{transcript.count:,}"),
        Figure("Rounds", str(rounds or "")),
        Figure("Began", began),
        Figure("Last change", ended if ended != began else ""),
        Figure("Id", as_text(document.get("id") if document.get("name") else "")),
    ]
    return tuple(fact for fact in facts if fact.value)


def _summary(raw: dict[str, Any], people: People) -> Summary:
    kind, owner = as_text(raw.get("kind")) or "summary", as_text(raw.get("owner"))
    latency = raw.get("latency_s")
    return Summary(
        name=f"{kind.capitalize()}: {people[owner].name}" if owner else kind.capitalize(),
        version=as_count(raw.get("version")),
        covers=(_message(raw.get("covers_from_seq")), _message(raw.get("covers_through_seq"))),
        before=as_count(raw.get("before_tokens")),
        after=as_count(raw.get("after_tokens")),
        made_by=" · ".join(as_texts([raw.get("method"), raw.get("model")])),
        latency=f"{latency:.1f} s" if isinstance(latency, int | float) else "",
        at=as_text(raw.get("created_at"))[:16].replace("T", " "),
        text=as_text(raw.get("text")),
        points=tuple(
            (as_text(p.get("text")), as_texts(p.get("message_ids"))) for p in as_dicts(raw.get("points"))
        ),
    )


def _message(seq: Any) -> str:
    return f"m{as_count(seq):06d}" if seq is not None else ""

"""Points of a summary: what is worth keeping of one message, and how points merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from typing_extensions import TypedDict

from moot.nodes.reading.facts import Facts, Finding, extract
from moot.nodes.reading.tool_results import describe, read_result
from moot.nodes.text.likeness import same_statement
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.terms import term_set
from moot.state.entries import Entry, seq_of

_F = TypeVar("_F", bound=Finding)

MAX_POINT = 240
"""Longest text of a point, in characters."""
MAX_IDS = 8
"""Most message ids that a point carries: the first and the latest ones."""

PointKind = Literal[
    "opening",  # where a speaker started: one a speaker, never dropped
    "stance",  # where it stands now: one a speaker
    "position",  # a stance since superseded
    "shift",
    "concession",
    "question",  # open
    "answered",
    "challenge",
    "agreement",
    "evidence",
    "claim",
    "result",  # of a tool
    "notice",
]


class Point(TypedDict):
    """One thing worth remembering; JSON types only."""

    text: str
    """One inert line, at most `MAX_POINT` characters."""
    speaker: str
    kind: PointKind
    about: list[str]
    """Debaters who are asked, contradicted or agreed with."""
    message_ids: list[str]
    """Messages that say it, oldest first, at most `MAX_IDS`; the last of an answered question answers it."""
    round: int
    """Round in which it was first said."""
    weight: float
    """What it counts for, about 1–10, before age."""
    explicit: bool
    """Whether words showed it to be what it is, and not merely its place; False for a rhetorical question."""


_WEIGHTS: dict[PointKind, float] = {
    "opening": 9.0,
    "shift": 8.0,
    "stance": 8.0,
    "concession": 7.0,
    "question": 6.0,
    "challenge": 4.5,
    "position": 4.0,
    "agreement": 4.0,
    "result": 4.0,
    "evidence": 3.6,
    "claim": 3.0,
    "answered": 2.0,
    "notice": 1.5,
}
_REPEATED = 0.25  # a point said again gains so much, up to four times
_SUBSTANTIAL = 6  # terms in a statement that can stand as somebody's position without words that say so


def read_entry(entry: Entry, names: Mapping[str, str]) -> tuple[Facts, list[Point]]:
    """Return the facts of a message and its points, at most twelve; none only where nothing is said."""
    facts = extract(entry, names)
    points = [point for point in _points(entry, facts) if point["text"]]
    if not points and (said := clip(inert(entry["content"]), MAX_POINT)):
        finding = Finding(message_id=entry["id"], text=said, order=0, score=0.0)
        points = [_point(entry, "notice" if entry["kind"] == "notice" else "claim", finding)]
    return facts, points


def _points(entry: Entry, facts: Facts) -> list[Point]:
    if entry["kind"] == "tool_result":
        return [_tool_point(entry)]
    if entry["kind"] in ("notice", "tool_call"):
        kind: PointKind = "notice" if entry["kind"] == "notice" else "result"
        return [_point(entry, kind, finding, weight=1.5) for finding in _best(facts["claims"], 1)]
    points: list[Point] = []
    used: set[int] = set()
    for kind, finding, about, bonus in _candidates(facts):
        if finding["order"] not in used:
            used.add(finding["order"])
            points.append(_point(entry, kind, finding, about, bonus))
    return points


def _candidates(facts: Facts) -> Iterator[tuple[PointKind, Finding, list[str], float]]:
    """Yield what a message offers, the most telling first; a sentence counts as what it is first."""
    for shift in facts["shifts"][:2]:
        yield "shift", shift, [], 0.0
    for concession in facts["concessions"][:2]:
        yield "concession", concession, concession["about"], 0.0
    for question in sorted(facts["questions"], key=lambda q: (q["rhetorical"], -q["order"]))[:1]:
        yield "question", question, question["to"], -2.8 if question["rhetorical"] else 0.3
    for challenge in _best(facts["challenges"], 1):
        yield "challenge", challenge, challenge["about"], 0.7 * (challenge["strength"] == "strong")
    for position in _best(facts["positions"], 1):
        yield "position", position, [], 0.0
    for agreement in _best(facts["agreements"], 1):
        yield "agreement", agreement, agreement["about"], 0.0
    for evidence in _best(facts["evidence"], 1):
        yield "evidence", evidence, [], 0.0
    for claim in _best(facts["claims"], 1 if facts["positions"] else 2):
        yield "claim", claim, [], 0.0


def _best(findings: Sequence[_F], count: int) -> list[_F]:
    return sorted(findings, key=lambda finding: (-finding["score"], finding["order"]))[:count]


def _point(
    entry: Entry,
    kind: PointKind,
    finding: Finding,
    about: Sequence[str] = (),
    bonus: float = 0.0,
    weight: float | None = None,
) -> Point:
    text = clip(inert(finding["text"]), MAX_POINT)
    matter = min(1.0, len(term_set(text)) / 8)
    base = _WEIGHTS[kind] if weight is None else weight
    return Point(
        text=text,
        speaker=entry["speaker"],
        kind=kind,
        about=list(about)[:4],
        message_ids=[entry["id"]],
        round=entry["round"],
        weight=round(base * (0.15 + 0.85 * matter) + min(1.0, finding["score"]) * 0.6 * matter + bonus, 3),
        explicit=kind not in ("claim", "evidence") and bonus >= 0,
    )


def _tool_point(entry: Entry) -> Point:
    tool, colon, said = entry["content"].partition(": ") if entry["speaker"] == "tools" else ("", "", "")
    result = read_result(said if colon else entry["content"], tool if colon else "")
    finding = Finding(message_id=entry["id"], text=describe(result), order=0, score=1.0)
    return _point(entry, "result", finding, weight=6.0 if result["status"] == "error" else 4.0)


def reweigh(point: Point, kind: PointKind) -> Point:
    """Return `point` as one of another kind."""
    change = _WEIGHTS[kind] - _WEIGHTS[point["kind"]]
    return Point(**{**point, "kind": kind, "weight": round(max(0.5, point["weight"] + change), 3)})


def is_substantial(point: Point) -> bool:
    """Whether a point says enough to be somebody's position."""
    return len(term_set(point["text"])) >= _SUBSTANTIAL


def same(first: Point, second: Point) -> bool:
    """Whether two points of one speaker say nearly the same."""
    return first["speaker"] == second["speaker"] and same_statement(first["text"], second["text"])


def merge(kept: Point, again: Point) -> Point:
    """Return `kept` with the messages of `again`; repetition makes a statement heavier, but no courtesy."""
    most = max(kept["weight"], _WEIGHTS[kept["kind"]] + 4 * _REPEATED)
    weight = min(kept["weight"] + _REPEATED, most) if is_substantial(kept) else kept["weight"]
    ids = join_ids(kept["message_ids"], again["message_ids"])
    return Point(**{**kept, "message_ids": ids, "weight": round(weight, 3)})


def join_ids(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the ids of both in the transcript's order; of more than `MAX_IDS` the first and the latest."""
    ids = sorted({*first, *second}, key=lambda message_id: seq_of(message_id) or 0)
    return ids if len(ids) <= MAX_IDS else ids[:1] + ids[-(MAX_IDS - 1) :]


def last_seq(point: Point) -> int:
    """Return the `seq` of the latest message behind a point."""
    return seq_of(point["message_ids"][-1]) or 0

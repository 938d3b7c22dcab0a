"""Points of a summary: what is worth keeping of one message, how points merge, and which outlives which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from typing_extensions import TypedDict

from moot.nodes.reading.facts import Facts, Finding, extract
from moot.nodes.reading.tool_results import describe, read_result
from moot.nodes.text.likeness import same_statement
from moot.nodes.text.plain import clip, inert
from moot.nodes.text.terms import term_set
from moot.state.entries import Entry, kind_of, seq_of

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
    "asked",  # of nobody in particular, its speaker went on
    "answered",
    "challenge",
    "agreement",
    "evidence",
    "claim",
    "result",  # of a tool
    "notice",
]


class Worth(NamedTuple):
    """What a kind of points is worth, and how it is called."""

    weight: float
    """What counts is the order: some weight between 1 and 10, before age and matter."""
    label: str
    """No debater's words begin a line, so none can be a heading, a list or a fence."""
    lasts: bool = False
    """Whether it is owed or given up: what is settled or merely said fades sooner."""


# Measured on the 40 labelled excerpts of `benchmarks/minutes.py`, each followed by further messages, in 600
# tokens: of what is labelled 33 % is still told after 60 messages, 28 % after 240. After 240 it is 24 % where
# all kinds fade alike, 25 % where short texts weigh as much as others. What made no difference has gone:
# weight for what is said again, for what is salient in its message, and for variety of kinds and speakers.
WORTH: dict[PointKind, Worth] = {
    "opening": Worth(9.0, "opened"),
    "shift": Worth(8.0, "changed position", lasts=True),
    "stance": Worth(8.0, "now"),
    "concession": Worth(7.0, "conceded{to}", lasts=True),
    "question": Worth(7.0, "open question{to}", lasts=True),
    "challenge": Worth(4.5, "contradicted{about}"),
    "position": Worth(4.0, "held"),
    "agreement": Worth(4.0, "agreed{with}"),
    "result": Worth(4.0, "tool"),
    "evidence": Worth(3.6, "evidence"),
    "asked": Worth(3.2, "asked{to}"),
    "claim": Worth(3.0, "said"),
    "answered": Worth(2.0, "asked{to}, answered"),
    "notice": Worth(1.5, "note"),
}


class _Decay(NamedTuple):
    half_life: float
    """In messages, at least; a third of the debate so far where that is longer."""
    floor: float
    """Share of its weight that a point keeps for ever."""


_FADING, _LASTING = _Decay(300, 0.2), _Decay(800, 0.5)
_FULL = 8  # terms from which a text weighs all that its kind does
_SUBSTANTIAL = 6  # terms in a statement that can stand as somebody's position without words that say so


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
    explicit: bool
    """Whether words showed it to be what it is, and not merely its place."""


def read_entry(entry: Entry, names: Mapping[str, str]) -> tuple[Facts, list[Point]]:
    """Return the facts of a message and its points, at most twelve; none only where nothing is said."""
    facts = extract(entry, names)
    points, used = list[Point](), set[int]()
    for kind, finding in _findings(entry, facts):
        text = clip(inert(finding["text"]), MAX_POINT)
        if text and finding["order"] not in used:  # a sentence counts as what it is first
            used.add(finding["order"])
            whom: Mapping[str, Any] = finding
            points.append(_point(entry, kind, text, whom.get("to") or whom.get("about") or ()))
    if not points and (text := clip(inert(entry["content"]), MAX_POINT)):
        points = [_point(entry, "notice" if entry["kind"] == "notice" else "claim", text)]
    return facts, points


def _findings(entry: Entry, facts: Facts) -> Iterator[tuple[PointKind, Finding]]:
    """Yield what a message offers, the most telling first."""
    if entry["kind"] == "tool_result":
        tool, colon, said = entry["content"].partition(": ") if entry["speaker"] == "tools" else ("", "", "")
        result = describe(read_result(said if colon else entry["content"], tool if colon else ""))
        yield "result", Finding(message_id=entry["id"], text=result, order=0, score=1.0)
        return
    if kind_of(entry).mechanical:
        yield from (("notice", claim) for claim in _best(facts["claims"], 1))
        return
    questions = sorted(facts["questions"], key=lambda question: (question["rhetorical"], -question["order"]))
    asked: PointKind = "asked" if questions and questions[0]["rhetorical"] else "question"
    offers: Sequence[tuple[PointKind, Sequence[Finding]]] = (
        ("shift", facts["shifts"][:2]),
        ("concession", facts["concessions"][:2]),
        (asked, questions[:1]),
        ("challenge", _best(facts["challenges"], 1)),
        ("position", _best(facts["positions"], 1)),
        ("agreement", _best(facts["agreements"], 1)),
        ("evidence", _best(facts["evidence"], 1)),
        ("claim", _best(facts["claims"], 1 if facts["positions"] else 2)),
    )
    yield from ((kind, finding) for kind, findings in offers for finding in findings)


def _best(findings: Sequence[_F], count: int) -> list[_F]:
    return sorted(findings, key=lambda finding: (-finding["score"], finding["order"]))[:count]


def _point(entry: Entry, kind: PointKind, text: str, about: Sequence[str] = ()) -> Point:
    return Point(
        text=text,
        speaker=entry["speaker"],
        kind=kind,
        about=list(about)[:4],
        message_ids=[entry["id"]],
        round=entry["round"],
        explicit=kind not in ("claim", "evidence", "asked"),
    )


def is_substantial(point: Point) -> bool:
    """Whether a point says enough to be somebody's position."""
    return len(term_set(point["text"])) >= _SUBSTANTIAL


def same(first: Point, second: Point) -> bool:
    """Whether two points of one speaker say nearly the same."""
    return first["speaker"] == second["speaker"] and same_statement(first["text"], second["text"])


def joined(kept: Point, again: Point) -> Point:
    """Return the weightier of two points that say the same, with the messages of both."""
    heavier = kept if WORTH[kept["kind"]].weight >= WORTH[again["kind"]].weight else again
    ids = join_ids([*kept["message_ids"], *again["message_ids"]])
    return Point(**{**heavier, "message_ids": ids})


def join_ids(message_ids: Iterable[str], most: int = MAX_IDS) -> list[str]:
    """Return distinct ids in the transcript's order; of more than `most` the first and the latest."""
    ids = sorted(set(message_ids), key=lambda message_id: seq_of(message_id) or 0)
    return ids if len(ids) <= most else ids[:1] + ids[-(most - 1) :]


def first_seq(point: Point) -> int:
    """Return the `seq` of the first message behind a point."""
    return seq_of(point["message_ids"][0]) or 0


def last_seq(point: Point) -> int:
    """Return the `seq` of the latest message behind a point."""
    return seq_of(point["message_ids"][-1]) or 0


def grouped(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return points by speaker, in their order."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        groups[point["speaker"]].append(point)
    return dict(groups)


class Ranking(NamedTuple):
    """Points in the order in which they deserve room."""

    points: list[Point]
    quota: int
    """How many of the first points are quotas: one a speaker."""


def rank(points: Sequence[Point], spoken: Mapping[str, int], now: int) -> Ranking:
    """Rank points for a summary.

    Args:
        points: All candidates.
        spoken: Messages by speaker; whoever said more comes first.
        now: `seq` of the latest message seen.

    Returns:
        First each speaker's opening (or else its best point), then each speaker's present stance, then the
        rest by weight, which halves towards a floor as messages pass. Deterministic.
    """

    def key(point: Point) -> tuple[float, int, str]:
        return -lasting_weight(point, now), -last_seq(point), point["text"]

    by_speaker = grouped(sorted(points, key=key))
    order = sorted(by_speaker, key=lambda who: (-spoken.get(who, 0), who))
    first = [min(by_speaker[who], key=lambda point: point["kind"] != "opening") for who in order]
    taken = set(map(id, first))
    standing = [point for who in order if (point := _standing(by_speaker[who])) and id(point) not in taken]
    taken.update(map(id, standing))
    rest = sorted((point for point in points if id(point) not in taken), key=key)
    return Ranking([*first, *standing, *rest], len(first))


def lasting_weight(point: Point, now: int) -> float:
    """Return what a point weighs at message `now`; it is as old as the last message that says it."""
    worth = WORTH[point["kind"]]
    decay = _LASTING if worth.lasts else _FADING
    # In a long debate an age of 200 messages is no age: the half-life grows with what it has to span.
    ages = max(0, now - last_seq(point)) / max(decay.half_life, now / 3)
    kept: float = decay.floor + (1 - decay.floor) * 0.5**ages
    return worth.weight * min(1.0, (1 + len(term_set(point["text"]))) / _FULL) * kept


def _standing(points: Sequence[Point]) -> Point | None:
    """Return where a speaker stands: its stance, or the last change of position if that is later."""
    declared = [point for point in points if point["kind"] in ("stance", "shift")]
    return max(declared, key=lambda p: (last_seq(p), p["kind"] == "shift", p["text"]), default=None)

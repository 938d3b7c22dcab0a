"""Which points of a summary outlive which: quotas first, then weight, age and variety."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moot.nodes.memory.summarizers.points import Point, PointKind, last_seq


class _Decay(NamedTuple):
    half_life: float
    """In messages, at least; a third of the debate so far where that is longer."""
    floor: float
    """Share of its weight that a point keeps for ever."""


class Ranking(NamedTuple):
    """Points in the order in which they deserve room."""

    points: list[Point]
    quota: int
    """How many of the first points are quotas: one a speaker."""


# What is settled or merely said fades; what is owed or given up does not.
_USUAL = _Decay(150, 0.2)
_DECAY: dict[PointKind, _Decay] = {
    "shift": _Decay(800, 0.5),
    "concession": _Decay(800, 0.5),
    "question": _Decay(800, 0.45),
    "challenge": _Decay(300, 0.3),
    "answered": _Decay(60, 0.1),
    "notice": _Decay(60, 0.1),
}
_PER_SPEAKER = 0.05
_PER_KIND = 0.2


def grouped(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return points by speaker, in their order."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        groups[point["speaker"]].append(point)
    return dict(groups)


def rank(points: Sequence[Point], spoken: Mapping[str, int], now: int) -> Ranking:
    """Rank points for a summary.

    Args:
        points: All candidates.
        spoken: Messages by speaker; whoever said more comes first.
        now: `seq` of the latest message seen.

    Returns:
        First each speaker's opening (or else its best point), then each speaker's present stance, then the
        rest by weight, which halves towards a floor as messages pass, and shrinks with every point of the
        same speaker and of the same kind already ranked, so that neither fills the summary. Deterministic.
    """
    by_speaker = grouped(points)
    order = sorted(by_speaker, key=lambda who: (-spoken.get(who, 0), who))
    first = [_foremost(by_speaker[who], now) for who in order]
    taken = {id(point) for point in first}
    standing = (_standing(by_speaker[who]) for who in order)
    stances = [point for point in standing if point is not None and id(point) not in taken]
    taken.update(map(id, stances))
    rest = (point for point in points if id(point) not in taken)
    return Ranking([*first, *stances, *_varied(rest, now)], len(first))


def lasting_weight(point: Point, now: int) -> float:
    """Return what a point weighs at message `now`; it is as old as the last message that says it."""
    decay = _DECAY.get(point["kind"], _USUAL) if point["explicit"] else _USUAL
    # In a long debate an age of 200 messages is no age: the half-life grows with what it has to span.
    ages = max(0, now - last_seq(point)) / max(decay.half_life, now / 3)
    kept: float = decay.floor + (1 - decay.floor) * 0.5**ages
    return point["weight"] * kept


def _foremost(points: Sequence[Point], now: int) -> Point:
    return min(points, key=lambda point: (point["kind"] != "opening", *_key(point, now)))


def _standing(points: Sequence[Point]) -> Point | None:
    """Return where a speaker stands: its stance, or the last change of position if that is later."""
    declared = [point for point in points if point["kind"] in ("stance", "shift")]
    return max(
        declared, key=lambda p: (last_seq(p), p["kind"] == "shift", p["weight"], p["text"]), default=None
    )


def _varied(points: Iterable[Point], now: int) -> list[Point]:
    """Return points by weight, each discounted by how many of its speaker and kind come before it."""
    speakers: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    scored: list[tuple[float, int, str, Point]] = []
    for point in sorted(points, key=lambda point: _key(point, now)):
        kind = (point["speaker"], point["kind"])
        discount = (1 + _PER_SPEAKER * speakers[point["speaker"]]) * (1 + _PER_KIND * kinds[kind])
        scored.append((-lasting_weight(point, now) / discount, -last_seq(point), point["text"], point))
        speakers[point["speaker"]] += 1
        kinds[kind] += 1
    return [point for *_, point in sorted(scored, key=lambda row: row[:3])]


def _key(point: Point, now: int) -> tuple[float, int, str]:
    return (-lasting_weight(point, now), -last_seq(point), point["text"])

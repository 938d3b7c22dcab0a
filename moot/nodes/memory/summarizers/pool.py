"""The pool of points by speaker: how a message settles questions, merges, and becomes somebody's stance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.nodes.memory.summarizers.points import (
    Point,
    PointKind,
    is_substantial,
    join_ids,
    last_seq,
    merge,
    read_entry,
    reweigh,
    same,
)
from moot.nodes.reading.question_answers import Reply, answers, as_reply
from moot.state.entries import Entry, kind_of

Pool = dict[str, list[Point]]

FIRST_MESSAGES = 6
"""A speaker's opening may still be replaced by a better one within so many of its messages."""
_QUESTIONS_HELD = 24  # open questions that a new message is held against, the latest ones
_STANCE_AGE = 40  # messages after which a stance in so many words gives way to one inferred


def absorb(pool: Pool, entry: Entry, names: Mapping[str, str], *, early: bool) -> None:
    """Let one message into `pool`: settle the questions that it answers, then admit its points.

    Args:
        pool: Points by speaker; changed in place.
        entry: The message, later than all before it.
        names: Display name by debater id.
        early: Whether it is among its speaker's first `FIRST_MESSAGES`.
    """
    facts, points = read_entry(entry, names)
    _settle(pool, as_reply(entry, facts))
    own = pool.setdefault(entry["speaker"], [])
    for point in points:
        _admit(own, point)
    if not kind_of(entry).mechanical:
        _take_position(own, points, early=early, critical=entry["kind"] == "critique")
    if not own:
        del pool[entry["speaker"]]


def _settle(pool: Pool, reply: Reply) -> None:
    """Turn the open questions that `reply` answers into answered ones."""
    if not reply.states:
        return
    held = [(p, own, i) for own in pool.values() for i, p in enumerate(own) if p["kind"] == "question"]
    for point, own, i in sorted(held, key=lambda row: -last_seq(row[0]))[:_QUESTIONS_HELD]:
        asked_in = point["message_ids"][-1]
        if answers(reply, text=point["text"], asker=point["speaker"], asked_in=asked_in, to=point["about"]):
            ids = join_ids(point["message_ids"], [reply.entry["id"]])
            own[i] = Point(**{**reweigh(point, "answered"), "message_ids": ids})


def _admit(own: list[Point], new: Point) -> None:
    """Add a point to its speaker's, or merge it with one that says the same: the weightier kind remains."""
    for i, kept in enumerate(own):
        if same(kept, new):
            heavier, lighter = (kept, new) if kept["weight"] >= new["weight"] else (new, kept)
            own[i] = merge(heavier, lighter)
            return
    own.append(new)


def _take_position(own: list[Point], points: Sequence[Point], *, early: bool, critical: bool) -> None:
    """Let what a speaker has just said become its opening or its present stance, if it is fit to.

    Without words that say so, a critique shows no stance, and a change of position is the stance itself.
    """
    said = {id_ for point in points for id_ in point["message_ids"]}
    fresh = [
        p for p in own if p["kind"] in ("position", "claim", "evidence") and p["message_ids"][-1] in said
    ]
    best = max(fresh, key=lambda p: (p["kind"] == "position", p["weight"], p["text"]), default=None)
    if any(point["kind"] == "shift" for point in points):
        _retire_stance(own)
    if best is None:
        return
    opening = next((p for p in own if p["kind"] == "opening"), None)
    if opening is None:
        _become(own, best, "opening")
    elif early and _standing(best) > _standing(opening):
        _become(own, opening, "position" if opening["explicit"] else "claim")
        _become(own, best, "opening")
    elif is_substantial(best) and (best["explicit"] or not critical) and _outdates(best, own):
        _retire_stance(own)
        _become(own, best, "stance")


def _standing(point: Point) -> tuple[bool, bool]:
    return is_substantial(point), point["explicit"]


def _outdates(best: Point, own: Sequence[Point]) -> bool:
    """Whether `best` may stand for where its speaker is now: what was said in so many words holds longer."""
    declared = [p for p in own if p["kind"] == "shift" or (p["kind"] == "stance" and p["explicit"])]
    newest = max(map(last_seq, declared), default=-_STANCE_AGE)
    return best["explicit"] or last_seq(best) - newest >= _STANCE_AGE


def _retire_stance(own: list[Point]) -> None:
    stance = next((p for p in own if p["kind"] == "stance"), None)
    if stance is not None:
        _become(own, stance, "position" if stance["explicit"] else "claim")


def _become(own: list[Point], point: Point, kind: PointKind) -> None:
    at = next(i for i, candidate in enumerate(own) if candidate is point)
    own[at] = reweigh(point, kind)

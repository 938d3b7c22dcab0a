"""`rule-based`: points of what was said, folded in as messages leave the window; needs no model.

No model and no randomness: the same messages always give the same summary. It is what stands in whenever a
model's summary fails, so it must hold for any text and any budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from moot.nodes.memory.summarizers.points import (
    Point,
    PointKind,
    grouped,
    is_substantial,
    join_ids,
    joined,
    last_seq,
    rank,
    read_entry,
    same,
)
from moot.nodes.memory.summarizers.points_layout import SummaryPoints, lay_out, render
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.reading.question_answers import PossibleAnswer, answers, as_reply
from moot.nodes.text.terms import term_set
from moot.state.entries import Entry, kind_of

Pool = dict[str, list[Point]]
"""Points by speaker."""

MAX_SPEAKERS = 256
FIRST_MESSAGES = 6
"""A speaker's opening may still be replaced by a better one within so many of its messages."""
_POOL_FLOOR, _POOL_CEILING = 48, 600
_TOKENS_A_POINT = 16  # the pool holds two to three times what its budget shows
_BATCH = 32  # messages folded in between two prunings: bounds the pool while a long import is folded
_QUESTIONS_HELD = 24  # open questions that a new message is held against, the latest ones


class RuleBased:
    """Rolling summary by rule: the points worth keeping, with the messages behind them."""

    name = "rule-based"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Lay the points out; yields no call."""
        yield from ()
        points = folded_points(request)
        return Draft(render(points, request.config.names()), cast(dict[str, Any], points), self.name)


def folded_points(request: SummaryRequest) -> SummaryPoints:
    """Fold what is new into the points so far; all that was said where there are none."""
    previous = _pool_of(request.previous)
    entries = request.past if previous is None else request.entries
    names = request.config.names()
    return fold(previous, entries, max_tokens=request.max_tokens, count=request.count, names=names)


def _pool_of(summary: Mapping[str, Any]) -> SummaryPoints | None:
    """Return the pool of points behind a summary; of one from a document, the points that it showed.

    `None` where there is no pool of all that the summary covers, as behind another package's.
    """
    pool = summary.get("points") or {}
    covered = int(summary.get("covers_through_seq", -1))
    if isinstance(pool, Mapping):
        return cast(SummaryPoints, pool) if pool.get("covers_through_seq") == covered else None
    known: dict[str, Any] = {"kind": "claim", "about": [], "round": 0, "explicit": False}
    shown: Any = {
        "points": [{**known, **point} for point in pool],
        "messages": int(summary.get("messages", len(pool))),
        "speakers": {str(point["speaker"]): 1 for point in pool},
        "covers_through_seq": covered,
    }
    return SummaryPoints(**{**empty(), **shown})


def empty() -> SummaryPoints:
    """Return the summary of nothing."""
    return SummaryPoints(
        points=[],
        shown=0,
        text_chars=0,
        name_chars=0,
        notice="",
        messages=0,
        speakers={},
        covers_through_seq=-1,
    )


def fold(
    previous: SummaryPoints | None,
    entries: Sequence[Entry],
    *,
    max_tokens: int,
    count: Callable[[str], int],
    names: Mapping[str, str],
) -> SummaryPoints:
    """Fold `entries` into `previous` and lay the result out within `max_tokens`.

    Args:
        previous: The summary so far; `None` or an empty mapping before the first.
        entries: Messages that left the window, in order, each exactly once over all calls.
        max_tokens: Budget of the rendering, in tokens of `count`.
        count: Exact token counter.
        names: Display name by speaker id; `render` must get the same.

    Returns:
        A summary whose rendering is empty or satisfies `count(render(result, names)) <= max_tokens`. Every
        speaker who said anything has a point in it where there are 60 tokens a speaker, the first being where
        it started. Time is linear in the new messages and the points kept, whatever came before.
    """
    base = previous or empty()
    pool = grouped(base["points"])
    spoken, now = dict(base["speakers"]), base["covers_through_seq"]
    room = max(_POOL_FLOOR, min(_POOL_CEILING, max_tokens // _TOKENS_A_POINT))
    for start in range(0, len(entries), _BATCH):
        for entry in entries[start : start + _BATCH]:
            now = max(now, entry["seq"])
            if entry["speaker"] in spoken or len(spoken) < MAX_SPEAKERS:
                spoken[entry["speaker"]] = spoken.get(entry["speaker"], 0) + 1
            _absorb(pool, entry, names, early=spoken.get(entry["speaker"], 0) <= FIRST_MESSAGES)
        pool = grouped(rank([each for own in pool.values() for each in own], spoken, now).points[:room])
    folded = SummaryPoints(
        **{
            **empty(),
            "points": [point for points in pool.values() for point in points],
            "messages": base["messages"] + len(entries),
            "speakers": spoken,
            "covers_through_seq": now,
        }
    )
    return lay_out(folded, max_tokens=max_tokens, count=count, names=names)


def _absorb(pool: Pool, entry: Entry, names: Mapping[str, str], *, early: bool) -> None:
    """Let one message into `pool`: settle the questions that it answers, then admit its points."""
    facts, points = read_entry(entry, names)
    _settle(pool, as_reply(entry, facts))
    own = pool.get(entry["speaker"], [])
    for new in points:
        at = next((at for at, kept in enumerate(own) if same(kept, new)), None)
        if at is None:
            own.append(new)
        else:
            own[at] = joined(own[at], new)
    if not kind_of(entry).mechanical:
        _take_position(own, points, early=early, critical=entry["kind"] == "critique")
    if own:
        pool[entry["speaker"]] = own


def _settle(pool: Pool, reply: PossibleAnswer) -> None:
    """Turn the open questions that `reply` answers into answered ones."""
    if not reply.states:
        return
    held = [point for own in pool.values() for point in own if point["kind"] in ("question", "asked")]
    for point in sorted(held, key=lambda point: -last_seq(point))[:_QUESTIONS_HELD]:
        asked_in = point["message_ids"][-1]
        if answers(reply, text=point["text"], asker=point["speaker"], asked_in=asked_in, to=point["about"]):
            ids = join_ids([*point["message_ids"], reply.entry["id"]])
            _replace(pool[point["speaker"]], point, "answered", ids)


def _take_position(own: list[Point], points: Sequence[Point], *, early: bool, critical: bool) -> None:
    """Let what a speaker has just said become its opening or its present stance, if it is fit to.

    Without words that say so, a critique shows no stance, and a change of position is the stance itself.
    """
    said = {id_ for point in points for id_ in point["message_ids"]}
    fresh = [
        p for p in own if p["kind"] in ("position", "claim", "evidence") and p["message_ids"][-1] in said
    ]
    best = max(
        fresh, key=lambda p: (p["kind"] == "position", len(term_set(p["text"])), p["text"]), default=None
    )
    if any(point["kind"] == "shift" for point in points):
        _retire(own, "stance")
    if best is None:
        return
    opening = next((p for p in own if p["kind"] == "opening"), None)
    if opening is None or (early and _standing(best) > _standing(opening)):
        _retire(own, "opening")
        _replace(own, best, "opening")
    elif is_substantial(best) and (best["explicit"] or not (critical or _has_declared(own))):
        _retire(own, "stance")
        _replace(own, best, "stance")


def _standing(point: Point) -> tuple[bool, bool]:
    return is_substantial(point), point["explicit"]


def _has_declared(own: Sequence[Point]) -> bool:
    """Whether a speaker has said in so many words where it stands: that holds longer than what it implies."""
    return any(p["kind"] == "shift" or (p["kind"] == "stance" and p["explicit"]) for p in own)


def _retire(own: list[Point], kind: PointKind) -> None:
    """Let a speaker's opening or stance be one of the positions that it held."""
    point = next((point for point in own if point["kind"] == kind), None)
    if point is not None:
        _replace(own, point, "position" if point["explicit"] else "claim")


def _replace(own: list[Point], point: Point, kind: PointKind, ids: Sequence[str] | None = None) -> None:
    at = next(at for at, candidate in enumerate(own) if candidate is point)
    own[at] = Point(**{**point, "kind": kind, "message_ids": list(ids or point["message_ids"])})

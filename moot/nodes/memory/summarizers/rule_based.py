"""`rule-based`: sentences of what was said, folded in as messages leave the window; needs no model.

No model and no randomness: the same messages always give the same summary. It is what stands in whenever a
model's summary fails, so it must hold for any text and any budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from moot.nodes.memory.summarizers.points import MAX_POINT, Point, rank, read_entry
from moot.nodes.memory.summarizers.points_layout import CHARS_A_TOKEN, SummaryPoints, lay_out, render
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest
from moot.nodes.text.terms import terms
from moot.state.entries import Entry, kind_of

MAX_SPEAKERS = 256
MAX_TERMS = 1_000
"""Terms whose counts are carried on, the most frequent."""
_POOL_FLOOR, _POOL_CEILING = 48, 600
_TOKENS_A_POINT = 4  # the pool holds five to six times what its budget shows
_BATCH = 32  # messages folded in between two prunings: bounds the pool while a long import is folded


class RuleBased:
    """Rolling summary by rule: the sentences that together tell most, with the messages behind them."""

    name = "rule-based"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Lay the points out; yields no call."""
        yield from ()
        points = fold_points(request)
        return Draft(render(points, request.config.names()), cast(dict[str, Any], points), self.name)


def fold_points(request: SummaryRequest) -> SummaryPoints:
    """Fold what is new into the points so far; all that was said where there are none.

    Behind a summary from a document these are the points that it showed; there are none where the pool is not
    of all that the summary covers, as behind another package's.
    """
    pool, covered = request.previous.get("points") or {}, int(request.previous.get("covers_through_seq", -1))
    previous: Any = None
    if not isinstance(pool, Mapping):
        previous = {
            **empty(),
            "points": list(pool),
            "messages": int(request.previous.get("messages", len(pool))),
            "speakers": {str(point["speaker"]): 1 for point in pool},
            "covers_through_seq": covered,
        }
    elif pool.get("covers_through_seq") == covered:
        previous = {**empty(), **pool}
    return fold(
        previous,
        request.past if previous is None else request.entries,
        max_tokens=request.max_tokens,
        count=request.count,
        names=request.config.names(),
        errors=request.config.memory.preserve_errors,
    )


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
        terms={},
        covers_through_seq=-1,
    )


def fold(
    previous: SummaryPoints | None,
    entries: Sequence[Entry],
    *,
    max_tokens: int,
    count: Callable[[str], int],
    names: Mapping[str, str],
    errors: int = 0,
) -> SummaryPoints:
    """Fold `entries` into `previous` and lay the result out within `max_tokens`.

    Entries are what left the window, in order, each exactly once over all calls; of each tool's error about
    `errors` tokens are kept whole. The rendering, for which `render` must get the same `names`, is empty or
    within `max_tokens`. Every speaker who said anything has a point in it where there are 60 tokens a
    speaker. Time is linear in the new messages and the points kept, whatever came before.
    """
    base = previous or empty()
    pool: list[Point] = list(base["points"])
    spoken, now = Counter(base["speakers"]), base["covers_through_seq"]
    said = Counter(base["terms"])
    room = max(_POOL_FLOOR, min(_POOL_CEILING, max_tokens // _TOKENS_A_POINT))
    for start in range(0, len(entries), _BATCH):
        for entry in entries[start : start + _BATCH]:
            now = max(now, entry["seq"])
            if entry["speaker"] in spoken or len(spoken) < MAX_SPEAKERS:
                spoken[entry["speaker"]] += 1
            if not kind_of(entry).mechanical:
                said.update(terms(entry["content"]))
            pool += read_entry(entry, said, max(MAX_POINT, errors * CHARS_A_TOKEN))
        if len(pool) > 2 * room + _BATCH:
            pool = rank(pool, spoken, said, now, 2 * errors * CHARS_A_TOKEN).points[:room]
    folded = SummaryPoints(
        **{
            **empty(),
            "points": pool,
            "messages": base["messages"] + len(entries),
            "speakers": dict(spoken),
            "terms": dict(sorted(said.items(), key=lambda item: (-item[1], item[0]))[:MAX_TERMS]),
            "covers_through_seq": now,
        }
    )
    laid = lay_out(folded, max_tokens=max_tokens, count=count, names=names)
    return SummaryPoints(**{**laid, "points": laid["points"][: max(room, laid["shown"])]})

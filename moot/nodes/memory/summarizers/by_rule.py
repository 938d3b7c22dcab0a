"""`rule-based`: the summariser that needs no model, and that stands in for any that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from moot.nodes.memory.summarizers.points import Point
from moot.nodes.memory.summarizers.rule_based import SummaryPoints, empty, fold, lay_out, render
from moot.nodes.memory.summarizers.summarizer import Draft, Summarizing, SummaryRequest


class RuleBased:
    """Rolling summary by rule: the points worth keeping, with the messages behind them."""

    name = "rule-based"

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Fold what is new into the points so far, all that was said where there are none; yields no call."""
        yield from ()
        previous = pool_of(request.previous)
        entries = request.past if previous is None else request.entries
        names = request.config.names()
        points = fold(previous, entries, max_tokens=request.max_tokens, count=request.count, names=names)
        return Draft(render(points, names), cast(dict[str, Any], points), self.name)


def pool_of(summary: Mapping[str, Any]) -> SummaryPoints | None:
    """Return the pool of points behind a summary; of one from a document, the points that it showed.

    `None` where there is no pool of all that the summary covers, as behind another package's.
    """
    pool = summary.get("points") or {}
    covered = int(summary.get("covers_through_seq", -1))
    if isinstance(pool, Mapping):
        return cast(SummaryPoints, pool) if pool.get("covers_through_seq") == covered else None
    speakers = {str(point["speaker"]): 1 for point in pool}
    points = [Point(**{**_UNKNOWN, **point}) for point in pool]  # type: ignore[typeddict-item]  # by its fields
    messages = int(summary.get("messages", len(pool)))
    return {
        **empty(),
        "points": points,
        "messages": messages,
        "speakers": speakers,
        "covers_through_seq": covered,
    }


_UNKNOWN: dict[str, Any] = {"kind": "claim", "about": [], "round": 0, "weight": 3.0, "explicit": False}
"""What a document does not tell of a point."""


def render_within(points: Mapping[str, Any], request: SummaryRequest, max_tokens: int) -> str:
    """Return the points as text of at most `max_tokens`, laid out anew."""
    names = request.config.names()
    laid = lay_out(cast(SummaryPoints, points), max_tokens=max_tokens, count=request.count, names=names)
    return render(laid, names)

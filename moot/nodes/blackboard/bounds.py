"""How large the blackboard may grow: every row is bounded, so that turn 10,000 costs what turn 100 did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from moot.nodes.text.plain import clip, inert

TEXT = 160
"""Characters of a position, a claim or a concession."""
SHORT = 100
"""Characters of a piece of evidence or of what an accord is on."""
ASPECTS = 8
EVIDENCE = 3
CHALLENGES = 3
SOURCES = 4
"""Message ids behind one item."""
RELATIONS = 4
CONCESSIONS = 5
HISTORY = 5
"""Shifts and superseded positions: the first and the newest."""
CLAIMS = 24
"""Contested claims on the board; settled ones make room first, the oldest before the rest."""
READ_AT_ONCE = 64
"""Entries that one pass reads: of a longer import, the newest."""

Item = TypeVar("Item")


def noted(text: str, limit: int = TEXT) -> str:
    """Return somebody's words as they may stand on the blackboard: one line, no markup, at most `limit`."""
    return clip(inert(" ".join(map(inert, text.splitlines()))), limit)


def keep_ends(items: Sequence[Item], most: int) -> list[Item]:
    """Return the first and the newest items, `most` in all."""
    return [*items[:1], *items[1:][-(most - 1) :]] if len(items) > most else list(items)


def keep_newest(items: Sequence[Item], most: int) -> list[Item]:
    """Return the newest `most` distinct items, oldest first."""
    distinct: list[Item] = []
    for item in reversed(items):
        if item not in distinct:
            distinct.append(item)
    return distinct[:most][::-1]

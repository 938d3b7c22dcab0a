"""How long words may be that the blackboard repeats: one line, no markup."""

from collections.abc import Mapping
from typing import Any

from moot.nodes.text.plain import clip, inert

TEXT = 160
"""Characters of a quotation or a proposition, where it is repeated."""
SHORT = 100
"""Characters of what stands beside something else in a line."""
SOURCES = 4
"""Message ids behind one item."""
OVERALL = "overall"
"""The aspect of a topic that is not split."""


def quotation(note: Mapping[str, Any], limit: int = SHORT) -> str:
    """Return a note's quotation with the message that it is from, in a line of ours."""
    return f"“{noted(note['quote'], limit)}” [{note['message_id']}]"


def noted(text: str, limit: int = TEXT) -> str:
    """Return somebody's words as they may stand on the blackboard: one line, no markup, at most `limit`."""
    return clip(inert(" ".join(map(inert, text.splitlines()))), limit)

"""Which tool the offline model calls: one of those offered, once, on the topic's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from moot.nodes.models.offline.reading import Reading


def tool_call(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], reading: Reading
) -> dict[str, Any] | None:
    """Return the call to make before speaking, `None` where one was made or nothing offered can be used."""
    if any(isinstance(message, ToolMessage) for message in messages):
        return None
    words = " ".join(reading.focus[:3])
    sensible: dict[str, dict[str, Any]] = {
        "search": {"query": words},
        "search_debate": {"query": words},
        "list_files": {},
        "calculator": {"expression": f"{reading.dice('percent') % 90 + 10} / 100 * 12"},
    }
    for tool in tools:
        name = tool["function"]["name"]
        if name in sensible and (words or "query" not in sensible[name]):
            return {"id": "call_1", "name": name, "args": sensible[name], "type": "tool_call"}
    return None

"""What an MCP client sees of Moot's tools: their size, hints and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from moot import DebateConfig, aopen_debates
from moot.plugins.web.debate_host import DebateHost
from moot.plugins.web.mcp_server import McpDebates
from moot.text.tokens import counter

T = TypeVar("T")
MAX_LISTING = 2_500
"""Maximum number of tokens of the list of tools, which agents read in every prompt (o200k)."""


def with_server(use: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
    async def main() -> T:
        async with aopen_debates(":memory:") as debates:
            return await use(McpDebates(DebateHost(debates, DebateConfig(turns=2))).server())

    return asyncio.run(main())


def listed_tools() -> dict[str, dict[str, Any]]:
    tools = with_server(lambda server: server.list_tools())
    rows = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    return {row["name"]: row for row in rows}


def test_list_of_tools_is_short() -> None:
    assert counter()(json.dumps({"tools": list(listed_tools().values())})) <= MAX_LISTING


def test_hints_say_that_no_tool_destroys_and_which_ones_call_a_model() -> None:
    tools = listed_tools()
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert all(tool["title"] for tool in tools.values())
    assert not any(each["destructiveHint"] for each in hints.values())
    assert {name for name, each in hints.items() if each["readOnlyHint"]} == {
        *("status", "result", "ask", "compare")
    }
    assert {name for name, each in hints.items() if each["openWorldHint"]} == {
        *("debate", "start", "answer", "ask")
    }


WRONG = {
    "unknown argument": ("debate", {"question": "Trams?", "turnz": 2}, "unknown argument 'turnz': use only"),
    "wrong type": ("debate", {"question": "Trams?", "turns": "many"}, "turns"),
    "unknown debate": ("status", {"debate": "trams"}, "read the resource moot://debates"),
}


@pytest.mark.parametrize(("tool", "arguments", "told"), WRONG.values(), ids=list(WRONG))
def test_errors_are_plain_and_advise_what_an_agent_can_do(
    tool: str, arguments: dict[str, Any], told: str
) -> None:
    async def call(server: Any) -> str:
        try:
            return str(await server.call_tool(tool, arguments))
        except Exception as error:  # version 2 of the package raises, version 1 does, too
            return str(error)

    text = with_server(call)
    assert told in text
    assert not [word for word in ("pydantic", "validation error", "`moot ", "://errors") if word in text]

"""LangChain tools that a Python program passes to debaters."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

from moot import ConfigError, DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.stages import authorize, requested_config
from tests.support.fakes import FakeModel, fake_reply

CALLS: list[str] = []


@tool
def lookup(word: str, places: list[str], user: Annotated[str, InjectedToolArg] = "") -> list[dict[str, str]]:
    """Look up a word in places."""
    CALLS.append(word)
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    return [*({"type": "text", "text": f"{word} is in {place}."} for place in places), image]


@tool
async def weather(town: str) -> str:
    """Return the weather in a town."""
    await asyncio.sleep(0)
    return f"It rains in {town}."


@tool
def broken(town: str) -> str:
    """Fail."""
    raise ValueError(f"no {town}")


@tool
def refusing(town: str) -> str:
    """Refuse."""
    raise ToolException(f"{town} is unknown")


TOOLS = {"lookup": lookup, "weather": weather, "broken": broken, "refusing": refusing}
ADA: Any = {"name": "Ada", "tools": list(TOOLS)}
CONFIG = DebateConfig.model_validate({"turns": 1, "debaters": [ADA, {"name": "Bo"}]})


def _call_every_tool(call: ModelCall) -> Reply:
    """Call every tool, then write a message."""
    if not call.tools or call.schema:
        return fake_reply(call)
    if any(message["role"] == "tool" for message in call.messages):
        return Reply(text="I have looked.", model="m")
    arguments: list[tuple[str, Any]] = [
        ("lookup", {"word": "tram", "places": ["Bern", "Basel"]}),
        ("lookup", {"word": 7}),
        ("weather", {"town": "Bern"}),
        ("broken", {"town": "Bern"}),
        ("refusing", {"town": "Bern"}),
    ]
    calls = tuple({"id": "c", "name": name, "args": args} for name, args in arguments)
    return Reply(text="", tool_calls=calls, model="m")


def test_python_tools_are_called_and_their_results_become_entries() -> None:
    model = FakeModel(_call_every_tool)
    CALLS.clear()
    graph: Any = build_graph(InMemorySaver(), environment=model.environment(), tools=TOOLS)
    thread: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"topic": "Trams?"}, thread, context=CONFIG)
    entries = graph.get_state(thread).values["full_transcript"]
    results = [entry["content"] for entry in entries if entry["kind"] == "tool_result"]
    notice = "[Left out, because debates read only text: 1 image]"
    assert results[0] == f"lookup: tram is in Bern.\ntram is in Basel.\n{notice}"
    assert "error: " in results[1]
    assert results[2] == "weather: It rains in Bern."
    assert results[3].startswith("broken: error: ValueError: no Bern")
    assert results[4] == "refusing: error: Bern is unknown"
    assert CALLS == ["tram"]
    first = next(call for call in model.calls if call.tools)
    functions = {each["function"]["name"]: each["function"]["parameters"] for each in first.tools}
    assert functions["lookup"]["properties"].keys() == {"word", "places"}  # no injected argument
    assert functions["lookup"]["required"] == ["word", "places"]


def test_unknown_duplicate_and_invalid_tools_are_refused(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    with (
        open_debates(database, tools={"lookup": lookup}) as debates,
        pytest.raises(ConfigError, match=r"unknown tool '\w+': choose from calculator, .*lookup"),
    ):
        debates.start("Trams?", CONFIG)
    with pytest.raises(ConfigError, match="'calculator' is already the name of another tool"):
        open_debates(database, tools={"calculator": lookup})
    with pytest.raises(ConfigError, match="'look up' is not a valid tool name"):
        open_debates(database, tools={"look up": lookup})
    with pytest.raises(ConfigError, match="has the type function: pass a LangChain tool"):
        open_debates(database, tools={"mine": lambda: ""})  # type: ignore[dict-item]


def test_request_needs_permission_for_a_python_tool() -> None:
    asked = requested_config(
        DebateConfig(), {"debaters": [{"name": "Ada", "tools": ["lookup"]}, {"name": "Bo"}]}
    )
    with pytest.raises(ConfigError, match=r"debaters\.ada\.tools: 'lookup' needs the operator's permission"):
        authorize(asked, DebateConfig()).authorize()
    authorize(asked, CONFIG).authorize()

"""The private names of LangGraph and LangChain that Moot leans on still mean what they meant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from moot.state.langgraph_internals import TRIED, checkpointer_in, message_events, runs_next

THREAD: RunnableConfig = {"configurable": {"thread_id": "9d9b3c52-2f0a-4a77-8a51-6c1f0e7f3b11"}}


class Count(TypedDict):
    """A state."""

    count: int


def _changed(package: str, what: str) -> str:
    return (
        f"{package} {version(package)} does not {what} as {TRIED[package]} did: "
        "mend moot/state/langgraph_internals.py, or keep the older version"
    )


def test_a_node_finds_the_checkpointer_of_its_run_and_a_checkpoint_tells_which_node_is_next() -> None:
    seen: list[Any] = []

    def first(state: Count, config: RunnableConfig) -> Count:
        seen.append(checkpointer_in(config))
        return {"count": state["count"] + 1}

    builder = StateGraph(Count)
    builder.add_node("first", RunnableLambda(first))
    builder.add_node("second", lambda state: state)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda state: "second", ["second"])
    builder.add_edge("second", END)
    saver = InMemorySaver()
    builder.compile(saver).invoke({"count": 0}, THREAD)
    assert seen == [saver], _changed("langgraph", "hand a node its checkpointer")
    next_of = [
        {node for node in ("first", "second") if runs_next(stored.checkpoint, node)}
        for stored in saver.list(THREAD)
    ]
    assert next_of == [set(), {"second"}, {"first"}, set()], _changed("langgraph", "name what runs next")


def test_a_run_without_a_checkpointer_has_none() -> None:
    assert checkpointer_in({}) is None


def test_chunks_become_the_events_of_a_message_with_an_id_of_its_own() -> None:
    async def chunks() -> AsyncIterator[ChatGenerationChunk]:
        for text in ("One ", "two."):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, id="another"))

    async def events() -> list[Any]:
        return [event async for event in message_events(chunks(), "m000007")]

    told = asyncio.run(events())
    names = [event["event"] for event in told]
    changed = _changed("langchain-core", "turn chunks into events")
    assert (names[0], names[-1]) == ("message-start", "message-finish"), changed
    assert told[0]["id"] == "m000007", changed

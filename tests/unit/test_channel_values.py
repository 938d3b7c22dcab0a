"""Values that `update_state` writes into channels are validated; nothing invalid is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.graph.debate import build_graph
from moot.graph.runnable import DebateGraph
from moot.state.conversation import ConversationState
from moot.state.errors import InputError, UserError

THREAD: Any = {"configurable": {"thread_id": "11111111-1111-1111-1111-111111111111"}}
CONTEXT: Any = {"turns": 3, "judge": {"enabled": False}}
WRONG: dict[str, tuple[object, str]] = {
    "a number as configuration": (7, "config"),
    "an unknown setting": ({"turnz": 3}, "config"),
    "a wrong setting": ({"turns": "many"}, "config"),
    "another person's limit": ({"limits": {"total_tokens": -1}}, "config"),
    "words as a step": ("x", "step"),
    "half a step": ({"number": 3}, "step"),
    "a floor without a speaker": (
        {"number": 3, "kind": "turn", "phase": "p", "round": 1, "turns": [{"targets": []}]},
        "step",
    ),
    "numbers as minutes": ([1], "claim_events"),
    "half a summary": ({"text": "All agree."}, "rolling_summary"),
    "half a perspective": ({"ada": {"text": "All agree."}}, "perspective_summaries"),
    "money back": ({"cost_usd": -5.0}, "usage"),
    "another usage": ({"__overwrite__": {}}, "usage"),
    "words as a count": ("3", "turn_count"),
    "a negative count": (-1, "turn_count"),
    "more debaters than a request may have": ({"debaters": [{"name": f"d{n}"} for n in range(51)]}, "config"),
    "an unknown status": ("merry", "status"),
    "another topic": ("Buses?", "topic"),
    "no topic": (None, "topic"),
    "a protocol's own data": ({"aspects": 7}, "protocol_state"),
    "positions of no debate": ({"advocate": [1]}, "cross_debate_memory"),
    "a misspelt channel": ({}, "roling_summary"),
    "words as entries": ("x", "full_transcript"),
    "numbers as pins": ([7], "pinned"),
    "a number as verdict": (7, "verdict"),
    "a number as message": ([7], "messages"),
    "no message": (None, "messages"),
    "an operation on the window": ([{"op": "drop_through", "seq": 99}], "messages"),
}


@pytest.fixture
def graph() -> DebateGraph:
    made = build_graph(InMemorySaver())
    made.invoke({"topic": "Trams?"}, THREAD, context=CONTEXT, interrupt_after=["turn"])
    return made


@pytest.mark.parametrize(("value", "channel"), WRONG.values(), ids=WRONG)
def test_an_update_that_a_debate_could_not_run_on_with_is_refused(
    value: object, channel: str, graph: DebateGraph
) -> None:
    before = graph.get_state(THREAD)
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.update_state(THREAD, {channel: value})
    after = graph.get_state(THREAD)
    assert (after.config, after.values) == (before.config, before.values)
    assert graph.invoke(None, THREAD)["status"] == "done"


@pytest.mark.parametrize(
    "channel", sorted(ConversationState.__annotations__.keys() - {"messages", "settings"})
)
def test_no_channel_takes_none(channel: str, graph: DebateGraph) -> None:
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.update_state(THREAD, {channel: None})


def test_an_async_update_is_checked_as_well() -> None:
    async def update() -> None:
        graph = build_graph(InMemorySaver())
        await graph.ainvoke({"topic": "Trams?"}, THREAD, context=CONTEXT, interrupt_after=["turn"])
        await graph.aupdate_state(THREAD, {"claim_events": [1]})

    with pytest.raises(UserError, match=r"^claim_events\.0"):
        asyncio.run(update())


def test_what_an_update_of_the_configuration_leaves_out_stays(graph: DebateGraph) -> None:
    before = graph.get_state(THREAD).values["config"]
    graph.update_state(THREAD, {"config": {"turns": 5}})
    assert graph.get_state(THREAD).values["config"] == {**before, "turns": 5}
    graph.invoke(None, THREAD)
    assert graph.get_state(THREAD).values["turn_count"] == 5


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        ("context_documents", "x"),
        ("context_documents", [7]),
        ("full_transcript", 7),
        ("full_transcript", [7]),
    ],
)
def test_a_runs_input_is_checked_as_well(channel: str, value: object) -> None:
    graph, given = build_graph(InMemorySaver()), {"topic": "Trams?", channel: value}
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.invoke(given, THREAD, context=CONTEXT)
    assert not graph.get_state(THREAD).values


def test_a_graph_with_a_checkpointer_asks_for_a_thread() -> None:
    graph = build_graph(InMemorySaver())
    with pytest.raises(InputError, match="needs a thread"):
        graph.invoke({"topic": "Trams?"})
    with pytest.raises(InputError, match="thread_id"):
        graph.update_state({}, {"topic": "Trams?"})

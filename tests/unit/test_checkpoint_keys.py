"""Keys of a run's config that only a parent graph can set, such as `checkpoint_ns`."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from moot import DebateConfig, build_graph
from moot.graph.runnable import DebateGraph
from moot.state.errors import DebateBusy, InputError, UserError
from moot.storage.checkpoints import open_saver
from tests.support.fakes import FakeModel

THREAD = "11111111-1111-1111-1111-111111111111"
CONTEXT: Any = {"turns": 3, "judge": {"enabled": False}}
UNKNOWN = "1f1e7d1f-0000-6633-8000-2085645c49d8"
PARENT_KEYS: dict[str, dict[str, Any]] = {
    "a namespace": {"checkpoint_ns": "zz"},
    "a nested namespace": {"checkpoint_ns": f"debate:{UNKNOWN}|turn:{UNKNOWN}"},
    "a task": {"__pregel_task_id": "zz"},
    "a namespace and a task": {"checkpoint_ns": "zz", "__pregel_task_id": "zz"},
    "a function as a string": {"checkpoint_ns": "zz", "__pregel_task_id": "zz", "__pregel_read": "zz"},
    "a checkpointer as a string": {"__pregel_checkpointer": "zz"},
    "a checkpoint map": {"checkpoint_map": {"": UNKNOWN}},
    "a checkpoint map as a string": {"checkpoint_map": "zz"},
}


def thread(**sent: Any) -> Any:
    return {"configurable": {"thread_id": THREAD, **sent}}


@pytest.fixture
def graph() -> DebateGraph:
    made = build_graph(InMemorySaver())
    made.invoke({"topic": "Trams?"}, thread(), context=CONTEXT, interrupt_after=["turn"])
    return made


@pytest.mark.parametrize("sent", PARENT_KEYS.values(), ids=PARENT_KEYS)
@pytest.mark.parametrize(
    "graph_input",
    [
        None,
        {"topic": "Buses?"},
        {"messages": [("user", "Go on")]},
        Command(update={"protocol_state": {"aspects": ["x"]}}),
        Command(update={"config": {"debaters": [{"name": f"d{number}"} for number in range(300)]}}),
    ],
    ids=["nothing", "a topic", "a message", "internal data", "300 debaters"],
)
def test_a_client_cannot_run_a_debate_with_keys_of_a_parent_graph(
    sent: dict[str, Any], graph_input: Any, graph: DebateGraph
) -> None:
    before = graph.get_state(thread())
    with pytest.raises(InputError, match=f"^{next(iter(sent))}: "):
        graph.invoke(graph_input, thread(**sent))
    with pytest.raises(InputError, match=f"^{next(iter(sent))}: "):
        asyncio.run(graph.ainvoke(graph_input, thread(**sent)))
    assert graph.get_state(thread()) == before


@pytest.mark.parametrize("sent", PARENT_KEYS.values(), ids=PARENT_KEYS)
def test_a_client_cannot_update_a_debate_with_keys_of_a_parent_graph(
    sent: dict[str, Any], graph: DebateGraph
) -> None:
    before = graph.get_state(thread())
    with pytest.raises(InputError, match=f"^{next(iter(sent))}: "):
        graph.update_state(thread(**sent), {"round": 1})
    assert graph.get_state(thread()) == before


def test_a_run_accepts_the_checkpoint_keys_of_a_snapshot(graph: DebateGraph) -> None:
    place = graph.get_state(thread()).config["configurable"]
    named = thread(**place, checkpoint_map={"": place["checkpoint_id"]})
    assert graph.invoke(None, named)["status"] == "done"


def test_an_update_is_checked_if_the_thread_is_bound_with_with_config(graph: DebateGraph) -> None:
    bound, before = graph.with_config(thread()), graph.get_state(thread())
    with pytest.raises(InputError, match=r"^protocol_state: "):
        bound.invoke(Command(update={"protocol_state": {"aspects": ["x"]}}))
    assert graph.get_state(thread()) == before


def test_keys_of_a_parent_graph_do_not_bypass_the_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            graph = build_graph(saver, environment=FakeModel().environment())
            place = {"thread_id": str(uuid.uuid4())}
            parts = graph.astream({"topic": "T?"}, {"configurable": place}, context=DebateConfig(turns=3))
            async with aclosing(parts) as running:  # type: ignore[type-var]
                await anext(running)
                for sent in PARENT_KEYS.values():
                    with pytest.raises(UserError):
                        await graph.ainvoke(None, {"configurable": {**place, **sent}})
                with pytest.raises(DebateBusy):
                    await graph.ainvoke(None, {"configurable": place})
                async for _ in running:
                    pass
            assert (await graph.aget_state({"configurable": place})).values["turn_count"] == 3

    asyncio.run(scenario())


class Parent(TypedDict):
    messages: Annotated[list[Any], add_messages]


@pytest.mark.parametrize("called", [False, True], ids=["as a node", "from a node's function"])
def test_a_debate_runs_inside_a_parent_graph(called: bool) -> None:
    inner = build_graph().with_config(recursion_limit=50)
    node: Any = (lambda state: inner.invoke({"messages": state["messages"]})) if called else inner
    builder = StateGraph(Parent)
    builder.add_node("debate", node)
    builder.add_edge(START, "debate")
    builder.add_edge("debate", END)
    chat = builder.compile(InMemorySaver())
    for question in ("Trams?", "And buses?"):
        messages = chat.invoke({"messages": [HumanMessage(question)]}, thread())["messages"]
        assert messages[-1].name == "judge"


def test_a_parent_graph_can_update_the_state_of_its_debate() -> None:
    builder = StateGraph(Parent)
    inner: Any = build_graph()
    inner.interrupt_before_nodes = ["plan"]
    builder.add_node("debate", inner)
    builder.add_edge(START, "debate")
    builder.add_edge("debate", END)
    chat = builder.compile(InMemorySaver())
    chat.invoke({"messages": [HumanMessage("Trams?")]}, thread())
    (task,) = chat.get_state(thread(), subgraphs=True).tasks
    assert task.state is not None
    chat.update_state(task.state.config, {"round": 7})  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"^protocol_state"):
        chat.update_state(task.state.config, {"protocol_state": {"x": 1}})  # type: ignore[union-attr]
    (task,) = chat.get_state(thread(), subgraphs=True).tasks
    assert task.state.values["round"] == 7  # type: ignore[union-attr, index]

"""The Python API of the graph, with every checkpointer and run method."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from moot import DebateConfig, build_graph
from moot.calls.effects import Ask, NodeBody
from moot.calls.model_calls import ModelCall, Reply
from moot.runtime.context import NodeContext
from moot.runtime.environment import Environment
from moot.runtime.run_node import Node
from moot.storage.checkpoints import open_saver
from moot.storage.records import records_of
from tests.support.fakes import FakeModel, fake_reply
from tests.support.transcripts import message_texts

TOPIC = "Should cities ban private cars from their centres?"
THREAD: Any = {"configurable": {"thread_id": "2b6bb4d5-4f0f-4d52-93ae-0f5a35f2d9fe"}}
THREE_TURNS = DebateConfig(turns=3, seed=1)
MODES = ["values", "updates", "messages", "custom"]

OpenSaver = Callable[[Path], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[Any]:
    yield InMemorySaver()


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Any]:
    with SqliteSaver.from_conn_string(str(folder / "stock.sqlite")) as saver:
        yield saver


@asynccontextmanager
async def async_sqlite(folder: Path) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "stock.sqlite")) as saver:
        yield saver


@asynccontextmanager
async def moot_saver(folder: Path) -> AsyncIterator[Any]:
    async with open_saver(str(folder / "moot.sqlite")) as saver:
        yield saver


SYNC = ("invoke", "stream")
ASYNC = ("ainvoke", "astream")
SAVERS_AND_METHODS = [
    pytest.param(opened, method, id=f"{opened.__name__}-{method}")
    for opened, methods in (
        (in_memory, SYNC + ASYNC),
        (sqlite, SYNC),
        (async_sqlite, SYNC + ASYNC),
        (moot_saver, SYNC + ASYNC),
    )
    for method in methods
]  # LangGraph's `SqliteSaver` has no asynchronous methods
SAVERS = [
    pytest.param(opened, method, id=f"{opened.__name__}-{method}")
    for opened, method in (
        (in_memory, "invoke"),
        (sqlite, "invoke"),
        (async_sqlite, "ainvoke"),
        (moot_saver, "ainvoke"),
    )
]


async def run(graph: Any, method: str, graph_input: Any, **options: Any) -> list[tuple[str, Any]]:
    """Run a graph with one of its four methods.

    Synchronous methods run in a worker thread, as `AsyncSqliteSaver` requires.
    """
    if method in ("stream", "astream"):
        options["stream_mode"] = MODES
    if method == "astream":
        return [part async for part in graph.astream(graph_input, THREAD, **options)]
    if method == "ainvoke":
        return [("values", await graph.ainvoke(graph_input, THREAD, **options))]
    if method == "stream":
        return await asyncio.to_thread(lambda: list(graph.stream(graph_input, THREAD, **options)))
    return [("values", await asyncio.to_thread(lambda: graph.invoke(graph_input, THREAD, **options)))]


async def snapshot(graph: Any, method: str, config: Any = THREAD) -> Any:
    if method.startswith("a"):
        return await graph.aget_state(config)
    return await asyncio.to_thread(graph.get_state, config)


async def history(graph: Any, method: str) -> list[Any]:
    if method.startswith("a"):
        return [state async for state in graph.aget_state_history(THREAD)]
    return await asyncio.to_thread(lambda: list(graph.get_state_history(THREAD)))


async def update(graph: Any, method: str, config: Any, values: Any, node: str) -> Any:
    if method.startswith("a"):
        return await graph.aupdate_state(config, values, node)
    return await asyncio.to_thread(graph.update_state, config, values, node)


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, str, str]]:
    graph = build_graph(InMemorySaver())
    graph.invoke({"topic": TOPIC}, THREAD, context=THREE_TURNS)
    return message_texts(graph.get_state(THREAD).values)


@pytest.mark.parametrize(("opened", "method"), SAVERS_AND_METHODS)
def test_every_saver_and_run_method_gives_the_same_debate(
    opened: OpenSaver, method: str, tmp_path: Path, expected: list[tuple[str, str, str]]
) -> None:
    async def debate() -> tuple[list[tuple[str, Any]], Any]:
        async with opened(tmp_path) as saver:
            graph = build_graph(saver)
            parts = await run(graph, method, {"topic": TOPIC}, context=THREE_TURNS)
            return parts, (await snapshot(graph, method)).values

    parts, state = asyncio.run(debate())
    assert message_texts(state) == expected
    assert parts[-1][1]["status"] == "done"
    if "stream" not in method:
        return
    assert {mode for mode, _ in parts} == set(MODES)
    streamed: dict[tuple[str, str], str] = {}
    for mode, payload in parts:
        if mode == "messages":
            name = (payload[0].id, payload[0].name)
            streamed[name] = streamed.get(name, "") + payload[0].text
    assert streamed == {(each.id, each.name): each.text for each in state["messages"]}


def test_run_needs_only_a_topic() -> None:
    result = build_graph().invoke({"topic": TOPIC})
    assert set(result) == {"topic", "verdict", "solution", "answer", "status", "messages", "ui"}
    assert result["verdict"]["status"] == "ok"


class NodeState(TypedDict, total=False):
    texts: list[str]
    usage: dict[str, float]


def call(text: str) -> ModelCall:
    return ModelCall(purpose="turn", model="m", messages=({"role": "user", "content": text},), max_tokens=9)


def one_node(body: Any, env: Environment, saver: Any) -> Any:
    builder = StateGraph(NodeState)
    builder.add_node("before", lambda state: {})
    builder.add_node("node", Node("node", body, env))
    builder.add_edge(START, "before")
    builder.add_edge("before", "node")
    builder.add_edge("node", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize(("opened", "method"), SAVERS)
def test_resumed_node_reuses_replies_and_a_fork_requests_new_ones(
    opened: OpenSaver, method: str, tmp_path: Path
) -> None:
    broken = True
    asked: Counter[str] = Counter()

    def take(request: ModelCall) -> Reply:
        word = request.messages[0]["content"]
        asked[word] += 1
        return Reply(text=f"{word}{asked[word]}")

    model = FakeModel(take)

    def fragile(context: NodeContext) -> NodeBody:
        first = yield [call("a")]
        second = yield [call("b"), call("c")]
        if broken:
            raise OSError("the process died here")
        (last,) = yield [call("d")]
        return {"texts": [reply.text for reply in (*first, *second, last)]}

    async def story() -> tuple[Any, Any, Any]:
        nonlocal broken
        async with opened(tmp_path) as saver:
            graph = one_node(fragile, model.environment(), saver)
            with pytest.raises(OSError, match="died"):
                await run(graph, method, {})
            broken = False
            resumed = (await run(graph, method, None))[0][1]["texts"]
            before = next(state for state in await history(graph, method) if state.next == ("node",))
            forked = await update(graph, method, before.config, {"texts": []}, "before")
            options = {"config": forked}
            again = await (
                graph.ainvoke(None, **options)
                if method == "ainvoke"
                else asyncio.to_thread(graph.invoke, None, **options)
            )
            return resumed, again["texts"], len(model.calls)

    resumed, again, calls = asyncio.run(story())
    assert resumed == ["a1", "b1", "c1", "d1"]
    assert again == ["a2", "b2", "c2", "d2"]
    assert calls == 8


@pytest.mark.parametrize(("opened", "method"), SAVERS)
def test_debate_forked_in_its_own_thread_requests_new_replies(
    opened: OpenSaver, method: str, tmp_path: Path
) -> None:
    model = FakeModel(
        lambda asked: fake_reply(asked) if asked.schema else Reply(text=f"take {len(model.calls)}")
    )

    async def story() -> tuple[Any, Any]:
        async with opened(tmp_path) as saver:
            graph = build_graph(saver, environment=model.environment())
            config = DebateConfig(turns=2, openings="sequential")
            await run(graph, method, {"topic": TOPIC}, context=config)
            first = message_texts((await snapshot(graph, method)).values)
            at = next(
                state
                for state in await history(graph, method)
                if state.next == ("plan",) and state.values["turn_count"] == 1
            )
            await update(graph, method, at.config, {"round": 1}, "trim")
            await run(graph, method, None)
            return first, message_texts((await snapshot(graph, method)).values)

    first, second = asyncio.run(story())
    assert [text for *_, text in first] == [TOPIC, "take 1", "take 2"]
    assert second[:2] == first[:2]
    assert second[2][2] not in {"take 1", "take 2"}
    assert len(second) == 3


def test_question_to_a_person_survives_reopening_the_database(tmp_path: Path) -> None:
    def asking(context: NodeContext) -> NodeBody:
        (reply,) = yield [call("before")]
        first = yield Ask({"question": reply.text})
        (more,) = yield [call(first)]
        second = yield Ask({"question": more.text})
        return {"texts": [reply.text, more.text, second]}

    model = FakeModel(lambda asked: Reply(text=asked.messages[0]["content"].upper()))

    def go_on(graph_input: Any) -> Any:
        with SqliteSaver.from_conn_string(str(tmp_path / "stock.sqlite")) as saver:
            return one_node(asking, model.environment(), saver).invoke(graph_input, THREAD)

    assert go_on({})["__interrupt__"][0].value == {"question": "BEFORE"}
    assert go_on(Command(resume="why"))["__interrupt__"][0].value == {"question": "WHY"}
    assert go_on(Command(resume="because"))["texts"] == ["BEFORE", "WHY", "because"]
    assert [asked.messages[0]["content"] for asked in model.calls] == ["before", "why"]


STRICT = """
import sys
from moot import DebateConfig, open_debates
memory = {"keep_recent": 2, "summarize_every": 1}
with open_debates(sys.argv[1]) as debates:
    debate = debates.start("Should we?", DebateConfig(model="offline", turns=5, memory=memory))
    for event in debate.stream():
        if event["event"] == "summary":
            break
with open_debates(sys.argv[1]) as debates:
    document = debates.get(debate.id).run()
    assert document["status"] == "done", document["status"]
    assert document["summaries"], "no summary"
    serializer = debates.graph.checkpointer.serde
from dataclasses import dataclass
@dataclass
class Ours:
    word: str
tag, blob = serializer.dumps_typed({"ours": Ours("x" * 1000)})
assert not isinstance(serializer.loads_typed((tag, blob))["ours"], Ours), "not strict"
"""


def test_strict_msgpack_loads_a_debate_and_blocks_other_types(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STRICT, str(tmp_path / "strict.sqlite")],
        env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (blocked,) = done.stderr.splitlines()
    assert blocked.startswith("Blocked deserialization of __main__.Ours")


def test_pruning_drops_dead_branches_and_keeps_the_debate(tmp_path: Path) -> None:
    async def story() -> tuple[int, int, Any, Any]:
        async with open_saver(str(tmp_path / "moot.sqlite")) as saver:
            graph = build_graph(saver)
            await graph.ainvoke({"topic": TOPIC}, THREAD, context=THREE_TURNS)
            start = next(state for state in await history(graph, "ainvoke") if state.next == ("plan",))
            await graph.ainvoke(None, start.config)
            before, whole = (await graph.aget_state(THREAD)).values, len(await history(graph, "ainvoke"))
            await saver.aprune([THREAD["configurable"]["thread_id"]], strategy="keep_latest")
            after, left = (await graph.aget_state(THREAD)).values, len(await history(graph, "ainvoke"))
            return whole, left, before, after

    whole, left, before, after = asyncio.run(story())
    assert after == before
    assert left < whole


@pytest.mark.parametrize("opened", [in_memory, sqlite, async_sqlite])
def test_langgraph_savers_cause_no_warning_about_the_journal(
    opened: OpenSaver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def look() -> None:
        async with opened(tmp_path) as saver:
            records_of(saver).close()

    asyncio.run(look())
    assert "stores no journal" not in caplog.text

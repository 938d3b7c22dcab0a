"""Debates from Python: the graph with every saver and way of running, and the `Debates` API."""

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

from graph import DebateConfig, build_graph, open_debates
from nodes.driver import Ask, Body, NodeContext, as_node
from nodes.environment import Environment
from nodes.models.calls import ModelCall, Reply
from state.checkpoints import open_saver
from state.errors import ConfigError, DebateBusy, DebateExists, DebateNotFound, InputError
from state.writers import FileWriterLock
from tests.support.fakes import FakeModel, answer

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
async def moots_own(folder: Path) -> AsyncIterator[Any]:
    async with open_saver(str(folder / "moot.sqlite")) as saver:
        yield saver


SYNC = ("invoke", "stream")
ASYNC = ("ainvoke", "astream")
PAIRS = [
    pytest.param(opened, way, id=f"{opened.__name__}-{way}")
    for opened, ways in (
        (in_memory, SYNC + ASYNC),
        (sqlite, SYNC),
        (async_sqlite, SYNC + ASYNC),
        (moots_own, SYNC + ASYNC),
    )
    for way in ways
]  # LangGraph's `SqliteSaver` has no asynchronous methods
SAVERS = [
    pytest.param(opened, way, id=f"{opened.__name__}-{way}")
    for opened, way in (
        (in_memory, "invoke"),
        (sqlite, "invoke"),
        (async_sqlite, "ainvoke"),
        (moots_own, "ainvoke"),
    )
]


async def run(graph: Any, way: str, given: Any, **options: Any) -> list[tuple[str, Any]]:
    """Run a graph in one of its four ways; the synchronous ones on a thread, as `AsyncSqliteSaver` wants."""
    if way in ("stream", "astream"):
        options["stream_mode"] = MODES
    if way == "astream":
        return [part async for part in graph.astream(given, THREAD, **options)]
    if way == "ainvoke":
        return [("values", await graph.ainvoke(given, THREAD, **options))]
    if way == "stream":
        return await asyncio.to_thread(lambda: list(graph.stream(given, THREAD, **options)))
    return [("values", await asyncio.to_thread(lambda: graph.invoke(given, THREAD, **options)))]


async def snapshot(graph: Any, way: str, config: Any = THREAD) -> Any:
    if way.startswith("a"):
        return await graph.aget_state(config)
    return await asyncio.to_thread(graph.get_state, config)


async def history(graph: Any, way: str) -> list[Any]:
    if way.startswith("a"):
        return [state async for state in graph.aget_state_history(THREAD)]
    return await asyncio.to_thread(lambda: list(graph.get_state_history(THREAD)))


async def update(graph: Any, way: str, config: Any, values: Any, node: str) -> Any:
    if way.startswith("a"):
        return await graph.aupdate_state(config, values, node)
    return await asyncio.to_thread(graph.update_state, config, values, node)


def said(state: Any) -> list[tuple[str, str, str]]:
    transcript = state["full_transcript"] if "full_transcript" in state else state["transcript"]
    return [(entry["id"], entry["speaker"], entry["content"]) for entry in transcript]


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, str, str]]:
    graph = build_graph(InMemorySaver())
    graph.invoke({"topic": TOPIC}, THREAD, context=THREE_TURNS)
    return said(graph.get_state(THREAD).values)


@pytest.mark.parametrize(("opened", "way"), PAIRS)
def test_every_saver_and_way_of_running_gives_the_same_debate(
    opened: OpenSaver, way: str, tmp_path: Path, expected: list[tuple[str, str, str]]
) -> None:
    async def debate() -> tuple[list[tuple[str, Any]], Any]:
        async with opened(tmp_path) as saver:
            graph = build_graph(saver)
            parts = await run(graph, way, {"topic": TOPIC}, context=THREE_TURNS)
            return parts, (await snapshot(graph, way)).values

    parts, state = asyncio.run(debate())
    assert said(state) == expected
    assert parts[-1][1]["status"] == "done"
    if "stream" not in way:
        return
    assert {mode for mode, _ in parts} == set(MODES)
    heard: dict[tuple[str, str], str] = {}
    for mode, payload in parts:
        if mode == "messages":
            name = (payload[0].id, payload[0].name)
            heard[name] = heard.get(name, "") + payload[0].text
    assert [(*name, text) for name, text in heard.items()] == expected


def test_the_topic_is_all_that_a_run_needs() -> None:
    result = build_graph().invoke({"topic": TOPIC})
    assert set(result) == {"topic", "verdict", "solution", "status", "messages"}
    assert result["verdict"]["status"] == "ok"


class Said(TypedDict, total=False):
    said: list[str]
    usage: dict[str, float]


def call(text: str) -> ModelCall:
    return ModelCall(purpose="turn", model="m", messages=({"role": "user", "content": text},), max_tokens=9)


def one_node(body: Any, env: Environment, saver: Any) -> Any:
    builder = StateGraph(Said)
    builder.add_node("before", lambda state: {})
    builder.add_node("node", as_node("node", body, env))
    builder.add_edge(START, "before")
    builder.add_edge("before", "node")
    builder.add_edge("node", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize(("opened", "way"), SAVERS)
def test_replies_of_a_batch_that_broke_are_served_and_a_fork_samples_anew(
    opened: OpenSaver, way: str, tmp_path: Path
) -> None:
    broken = True
    asked: Counter[str] = Counter()

    def take(request: ModelCall) -> Reply:
        word = request.messages[0]["content"]
        asked[word] += 1
        return Reply(text=f"{word}{asked[word]}")

    model = FakeModel(take)

    def fragile(state: Any, context: NodeContext) -> Body:
        first = yield [call("a")]
        second = yield [call("b"), call("c")]
        if broken:
            raise OSError("the process died here")
        (last,) = yield [call("d")]
        return {"said": [reply.text for reply in (*first, *second, last)]}

    async def story() -> tuple[Any, Any, Any]:
        nonlocal broken
        async with opened(tmp_path) as saver:
            graph = one_node(fragile, model.environment(), saver)
            with pytest.raises(OSError, match="died"):
                await run(graph, way, {})
            broken = False
            resumed = (await run(graph, way, None))[0][1]["said"]
            before = next(state for state in await history(graph, way) if state.next == ("node",))
            forked = await update(graph, way, before.config, {"said": []}, "before")
            options = {"config": forked}
            again = await (
                graph.ainvoke(None, **options)
                if way == "ainvoke"
                else asyncio.to_thread(graph.invoke, None, **options)
            )
            return resumed, again["said"], len(model.calls)

    resumed, again, calls = asyncio.run(story())
    assert resumed == ["a1", "b1", "c1", "d1"]
    assert again == ["a2", "b2", "c2", "d2"]
    assert calls == 8


@pytest.mark.parametrize(("opened", "way"), SAVERS)
def test_a_debate_forked_in_its_own_thread_samples_anew(opened: OpenSaver, way: str, tmp_path: Path) -> None:
    model = FakeModel(lambda asked: answer(asked) if asked.schema else Reply(text=f"take {len(model.calls)}"))

    async def story() -> tuple[Any, Any]:
        async with opened(tmp_path) as saver:
            graph = build_graph(saver, environment=model.environment())
            await run(graph, way, {"topic": TOPIC}, context=DebateConfig(turns=2))
            first = said((await snapshot(graph, way)).values)
            at = next(
                state
                for state in await history(graph, way)
                if state.next == ("plan",) and state.values["turn_count"] == 1
            )
            await update(graph, way, at.config, {"round": 1}, "trim")
            await run(graph, way, None)
            return first, said((await snapshot(graph, way)).values)

    first, second = asyncio.run(story())
    assert [text for *_, text in first] == [TOPIC, "take 1", "take 2"]
    assert second[:2] == first[:2]
    assert second[2][2] not in {"take 1", "take 2"}
    assert len(second) == 3


def test_a_question_to_a_person_outlives_its_process_in_a_sync_graph(tmp_path: Path) -> None:
    def asking(state: Any, context: NodeContext) -> Body:
        (reply,) = yield [call("before")]
        first = yield Ask({"question": reply.text})
        (more,) = yield [call(first)]
        second = yield Ask({"question": more.text})
        return {"said": [reply.text, more.text, second]}

    model = FakeModel(lambda asked: Reply(text=asked.messages[0]["content"].upper()))

    def go_on(given: Any) -> Any:
        with SqliteSaver.from_conn_string(str(tmp_path / "stock.sqlite")) as saver:
            return one_node(asking, model.environment(), saver).invoke(given, THREAD)

    assert go_on({})["__interrupt__"][0].value == {"question": "BEFORE"}
    assert go_on(Command(resume="why"))["__interrupt__"][0].value == {"question": "WHY"}
    assert go_on(Command(resume="because"))["said"] == ["BEFORE", "WHY", "because"]
    assert [asked.messages[0]["content"] for asked in model.calls] == ["before", "why"]


STRICT = """
import sys
from graph import DebateConfig, open_debates
memory = {"keep_recent": 2, "summarize_every": 1}
with open_debates(sys.argv[1]) as debates:
    debate = debates.start("Should we?", DebateConfig(turns=5, memory=memory))
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


def test_strict_msgpack_loads_a_whole_debate_and_nothing_foreign(tmp_path: Path) -> None:
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


# The Debates API


def test_a_debate_runs_from_start_to_document(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="cars")
        assert debates.get("cars").row.status == "running"
        document = debate.run()
        assert document["format"] == "moot.debate/1"
        assert (document["status"], document["name"]) == ("done", "cars")
        assert document["verdict"]["status"] == "ok"
        assert [row.turns for row in debates.rows()] == [3]
        assert debate.is_over()


def test_events_tell_a_debate_word_by_word(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        events = list(debate.stream())
        transcript = debate.document()["transcript"]
    words = {entry["id"]: "" for entry in transcript[1:]}
    for event in events:
        if event["event"] == "token":
            words[event["id"]] += event["text"]
    assert words == {entry["id"]: entry["content"] for entry in transcript[1:]}
    assert [event["entry"] for event in events if event["event"] == "entry"] == transcript[1:]
    assert events[-1] == {"event": "end", "status": "done", "reason": "all 3 turns are taken"}


def test_a_stream_closed_early_is_resumed_to_the_same_end_and_pays_no_call_twice(tmp_path: Path) -> None:
    config = DebateConfig(turns=4)
    whole, stopped = FakeModel(), FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        uninterrupted = debates.start(TOPIC, config).run()
    database = str(tmp_path / "stopped.sqlite")
    with open_debates(database, environment=stopped.environment()) as debates:
        debate = debates.start(TOPIC, config, name="stopped")
        events = debate.stream()
        next(event for event in events if event["event"] == "entry" and event["entry"]["seq"] == 2)
        events.close()  # type: ignore[attr-defined]  # a generator
        assert debates.get("stopped").row.status == "paused"
    with open_debates(database, environment=stopped.environment()) as debates:
        document = debates.get("stopped").run()
    assert said(document) == said(uninterrupted)
    assert len(stopped.calls) == len(whole.calls)


def test_a_stop_at_any_event_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    config = DebateConfig(turns=3, memory={"keep_recent": 2, "summarize_every": 1})
    whole = FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        debate = debates.start(TOPIC, config)
        events = sum(1 for _ in debate.stream())
        uninterrupted = debate.document()
    database = str(tmp_path / "stopped.sqlite")
    for stop in range(events):
        model = FakeModel()
        with open_debates(database, environment=model.environment()) as debates:
            stream = debates.start(TOPIC, config, name=f"stopped-{stop}").stream()
            for _ in range(stop + 1):
                next(stream)
            stream.close()  # type: ignore[attr-defined]  # a generator
        with open_debates(database, environment=model.environment()) as debates:
            document = debates.get(f"stopped-{stop}").run()
        assert document["status"] == "done", stop
        assert said(document) == said(uninterrupted), stop
        assert len(model.calls) == len(whole.calls), stop


def test_a_run_that_ended_before_its_reader_stopped_is_done(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="over")
        events = debate.stream()
        next(event for event in events if event["event"] == "end")
        while not debate.is_over():
            pass
        events.close()  # type: ignore[attr-defined]  # a generator
        assert debates.get("over").row.status == "done"


def test_a_resume_may_give_more_turns_and_another_verdict(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        first = debate.run()
        second = debate.run(turns=2)
    assert said(second)[:4] == said(first)
    assert len(second["transcript"]) == 6
    assert second["status"] == "done"
    assert second["verdict"]["status"] == "ok"
    assert len(second["verdicts"]) > len(first["verdicts"])


def test_running_a_finished_debate_changes_nothing(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        first, paid = debate.run(), len(model.calls)
        assert debate.run() == first
    assert len(model.calls) == paid


def test_a_fork_keeps_the_beginning_and_leaves_its_source_alone(tmp_path: Path) -> None:
    model = FakeModel(lambda asked: answer(asked) if asked.schema else Reply(text=f"take {len(model.calls)}"))
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        source = debates.start(TOPIC, THREE_TURNS, name="source")
        original = source.run()
        forked = debates.get("source").fork(after=2, name="fork").run()
        assert source.document() == original
        assert debates.get("fork").row.parent == source.id
    assert said(forked)[:3] == said(original)[:3]
    assert said(forked)[3] != said(original)[3]
    assert len(forked["transcript"]) == 4
    assert forked["verdict"]["status"] == "ok"


def test_a_fork_may_go_on_longer_than_its_source(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.run()
        forked = source.fork().run(turns=1)
    assert len(forked["transcript"]) == 5


def test_a_fork_hears_what_is_said_from_its_own_floor(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.say("What about winter?")
        source.run()
        fork = source.fork()
        fork.say("And summer?")
        kinds = [(entry["kind"], entry["content"]) for entry in fork.run(turns=1)["transcript"]]
    assert ("interjection", "What about winter?") in kinds
    assert ("interjection", "And summer?") in kinds


def test_a_copied_thread_hears_what_is_said_from_its_own_floor(tmp_path: Path) -> None:
    target = "cf4f6d0e-6be1-4a7c-b9d6-3d4a7c6a8f01"

    async def copy(database: str, source: str) -> None:
        async with open_saver(database) as saver:
            await saver.acopy_thread(source, target)

    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates:
        source = debates.start(TOPIC, THREE_TURNS)
        source.say("What about winter?")
        source.run()
        asyncio.run(copy(database, source.id))
        debates.get(target).say("And summer?")
        said_there = [entry["content"] for entry in debates.get(target).run(turns=1)["transcript"]]
        assert "And summer?" in said_there
        assert said_there.count("What about winter?") == 1
        assert len(source.document()["transcript"]) == 5


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


def test_a_fork_after_an_entry_that_ended_no_step_is_refused(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        debate.run()
        with pytest.raises(InputError, match="entry 9"):
            debate.fork(after=9)
        assert len(debates.rows()) == 1


def test_a_deleted_debate_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS, name="cars")
        debate.run()
        debate.delete()
        with pytest.raises(DebateNotFound, match="cars"):
            debates.get("cars")
        assert debates.records.journal.replies(debate.id) == {}
        assert debates.start(TOPIC, THREE_TURNS, name="cars").document()["transcript"][1:] == []


@pytest.mark.parametrize(
    ("topic", "config", "error"),
    [
        pytest.param("  ", {}, InputError, id="empty topic"),
        pytest.param(TOPIC, {"protocol": "parliament"}, ConfigError, id="unknown protocol"),
        pytest.param(TOPIC, {"judge": {"rubric": "beauty"}}, ConfigError, id="unknown rubric"),
    ],
)
def test_what_cannot_run_is_refused_and_nothing_is_written(
    topic: str, config: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        with pytest.raises(error):
            debates.start(topic, DebateConfig(**config))
        assert debates.rows() == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debates.start(TOPIC, THREE_TURNS, name="cars")
        with pytest.raises(DebateExists, match="moot resume cars"):
            debates.start("Another topic", THREE_TURNS, name="cars")
        assert [row.topic for row in debates.rows()] == [TOPIC]


def test_the_api_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def cell() -> dict[str, Any]:
        with open_debates(str(tmp_path / "moot.sqlite")) as debates:
            return debates.start(TOPIC, THREE_TURNS).run()

    assert asyncio.run(cell())["status"] == "done"


SECOND = """
import sys
from graph import open_debates
from state.errors import DebateBusy
with open_debates(sys.argv[1]) as debates:
    try:
        debates.get("busy").run()
    except DebateBusy as error:
        print(error.pid)
"""


def test_a_second_process_is_refused_while_the_first_one_runs(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    with open_debates(database) as debates:
        events = debates.start(TOPIC, THREE_TURNS, name="busy").stream()
        next(events)
        second = subprocess.run(
            [sys.executable, "-c", SECOND, database], capture_output=True, text=True, check=True
        )
        assert second.stdout.split() == [str(os.getpid())]
        assert list(events)[-1]["status"] == "done"
    with open_debates(database) as debates:
        assert debates.get("busy").run()["status"] == "done"


def test_a_debate_in_use_is_not_deleted(tmp_path: Path) -> None:
    another_writer = FileWriterLock(tmp_path / "moot.sqlite.locks")
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(TOPIC, THREE_TURNS)
        another_writer.acquire(debate.id)
        with pytest.raises(DebateBusy):
            debate.delete()
        another_writer.release(debate.id)
        assert len(debates.rows()) == 1

"""Node runner: batches in order, journal, interrupts, sync and async graphs."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from opentelemetry import trace
from typing_extensions import TypedDict

from moot.calls.effects import Ask, Emit, NodeBody
from moot.calls.model_calls import ModelCall, Reply
from moot.config.debate_config import LimitsConfig
from moot.runtime.context import NodeContext
from moot.runtime.environment import Environment
from moot.runtime.run_node import Node
from moot.state.errors import StorageError
from moot.storage.journal import MAX_REPLY_BYTES, Journal
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel
from tests.support.waiting import LONG_TIMEOUT_S

CONFIG: Any = {"configurable": {"thread_id": "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5"}}


class State(TypedDict, total=False):
    replies: list[str]
    usage: dict[str, float]


def _call(text: str) -> ModelCall:
    return ModelCall(purpose="turn", model="m", messages=({"role": "user", "content": text},), max_tokens=10)


def _graph(body: Any, env: Environment) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", Node("node", body, env))
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(checkpointer=InMemorySaver())


def _echo(call: ModelCall) -> Reply:
    return Reply(text=call.messages[0]["content"].upper(), usage={"prompt_tokens": 2, "completion_tokens": 1})


def two_batches(context: NodeContext) -> NodeBody:
    first = yield [_call("a"), _call("b")]
    second = yield [_call(first[0].text + "!")]
    return {"replies": [reply.text for reply in (*first, *second)]}


def test_a_node_body_receives_the_replies_of_each_batch_in_order() -> None:
    out = _graph(two_batches, FakeModel(_echo).environment()).invoke({}, CONFIG)
    assert out["replies"] == ["A", "B", "A!"]
    assert {key: out["usage"][key] for key in ("calls", "prompt_tokens", "completion_tokens")} == {
        "calls": 3,
        "prompt_tokens": 6,
        "completion_tokens": 3,
    }


def test_async_graphs_run_the_same_body() -> None:
    graph = _graph(two_batches, FakeModel(_echo).environment())
    assert asyncio.run(graph.ainvoke({}, CONFIG))["replies"] == ["A", "B", "A!"]


def test_calls_of_a_batch_run_concurrently_up_to_the_limit() -> None:
    running = peak = 0
    full = asyncio.Event()

    async def complete(call: ModelCall, models: Any, *, config: Any = None) -> Reply:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        if running == 8:
            full.set()
        await asyncio.wait_for(full.wait(), LONG_TIMEOUT_S)  # no call returns before the limit is reached
        running -= 1
        return Reply(text="x")

    def wide(context: NodeContext) -> NodeBody:
        yield [_call(str(n)) for n in range(20)]
        return {}

    _graph(wide, Environment(complete=complete)).invoke({}, CONFIG)
    assert peak == 8


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_interrupt_replays_the_batches_before_it_from_the_journal(mode: str) -> None:
    def asking(context: NodeContext) -> NodeBody:
        (reply,) = yield [_call("before")]
        answer = yield Ask({"question": reply.text})
        return {"replies": [reply.text, answer]}

    model = FakeModel(_echo)
    graph = _graph(asking, model.environment())

    def invoke(graph_input: Any) -> Any:
        return (
            graph.invoke(graph_input, CONFIG)
            if mode == "sync"
            else asyncio.run(graph.ainvoke(graph_input, CONFIG))
        )

    assert invoke({})["__interrupt__"][0].value == {"question": "BEFORE"}
    assert invoke(Command(resume="because"))["replies"] == ["BEFORE", "because"]
    assert len(model.calls) == 1


def test_a_resume_reads_the_replies_of_the_failed_run_from_the_journal() -> None:
    broken = True

    def fragile(context: NodeContext) -> NodeBody:
        first = yield [_call("a"), _call("b")]
        if broken:
            raise RuntimeError("the process died here")
        (last,) = yield [_call("c")]
        return {"replies": [*(reply.text for reply in first), last.text]}

    model = FakeModel(_echo)
    graph = _graph(fragile, model.environment())
    with pytest.raises(RuntimeError, match="died"):
        graph.invoke({}, CONFIG)
    broken = False
    assert graph.invoke(None, CONFIG)["replies"] == ["A", "B", "C"]
    assert [call.messages[0]["content"] for call in model.calls] == ["a", "b", "c"]


def test_failed_calls_are_not_journalled_and_are_repeated() -> None:
    failing = True

    def reply(call: ModelCall) -> Reply:
        return Reply(error="503") if failing else _echo(call)

    def strict(context: NodeContext) -> NodeBody:
        (got,) = yield [_call("a")]
        return {"replies": [got.require().text]}

    graph = _graph(strict, FakeModel(reply).environment())
    with pytest.raises(Exception, match="503"):
        graph.invoke({}, CONFIG)
    failing = False
    assert graph.invoke(None, CONFIG)["replies"] == ["A"]


def test_a_full_disk_stops_a_batch_before_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def require_space(self: object, size: int) -> None:
        raise StorageError(f"{size}: the disk is full")

    monkeypatch.setattr(SqliteSql, "require_space", require_space)
    model = FakeModel(_echo)
    with pytest.raises(StorageError, match=str(2 * MAX_REPLY_BYTES)):
        _graph(two_batches, model.environment()).invoke({}, CONFIG)
    assert not model.calls


def test_a_batch_makes_no_more_calls_after_a_reply_could_not_be_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put(self: object, *arguments: object) -> None:
        raise StorageError("the disk is full")

    def twenty(context: NodeContext) -> NodeBody:
        yield [_call(str(number)) for number in range(20)]
        return {}

    monkeypatch.setattr(Journal, "put", put)
    model = FakeModel(_echo)
    with pytest.raises(StorageError):
        _graph(twenty, model.environment()).invoke({}, CONFIG)
    assert len(model.calls) <= LimitsConfig().concurrency


def test_progress_goes_to_the_custom_stream() -> None:
    def telling(context: NodeContext) -> NodeBody:
        yield Emit({"event": "hello"})
        return {}

    graph = _graph(telling, FakeModel(_echo).environment())
    assert list(graph.stream({}, CONFIG, stream_mode="custom")) == [{"event": "hello"}]


def test_a_fork_in_the_same_thread_makes_new_calls() -> None:
    model = FakeModel(lambda call: Reply(text=f"take {len(model.calls)}"))

    def once(context: NodeContext) -> NodeBody:
        (got,) = yield [_call("same prompt")]
        return {"replies": [got.text]}

    graph = _graph(once, model.environment())
    assert graph.invoke({}, CONFIG)["replies"] == ["take 1"]
    before = next(state for state in graph.get_state_history(CONFIG) if state.next == ("node",))
    assert graph.invoke(None, before.config)["replies"] == ["take 2"]


@pytest.mark.parametrize("words", ["Yes.", 'Say "no"\nor 是.', ""])
def test_the_digest_of_a_call_is_the_hash_of_its_json(words: str) -> None:
    call = replace(_call(words), seed=3, fallbacks=('"messages": []',), temperature=0.5)
    asked = {
        "purpose": call.purpose,
        "model": call.model,
        "fallbacks": call.fallbacks,
        "messages": call.messages,
        "max_tokens": call.max_tokens,
        "temperature": call.temperature,
        "seed": call.seed,
        "schema": None,
        "tools": call.tools,
    }
    assert call.digest == hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def test_a_program_without_an_exporter_creates_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = trace.ProxyTracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", lambda _: pytest.fail("a span was created"))

    def body(context: NodeContext) -> NodeBody:
        (reply,) = yield [_call("one")]
        return {"replies": [reply.text]}

    graph = _graph(body, FakeModel(_echo).environment())
    assert graph.invoke({"replies": []}, CONFIG)["replies"] == ["ONE"]

"""Tools within a turn: the loop, transcript entries, budgets, limits and crashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.graph.debate import build_graph
from moot.plugins.tools.calculator import Calculator
from moot.prompts.templates import unfenced
from moot.state.errors import ConfigError
from moot.state.reducers import entry_id_of
from moot.text.tokens import counter, prompt_tokens
from moot.tools.registry import TOOLS
from moot.tools.tool import LEFT_OUT, ToolCall, ToolExchange, exchange_messages, wire_tokens
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
ADA: Any = {"name": "Ada", "tools": ["calculator", "search_debate"]}
COUNT = counter()


def _calls(*expressions: str) -> Reply:
    calls = tuple({"id": "same", "name": "calculator", "args": {"expression": each}} for each in expressions)
    return Reply(text="Let me see.", tool_calls=calls, model="m", usage={"completion_tokens": 5})


def _returned(call: ModelCall) -> list[str]:
    return [unfenced(message["content"]) for message in call.messages if message["role"] == "tool"]


def _once(call: ModelCall) -> Reply:
    """Reply first with two concurrent calculator calls, and then with their results."""
    if not call.tools or call.schema:
        return fake_reply(call)
    results = _returned(call)
    return Reply(text=f"It is {' and '.join(results)}.", model="m") if results else _calls("6 * 7", "1 / 0")


def _run(model: FakeModel, **data: Any) -> Any:
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    config = DebateConfig.model_validate({"turns": 1, "debaters": [ADA, {"name": "Bo"}], **data})
    graph.invoke({"topic": "Should we?"}, THREAD, context=config)
    return graph.get_state(THREAD).values


def test_tool_calls_and_results_are_entries_before_the_message() -> None:
    model = FakeModel(_once)
    state = _run(model)
    assert [(e["kind"], e["speaker"], e["targets"], e["content"]) for e in state["full_transcript"][1:]] == [
        ("tool_call", "ada", [], 'Let me see.\n\ncalculator {"expression": "6 * 7"}'),
        ("tool_result", "tools", ["m000001"], "calculator: 6 * 7 = 42"),
        ("tool_call", "ada", [], 'calculator {"expression": "1 / 0"}'),
        ("tool_result", "tools", ["m000003"], "calculator: error: division by zero"),
        ("speech", "ada", [], "It is 6 * 7 = 42 and error: division by zero."),
    ]
    assert [entry_id_of(each) for each in state["messages"][:-1]] == [
        e["id"] for e in state["full_transcript"]
    ]
    assert (state["turn_count"], state["receipts"][0]["seq"]) == (1, 5)
    assert [e["usage"] for e in state["full_transcript"][1:5:2]] == [{"completion_tokens": 5}, {}]


def test_the_message_is_streamed_under_the_id_of_its_entry() -> None:
    model = FakeModel(_once)
    _run(model)
    assert [call.stream_as and call.stream_as.entry_id for call in model.calls[:2]] == ["m000001", "m000005"]


def test_tool_call_ids_are_unique_even_if_the_providers_ids_are_not() -> None:
    model = FakeModel(_once)
    _run(model)
    request = next(message for message in model.calls[1].messages if message["role"] == "assistant")
    assert [call["id"] for call in request["tool_calls"]] == ["call_1", "call_2"]


def test_last_request_after_the_tool_limit_has_the_results_as_text() -> None:
    def insatiable(call: ModelCall) -> Reply:
        return _calls("1 + 1", "2 + 2") if call.tools else fake_reply(call)

    model = FakeModel(insatiable)
    state = _run(model, debaters=[{**ADA, "tool_call_limit": 3}])
    results = [e["content"] for e in state["full_transcript"] if e["kind"] == "tool_result"]
    assert results[:3] == ["calculator: 1 + 1 = 2", "calculator: 2 + 2 = 4", "calculator: 1 + 1 = 2"]
    assert "limit of 3 tool calls" in results[3]
    last = model.calls[2]
    assert not last.tools
    assert all(message["role"] in ("system", "user") for message in last.messages)
    assert "2 + 2 = 4" in last.messages[-1]["content"]
    assert state["full_transcript"][-1]["kind"] == "speech"


def test_an_unknown_tool_and_bad_arguments_return_errors() -> None:
    def wrong(call: ModelCall) -> Reply:
        if not call.tools or _returned(call):
            return fake_reply(call)
        calls = ({"id": "1", "name": "rm", "args": {}}, {"id": "2", "name": "calculator", "args": {"x": 1}})
        return Reply(tool_calls=calls, model="m")

    state = _run(FakeModel(wrong))
    results = [e["content"] for e in state["full_transcript"] if e["kind"] == "tool_result"]
    assert results[0] == "unknown_tool: error: there is no tool 'rm': use calculator, search_debate"
    assert results[1].startswith("calculator: error: argument 'expression'")


def test_a_debater_without_tools_is_offered_none() -> None:
    model = FakeModel(_once)
    _run(model, debaters=[{"name": "Bo"}])
    assert not model.calls[0].tools


def test_requests_stay_within_the_budget_despite_long_tool_results(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("word " * 60_000)

    def reading(call: ModelCall) -> Reply:
        if not call.tools:
            return fake_reply(call)
        calls = tuple({"id": "1", "name": "read_file", "args": {"path": "long.txt"}} for _ in range(3))
        return Reply(text="x " * 5000, tool_calls=calls, model="m")

    model = FakeModel(reading)
    debater = {"name": "Ada", "tools": ["read_file"], "tool_call_limit": 12}
    memory = {"budget": {"total": 2000}}
    state = _run(model, debaters=[debater], context=str(tmp_path), memory=memory, turns=3)
    turns = [call for call in model.calls if call.purpose == "turn"]
    assert len(turns) == 15
    for call in turns:
        offered = sum(COUNT(json.dumps(tool)) for tool in call.tools)
        assert prompt_tokens([], COUNT) + wire_tokens(call.messages, COUNT) + offered <= 2000
    results = [e for e in state["full_transcript"] if e["kind"] == "tool_result"]
    assert all(e["tokens"] <= 1010 for e in results)


def test_older_results_are_dropped_first() -> None:
    calls = [ToolCall(f"call_{n}", "search", "{}", f"{n} " + "word " * 80) for n in range(6)]
    exchanges = [ToolExchange(Reply(text=""), (call,)) for call in calls]
    messages = exchange_messages(exchanges, 300, "kelvon", COUNT)
    results = [unfenced(message["content"]) for message in messages if message["role"] == "tool"]
    assert results[-1].startswith("5 word")
    assert results[0] == LEFT_OUT
    assert wire_tokens(messages, COUNT) <= 300


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"debaters": [{"name": "A", "tools": ["browse"]}]}, "browse"),
        ({"debaters": [{"name": "A", "tools": ["search"]}]}, "needs a folder"),
        ({"context": "/no/such/folder"}, "does not exist"),
        ({"debaters": [ADA], "memory": {"budget": {"total": 400}}}, "too few for the tools"),
    ],
    ids=["unknown tool", "no folder", "missing context", "small budget"],
)
def test_an_impossible_tool_setup_is_refused_before_any_call(data: Any, named: str) -> None:
    model = FakeModel()
    with pytest.raises(ConfigError, match=named):
        _run(model, **data)
    assert not model.calls


def test_a_context_outside_the_allowed_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "allowed" / "link").symlink_to(tmp_path / "other")
    monkeypatch.setenv("MOOT_CONTEXT_ROOT", str(tmp_path / "allowed"))
    for context in ("other", "allowed/../other", "allowed/link"):
        with pytest.raises(ConfigError, match="outside"):
            _run(FakeModel(), context=str(tmp_path / context))
    _run(FakeModel(), context=str(tmp_path / "allowed"))


def test_context_file_is_an_entry_and_part_of_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "facts.md").write_text("The sky is green.")
    model = FakeModel()
    state = _run(model, context=str(tmp_path / "facts.md"))
    assert state["full_transcript"][1]["kind"] == "context"
    assert any("The sky is green." in message["content"] for message in model.calls[0].messages)


def test_tool_results_are_journalled_and_reused_by_a_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[str] = []

    class Counted(Calculator):
        def run(self, context: Any) -> str:
            runs.append(self.expression)
            return f"run {len(runs)}"

    monkeypatch.setitem(TOOLS, "calculator", Counted)
    crashed: list[bool] = []

    def crashing(call: ModelCall) -> Reply:
        if call.tools and _returned(call) and not crashed:
            crashed.append(True)
            raise RuntimeError("killed between a tool's result and the speech")
        return _once(call)

    model = FakeModel(crashing)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    config = DebateConfig.model_validate({"turns": 1, "debaters": [ADA]})
    with pytest.raises(RuntimeError):
        graph.invoke({"topic": "T?"}, THREAD, context=config)
    graph.invoke(None, THREAD)
    content = graph.get_state(THREAD).values["full_transcript"][-1]["content"]
    assert content.startswith("It is run ")
    assert len(runs) == 2, "a tool ran again"
    assert sum(1 for call in model.calls if call.tools and not _returned(call)) == 1, "a call was paid twice"


def test_prompt_reconstruction_shows_the_last_request_of_the_turn(tmp_path: Path) -> None:
    model = FakeModel(_once)
    config = DebateConfig.model_validate(
        {"turns": 2, "openings": "sequential", "debaters": [ADA, {"name": "Bo"}]}
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Should we?", config)
        document = debate.run()
        asked = [call for call in model.calls if call.purpose == "turn"]
        for seq, call in ((5, asked[1]), (6, asked[2])):
            seen = reconstruct_prompt(debate.session, seq)
            assert seen.exact
            assert ("tools" in {part.section for part in seen.parts}) is (seq == 5)
            assert tuple(part.message for part in seen.parts) == call.messages
            receipt = next(each for each in document["receipts"] if each["seq"] == seq)
            assert receipt["total_tokens"] == call.prompt_tokens
            sections = receipt["sections"]
            functions = sections.pop("functions", 0)
            assert functions == sum(COUNT(json.dumps(each)) for each in call.tools)
            assert bool(functions) is (seq == 5)
            assert sum(sections.values()) == sum(part.tokens for part in seen.parts)

"""Nodes of the graph, run with fake model replies."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.cli.live import RunTally, event_line
from moot.config import DebateConfig, debate_config
from moot.config.boundary import Permissions
from moot.graph.debate import build_graph
from moot.memory.summarizers.registry import SUMMARIZERS, summarizer_named
from moot.memory.window import entries_to_cover
from moot.nodes.open import open_debate
from moot.protocols.registry import limit_reached
from moot.runtime.context import node_context
from moot.state.conversation import ConversationState
from moot.state.errors import ConfigError, InputError, ModelError
from moot.state.reducers import entry_id_of
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
TWO_DEBATERS: Any = [{"name": "Ada"}, {"name": "Bo"}]
SMALL_MEMORY: Any = {"budget": {"total": 700}, "keep_recent": 4, "summarize_every": 3}


def _config(**data: Any) -> DebateConfig:
    return DebateConfig.model_validate(data)


def _run(config: DebateConfig, model: FakeModel | None = None, graph_input: Any = None) -> Any:
    graph: Any = build_graph(InMemorySaver(), environment=(model or FakeModel()).environment())
    graph.invoke(graph_input or {"topic": "Should we?"}, THREAD, context=config)
    return graph


@pytest.mark.parametrize(("protocol", "expected"), [("round-robin", True), ("council", False)])
def test_model_writes_a_summary_only_if_a_prompt_shows_it(protocol: str, expected: bool) -> None:
    model = FakeModel()
    memory: Any = {**SMALL_MEMORY, "summarizer": "llm", "perspectives": {"enabled": False}}
    state = _run(_config(protocol=protocol, turns=12, rounds=4, memory=memory), model).get_state(THREAD)
    assert any(call.purpose == "summary" for call in model.calls) == expected
    assert state.values["rolling_summary"]["text"]


def test_debate_takes_its_turns_in_order_and_ends_with_a_verdict() -> None:
    state = _run(_config(turns=5)).get_state(THREAD).values
    speakers = [entry["speaker"] for entry in state["full_transcript"]]
    assert speakers == ["user", "advocate", "skeptic", "advocate", "skeptic", "advocate"]
    assert [entry["seq"] for entry in state["full_transcript"]] == list(range(6))
    assert [entry_id_of(each) for each in state["messages"][:-1]] == [
        each["id"] for each in state["full_transcript"]
    ]
    assert state["messages"][-1].name == "judge"
    assert state["verdict"]["status"] == "ok"
    assert (state["status"], state["turn_count"]) == ("done", 5)


LEDGER: Any = {"extraction": "llm", "model": "m"}
TURN = ["plan", "turn"]


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        ({"turns": 3}, [*TURN * 2]),
        ({"turns": 8, "memory": SMALL_MEMORY}, [*TURN * 5, "summarize", "trim", *TURN * 2]),
        ({"turns": 4, "blackboard": LEDGER}, [*TURN * 3, "extract"]),
    ],
    ids=["short", "longer than the window", "ledger"],
)
def test_only_nodes_with_work_run(settings: Any, nodes: list[str]) -> None:
    graph: Any = build_graph(environment=FakeModel().environment())
    parts = graph.stream({"topic": "Should we?"}, context=_config(**settings), stream_mode="updates")
    assert [node for part in parts for node in part] == ["open", *nodes, "plan", "judge", "plan", "close"]


def test_graph_output_has_only_the_public_keys() -> None:
    graph = build_graph(InMemorySaver(), environment=FakeModel().environment())
    out = graph.invoke({"topic": "Should we?"}, THREAD, context=_config(turns=1))
    assert set(out) == {"topic", "verdict", "solution", "answer", "status", "messages", "ui"}


def test_first_human_message_is_the_topic_and_appears_once() -> None:
    graph = _run(_config(turns=1), graph_input={"messages": [{"role": "user", "content": "Tabs or spaces?"}]})
    state = graph.get_state(THREAD).values
    assert state["topic"] == "Tabs or spaces?"
    assert [m.name for m in state["messages"]] == ["user", "advocate", "judge"]
    assert [entry_id_of(m) for m in state["messages"][:2]] == ["m000000", "m000001"]


def test_debate_without_a_topic_is_rejected() -> None:
    with pytest.raises(InputError, match="no topic"):
        _run(_config(), graph_input={"messages": []})


def test_stored_configuration_overrides_a_later_context() -> None:
    graph = _run(_config(turns=2))
    graph.invoke(
        {"messages": [HumanMessage(content="Go on: and cost?")]},
        THREAD,
        context=_config(turns=50, debaters=[{"name": "Zoe"}]),
    )
    state = graph.get_state(THREAD).values
    assert [entry["speaker"] for entry in state["full_transcript"]] == [
        *("user", "advocate", "skeptic"),
        *("user", "advocate", "skeptic"),
    ]
    assert state["full_transcript"][3]["kind"] == "interjection"
    assert state["verdict"]["status"] == "ok"


def test_transcript_can_be_continued() -> None:
    transcript = [{"speaker": "advocate", "content": "Yes."}, {"speaker": "skeptic", "content": "No."}]
    state = (
        _run(_config(turns=1), graph_input={"topic": "T", "full_transcript": transcript})
        .get_state(THREAD)
        .values
    )
    assert [e["content"] for e in state["full_transcript"]][:3] == ["T", "Yes.", "No."]
    assert state["full_transcript"][1]["tokens"] == counter()("Yes.")


def test_transcript_entry_without_a_speaker_is_rejected() -> None:
    with pytest.raises(InputError, match="speaker"):
        _run(_config(), graph_input={"topic": "T", "full_transcript": [{"content": "?"}]})


def test_huge_transcript_is_summarised_before_the_first_turn() -> None:
    transcript = [
        {"speaker": "advocate", "content": f"Point {n}: costs rise by {n} %. " * 20} for n in range(400)
    ]
    model = FakeModel()
    state = (
        _run(_config(turns=1), model, {"topic": "T", "full_transcript": transcript}).get_state(THREAD).values
    )
    assert state["rolling_summary"]["covers_through_seq"] > 300
    assert not entries_to_cover(state)
    assert model.calls[0].prompt_tokens <= 8000


@settings(max_examples=8)
@given(
    lengths=st.lists(st.integers(1, 400), min_size=12, max_size=12),
    keep=st.integers(1, 5),
    every=st.integers(1, 5),
    summarizer=st.sampled_from(["rule-based", "llm"]),
    layout=st.sampled_from(["shared", "per-speaker"]),
    script=st.sampled_from(["word ", "界", "🙂", "<|endoftext|> "]),
)
def test_window_and_summary_cover_all_messages_and_prompts_fit(
    lengths: list[int], keep: int, every: int, summarizer: str, layout: str, script: str
) -> None:
    turns = iter(lengths)

    def reply(call: ModelCall) -> Reply:
        text = script * next(turns) if call.purpose == "turn" else script * 300
        return Reply(text=text, usage={}) if call.schema is None else fake_reply(call)

    memory: Any = {"budget": {"total": 900}, "keep_recent": keep, "summarize_every": every}
    config = _config(turns=12, memory={**memory, "summarizer": summarizer, "layout": layout})
    model = FakeModel(reply)
    graph = _run(config, model)
    for snapshot in graph.get_state_history(THREAD):
        if snapshot.next == ("plan",):
            assert not entries_to_cover(snapshot.values)
    state = graph.get_state(THREAD).values
    assert state["rolling_summary"] != {} or sum(lengths) < 400
    for call in model.calls:
        assert call.prompt_tokens <= 900
    for receipt in state["receipts"]:
        assert receipt["total_tokens"] == 3 + sum(receipt["sections"].values()) <= 900
    seen = [(s["covers_from_seq"], s["covers_through_seq"]) for s in state["summary_versions"]]
    assert [through for _, through in seen] == sorted({through for _, through in seen})


@pytest.mark.parametrize(
    ("limits", "usage", "named"),
    [
        ({"total_tokens": 100}, {"prompt_tokens": 90, "completion_tokens": 10}, "limits.total_tokens of 100"),
        ({"cost_usd": 0.5}, {"cost_usd": 0.5}, "limits.cost_usd of 0.5"),
        ({"wall_clock_s": 60}, {"elapsed_s": 61.0}, "limits.wall_clock_s of 60"),
        ({"total_tokens": 100}, {"prompt_tokens": 99}, ""),
    ],
)
def test_reason_names_the_reached_limit(limits: dict[str, Any], usage: dict[str, Any], named: str) -> None:
    reached = limit_reached({"usage": usage}, _config(limits=limits))
    assert (reached.reason if reached else "").startswith(named)


def test_debate_that_reaches_a_limit_ends_with_a_verdict() -> None:
    graph = _run(_config(turns=50, limits={"total_tokens": 1500}))
    state = graph.get_state(THREAD).values
    assert state["status"] == "limit"
    assert "limits.total_tokens" in state["step"]["end_reason"]["reason"]
    assert state["verdict"]["status"] == "ok"
    assert 1 < state["turn_count"] < 50


def test_failed_model_call_ends_the_run_and_resume_continues_it() -> None:
    healthy = False

    def reply(call: ModelCall) -> Reply:
        if len(model.calls) == 3 and not healthy:
            return Reply(error="m: 503", status=503, retryable=True)
        return fake_reply(call)

    model = FakeModel(reply)
    graph = build_graph(InMemorySaver(), environment=model.environment())
    with pytest.raises(ModelError, match="503"):
        graph.invoke({"topic": "T"}, THREAD, context=_config(turns=4))
    healthy = True
    graph.invoke(None, THREAD)
    state = graph.get_state(THREAD).values
    assert [e["speaker"] for e in state["full_transcript"]][1:] == ["advocate", "skeptic"] * 2


def test_failed_judge_call_gives_a_failed_verdict_without_solution() -> None:
    def reply(call: ModelCall) -> Reply:
        return Reply(error="m: no answer") if call.purpose == "judge" else fake_reply(call)

    state = _run(_config(turns=2), FakeModel(reply)).get_state(THREAD).values
    assert state["verdict"]["status"] == "failed"
    assert (state["verdict"]["winner"], state["solution"]) == ("", "")
    assert "m: no answer" in state["errors"][0]["error"]


def test_judge_that_prefers_the_first_position_gives_a_tie() -> None:
    def reply(call: ModelCall) -> Reply:
        if call.purpose != "judge":
            return fake_reply(call)
        return Reply(data={**cast(Any, fake_reply(call)).data, "winner": call.hints["debaters"][0]})

    verdict = _run(_config(turns=2), FakeModel(reply)).get_state(THREAD).values["verdict"]
    assert (verdict["winner"], verdict["flip"]["flipped"]) == ("tie", True)


def test_judge_prompt_contains_no_debater_name() -> None:
    model = FakeModel(
        lambda call: fake_reply(call) if call.schema else Reply(text="As Ada Quay I answer Ben Lund's point.")
    )
    _run(_config(turns=3, debaters=[{"name": "Ada Quay"}, {"name": "Ben Lund"}]), model)
    prompts = [m["content"] for call in model.calls if call.purpose == "judge" for m in call.messages]
    assert prompts
    assert not any("Lund" in prompt or "Quay" in prompt for prompt in prompts)


def test_open_node_stores_the_configuration_and_the_first_entries() -> None:
    permissions = Permissions.of_operator(_config(turns=3))
    documents = [{"name": "facts.md", "content": "Water is wet."}]
    state = cast(ConversationState, {"topic": "T\x00opic", "messages": [], "context_documents": documents})
    with pytest.raises(StopIteration) as end:
        next(open_debate(node_context(FakeModel().environment(), state, permissions)))
    update = end.value.value
    assert update["topic"] == "Topic"
    assert update["config"]["turns"] == 3
    rules = update["prompt_sources"]["rules"]
    assert (rules["path"], len(rules["sha256"])) == ("moot/prompts/rules.md", 64)
    kinds = [(entry["kind"], entry["speaker"]) for entry in update["full_transcript"].value]
    assert kinds == [("topic", "user"), ("context", "user")]


class _RaisingSummarizer:
    name = "raising"

    def summarize(self, request: Any) -> Any:
        raise RuntimeError("boom")
        yield


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I'm sorry, I cannot do that.", "excuse"),
        ("long " * 5000, "far longer"),
        (None, "repeated its input"),
    ],
)
def test_unusable_model_summary_falls_back_to_rules_with_a_reason(text: str | None, why: str) -> None:
    def reply(call: ModelCall) -> Reply:
        if call.purpose == "summary":
            return Reply(text=call.messages[-1]["content"] if text is None else text)
        return fake_reply(call)

    config = _config(turns=30, memory={**SMALL_MEMORY, "budget": {"total": 1200}, "summarizer": "llm"})
    state = _run(config, FakeModel(reply)).get_state(THREAD).values
    assert state["rolling_summary"]["method"] == "rule-based (after llm failed)"
    assert why in state["errors"][0]["error"]
    assert state["rolling_summary"]["after_tokens"] <= config.memory.budget.summary


def test_summarizer_that_raises_falls_back_to_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUMMARIZERS, "raising", cast(Any, _RaisingSummarizer()))
    summarizer_named.cache_clear()
    state = _run(_config(turns=20, memory={**SMALL_MEMORY, "summarizer": "raising"})).get_state(THREAD).values
    assert state["rolling_summary"]["method"].startswith("rule-based (after raising")
    assert "RuntimeError: boom" in state["errors"][0]["error"]


def test_unknown_summarizer_is_rejected_by_name() -> None:
    with pytest.raises(ConfigError, match="'magic'"):
        summarizer_named("magic")


def test_long_import_is_summarised_in_chunks_with_each_message_once() -> None:
    transcript = [
        {"speaker": "advocate", "content": f"Fact number {n:03d} stands. " * 12} for n in range(120)
    ]
    model = FakeModel(
        lambda call: fake_reply(call) if call.schema else Reply(text=f"Facts stand {call.digest[:6]}.")
    )
    memory: Any = {"budget": {"total": 1500}, "summarizer": "llm", "keep_recent": 5}
    graph = _run(_config(turns=1, memory=memory), model, {"topic": "T", "full_transcript": transcript})
    covered = graph.get_state(THREAD).values["rolling_summary"]["covers_through_seq"]
    chunks = [c.messages[-1]["content"] for c in model.calls if c.purpose == "summary"]
    for seq in range(1, covered + 1):
        assert sum(f"[m{seq:06d}]" in chunk for chunk in chunks) == 1
    assert all(call.prompt_tokens <= 1500 for call in model.calls)


def test_model_summary_also_contains_rule_based_key_points() -> None:
    def reply(call: ModelCall) -> Reply:
        return (
            fake_reply(call) if call.purpose != "summary" else Reply(text="Of 40 % they say much.", model="m")
        )

    memory = {**SMALL_MEMORY, "summarizer": "llm", "budget": {"total": 1600}}
    state = _run(_config(turns=20, memory=memory), FakeModel(reply)).get_state(THREAD)
    text = state.values["rolling_summary"]["text"]
    assert text.startswith("Of 40 % they say much.")
    assert "of cases fail" in text
    assert state.values["rolling_summary"]["model"] == "m"


def test_planned_interjections_appear_once_after_their_turn() -> None:
    planned = [{"after": 2, "text": "The budget is cut."}, {"after": 0, "speaker": "guest", "text": "Hello."}]
    for protocol, turns in (("round-robin", 4), ("council", None)):
        config = _config(turns=turns, protocol=protocol, interjections=planned, debaters=TWO_DEBATERS)
        transcript = _run(config).get_state(THREAD).values["full_transcript"]
        remarks = [entry for entry in transcript if entry["kind"] == "interjection"]
        assert [(entry["speaker"], entry["content"]) for entry in remarks] == [
            ("guest", "Hello."),
            ("moderator", "The budget is cut."),
        ]
        turn_entries = [entry for entry in transcript if entry["speaker"] in {"ada", "bo"}]
        assert sum(entry["seq"] < remarks[1]["seq"] for entry in turn_entries) == 2


def test_planned_interjection_of_a_reserved_speaker_is_rejected() -> None:
    with pytest.raises(ConfigError, match="'judge' is not a valid speaker id"):
        _config(interjections=[{"after": 1, "speaker": "judge", "text": "Enough."}])


def test_continued_transcript_is_in_the_ledger_before_the_first_turn() -> None:
    transcript = [
        {"speaker": "ada", "content": "I am against the bridge, and always was."},
        {"speaker": "bo", "content": "I support the bridge."},
    ]
    quote = "I am against the bridge, and always was."
    event = {"message_id": "m000001", "claim": "p000", "kind": "denies", "quote": quote}
    events = [{**event, "condition": "", "ground": False, "confidence": 0.9}]

    def reply(call: ModelCall) -> Reply:
        if call.purpose != "extract" or call.schema is None:
            return fake_reply(call)
        lists: dict[str, Any] = {key: [] for key in call.schema.model_fields}
        return Reply(data={**lists, "reasoning": "", "events": events})

    model = FakeModel(reply)
    graph_input: Any = {"topic": "Should the bridge be built?", "full_transcript": transcript}
    board = {"extraction": "llm", "model": "m", "verify_changes": False}
    _run(_config(turns=1, debaters=TWO_DEBATERS, blackboard=board), model, graph_input)
    [first] = [call for call in model.calls if call.purpose == "turn"]
    assert "no: “I am against the bridge, and always was.” [m000001]" in first.messages[-1]["content"]


def test_configuration_is_not_serialized_every_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serialized: list[object] = []

    def dumps(value: object, **options: Any) -> str:
        serialized.append(value)
        return json.dumps(value, **options)

    monkeypatch.setattr(debate_config, "json", SimpleNamespace(dumps=dumps))
    _run(_config(turns=8))
    assert len(serialized) <= 2


def _run_with_failing_summaries(config: DebateConfig, failing: int) -> tuple[dict[str, Any], FakeModel]:
    """Run a debate in which the first `failing` summary calls fail. Return its state and model."""
    model = FakeModel()

    def reply(call: ModelCall) -> Reply:
        if call.purpose != "summary":
            return fake_reply(call)
        calls = sum(each.purpose == "summary" for each in model.calls)
        return Reply(error="HTTP 500") if calls <= failing else Reply(text="Some 40 % of cases fail.")

    model.reply = reply
    return _run(config, model).get_state(THREAD).values, model


@pytest.mark.parametrize(
    ("summarizer", "method", "kept"),
    [
        ("llm", "rule-based (after llm failed)", []),
        ("hierarchical", "hierarchical, some messages by rule", ["m000003"]),  # its other parts are kept
    ],
)
def test_next_summary_call_rereads_what_a_fallback_covered(
    summarizer: str, method: str, kept: list[str]
) -> None:
    config = _config(turns=16, memory={**SMALL_MEMORY, "budget": {"total": 1500}, "summarizer": summarizer})
    state, model = _run_with_failing_summaries(config, failing=1)
    first, *later = state["summary_versions"]
    assert first["method"] == method
    assert "HTTP 500" in first["failure"]
    assert later
    assert all(each["method"] == summarizer and "failure" not in each for each in later)
    read = "\n".join(call.messages[-1]["content"] for call in model.calls[1:] if call.purpose == "summary")
    covered = state["full_transcript"][1 : later[-1]["covers_through_seq"] + 1]
    # The failed call itself showed the first messages, so they must be shown twice.
    shown = {entry["id"]: read.count(f"[{entry['id']}]:") for entry in covered}
    assert shown == {
        entry["id"]: 2 if entry["seq"] <= first["covers_through_seq"] and entry["id"] not in kept else 1
        for entry in covered
    }


def test_repeated_summary_failures_do_not_increase_the_calls() -> None:
    config = _config(turns=90, memory={**SMALL_MEMORY, "budget": {"total": 1500}, "summarizer": "llm"})
    state, model = _run_with_failing_summaries(config, failing=10_000)
    calls = sum(call.purpose == "summary" for call in model.calls)
    assert calls <= 6 * len(state["summary_versions"])


def test_failed_summary_is_streamed_as_an_event() -> None:
    model = FakeModel(lambda call: Reply(error="HTTP 500") if call.purpose == "summary" else fake_reply(call))
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    config = _config(turns=12, memory={**SMALL_MEMORY, "budget": {"total": 1500}, "summarizer": "llm"})
    graph_input = {"topic": "Should we?"}
    events = [*graph.stream(graph_input, THREAD, context=config, stream_mode="custom")]
    failures = [event for event in events if event.get("event") == "summary"]
    assert failures
    assert all("HTTP 500" in event["failure"] for event in failures)
    assert "failed: llm: SummaryFailed: HTTP 500" in event_line(failures[0], {}, RunTally())

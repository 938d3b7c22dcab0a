"""Values that `update_state` writes into channels are validated; nothing invalid is written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from moot import DebateConfig, open_debates
from moot.graph.debate import NODES, build_graph
from moot.graph.runnable import DebateGraph
from moot.state.conversation import ConversationState
from moot.state.errors import InputError, UserError

THREAD: Any = {"configurable": {"thread_id": "11111111-1111-1111-1111-111111111111"}}
CONTEXT: Any = {"turns": 3, "judge": {"enabled": False}}
TURN: dict[str, Any] = {"speaker": "advocate", "targets": [], "instruction": "", "room": ""}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


UI_MESSAGE = {"type": "ui", "id": "x", "name": "verdict", "metadata": {}}
INVALID_VALUES: dict[str, tuple[object, str]] = {
    "a number as configuration": (7, "config"),
    "an unknown setting": ({"turnz": 3}, "config"),
    "a wrong setting": ({"turns": "many"}, "config"),
    "more judges than a request may have": (
        {"judge": {"panel": [{"id": f"j{n}"} for n in range(21)]}},
        "config: judge.panel",
    ),
    "a negative limit": ({"limits": {"total_tokens": -1}}, "config"),
    "text as a step": ("x", "step"),
    "an incomplete step": ({"number": 3}, "step"),
    "a turn without a speaker": (
        {"number": 3, "kind": "turn", "phase": "p", "round": 1, "turns": [{"targets": []}]},
        "step",
    ),
    "a turn of an unknown debater": (
        {"number": 3, "kind": "turn", "phase": "p", "round": 1, "turns": [TURN | {"speaker": "zoe"}]},
        "step.turns.0.speaker",
    ),
    "more turns than a step may have": (
        {"number": 3, "kind": "turn", "phase": "p", "round": 1, "turns": [TURN] * 51},
        "step.turns",
    ),
    "an unknown protocol": ({"protocol": "nope"}, "config: unknown protocol"),
    "a file as rubric": ({"judge": {"rubric": "/etc/passwd"}}, "config: judge.rubric"),
    "an unknown rubric of a judge": (
        {"judge": {"panel": [{"id": "j", "rubric": "nope"}]}},
        "config: judge.rubric",
    ),
    "an unknown summarizer": ({"memory": {"summarizer": "nope"}}, "config"),
    "too few debaters for the protocol": (
        {"protocol": "council", "debaters": [{"name": "Ada"}]},
        "config: protocol",
    ),
    "a number that no database stores": (2**63, "round"),
    "a number too large to increment": (2**63 - 1, "turn_count"),
    "a lower number of turns": (0, "turn_count"),
    "positions of documents": ([0], "user_provided"),
    "options beside the configuration": (["a", "b"], "options"),
    "documents after the start": ([{"name": "a", "content": "b"}], "context_documents"),
    "settings after the start": ({"turns": 9}, "settings"),
    "versions of summaries": ([{}], "summary_versions"),
    "no step": ({}, "step"),
    "no entries": ([], "full_transcript"),
    "usage": ({"cost_usd": 1.0}, "usage"),
    "deeply nested values": ([{**UI_MESSAGE, "props": nested(900)}], "ui"),
    "deeply nested settings": ({"judge": nested(900)}, "config"),
    "a deeply nested message": (
        [{"role": "user", "content": "x", "additional_kwargs": nested(900)}],
        "messages",
    ),
    "an unpaired surrogate": ("a\ud800", "solution"),
    "an unpaired surrogate in a key": ({"a\ud800": "x"}, "prompt_sources"),
    "receipts of turns": ([], "receipts"),
    "records of calls": ([{}], "calls"),
    "an inbox number that does not exist": (10**9, "last_inbox_number"),
    "a negative count of interjections": (-9, "planned_interjections_used"),
    "an unknown schema version": (99, "schema_version"),
    "an infinite number": ({"cost_usd": float("inf")}, "usage"),
    "a large nested number": (
        {"number": 10**30, "kind": "close", "phase": "p", "round": 1, "turns": []},
        "step.number",
    ),
    "numbers as claim events": ([1], "claim_events"),
    "an incomplete summary": ({"text": "All agree."}, "rolling_summary"),
    "an incomplete perspective summary": ({"ada": {"text": "All agree."}}, "perspective_summaries"),
    "a negative cost": ({"cost_usd": -5.0}, "usage"),
    "an overwritten usage": ({"__overwrite__": {}}, "usage"),
    "text as a count": ("3", "turn_count"),
    "a negative count": (-1, "turn_count"),
    "more debaters than a request may have": ({"debaters": [{"name": f"d{n}"} for n in range(51)]}, "config"),
    "an unknown status": ("merry", "status"),
    "another topic": ("Buses?", "topic"),
    "no topic": (None, "topic"),
    "a protocol's own data": ({"aspects": 7}, "protocol_state"),
    "a number as an earlier position": ({"advocate": [1]}, "cross_debate_memory"),
    "a misspelt channel": ({}, "roling_summary"),
    "text as entries": ("x", "full_transcript"),
    "numbers as pins": ([7], "pinned"),
    "a number as verdict": (7, "verdict"),
    "a number as message": ([7], "messages"),
    "a message longer than an interjection may be": ("x" * 100_001, "the message"),
    "an incomplete earlier position": ({"advocate": [{"topic": "T"}]}, "cross_debate_memory"),
    "no message": (None, "messages"),
    "an operation on the recent messages": ([{"op": "drop_through", "seq": 99}], "messages"),
}


def _channel(place: str) -> str:
    return "messages" if place == "the message" else place.partition(":")[0].partition(".")[0]


@pytest.fixture
def graph() -> DebateGraph:
    made = build_graph(InMemorySaver())
    made.invoke({"topic": "Trams?"}, THREAD, context=CONTEXT, interrupt_after=["turn"])
    return made


@pytest.mark.parametrize(("value", "channel"), INVALID_VALUES.values(), ids=INVALID_VALUES)
def test_update_with_an_invalid_value_is_refused(value: object, channel: str, graph: DebateGraph) -> None:
    before = graph.get_state(THREAD)
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.update_state(THREAD, {_channel(channel): value})
    after = graph.get_state(THREAD)
    assert (after.config, after.values) == (before.config, before.values)
    assert graph.invoke(None, THREAD)["status"] == "done"


@pytest.mark.parametrize("as_pairs", [False, True], ids=["mapping", "pairs"])
@pytest.mark.parametrize(("value", "channel"), INVALID_VALUES.values(), ids=INVALID_VALUES)
def test_command_with_an_invalid_value_is_refused(
    value: object, channel: str, graph: DebateGraph, as_pairs: bool
) -> None:
    name = _channel(channel)
    before = graph.get_state(THREAD)
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.invoke(Command(update=[(name, value)] if as_pairs else {name: value}), THREAD)
    assert graph.get_state(THREAD).values == before.values


SUMMARIZED: Any = {"turns": 6, "memory": {"keep_recent": 2, "summarize_every": 1}}
EDIT = "Ada wants trams, and Ben wants buses."


@pytest.fixture
def summarized() -> DebateGraph:
    """A debate with a rolling summary and a step that is planned."""
    made = build_graph(InMemorySaver())
    made.invoke({"topic": "Trams?"}, THREAD, context=SUMMARIZED, interrupt_after=["summarize"])
    made.invoke(None, THREAD, interrupt_before=["turn"])
    return made


@pytest.mark.parametrize("stop", [["open"], ["summarize"], []], ids=str)
def test_values_as_read_change_nothing(stop: list[str]) -> None:
    graph = build_graph(InMemorySaver())
    graph.invoke({"topic": "Trams?"}, THREAD, context=SUMMARIZED, interrupt_after=stop)
    before = graph.get_state(THREAD)
    graph.update_state(THREAD, before.values)
    after = graph.get_state(THREAD)
    assert (after.values, after.next) == (before.values, before.next)
    assert graph.invoke(None, THREAD)["status"] == "done"


def test_edited_summary_is_a_version_on_which_later_versions_build(summarized: DebateGraph) -> None:
    before = summarized.get_state(THREAD).values
    edited = {**before["rolling_summary"], "text": EDIT, "version": 77}
    summarized.update_state(THREAD, {**before, "rolling_summary": edited})
    summary = summarized.get_state(THREAD).values["rolling_summary"]
    assert (summary["version"], summary["method"]) == (before["rolling_summary"]["version"] + 1, "edited")
    assert summary["covers_through_seq"] == before["rolling_summary"]["covers_through_seq"]
    assert summarized.invoke(None, THREAD)["status"] == "done"
    values = summarized.get_state(THREAD).values
    versions = values["summary_versions"]
    assert [each["version"] for each in versions] == list(range(1, len(versions) + 1))
    assert versions[: len(before["summary_versions"])] == before["summary_versions"]
    later = versions[summary["version"] :]
    assert len(later) > 1
    assert all(each["text"].startswith(f"{EDIT}\n\n") for each in later)
    assert values["rolling_summary"]["messages"] == later[-1]["covers_through_seq"]  # without the topic
    assert values["receipts"][-1]["summary_version"] > summary["version"]


@pytest.mark.parametrize("as_node", [None, "plan", "trim"])
@pytest.mark.parametrize("stop", ["turn", "plan"])
def test_cleared_summary_starts_anew_without_a_gap(
    stop: str, as_node: str | None, summarized: DebateGraph
) -> None:
    summarized.invoke(None, THREAD, interrupt_before=[stop])
    before = summarized.get_state(THREAD).values
    with pytest.raises(InputError, match=r"^rolling_summary: a command cannot clear it"):
        summarized.invoke(Command(update={"rolling_summary": {}}), THREAD)
    summarized.update_state(THREAD, {"rolling_summary": {}}, as_node)
    assert summarized.get_state(THREAD).values["rolling_summary"] == {}
    summarized.invoke(None, THREAD, interrupt_after=["turn"])
    values = summarized.get_state(THREAD).values
    summary, receipt = values["rolling_summary"], values["receipts"][len(before["receipts"])]
    assert (summary["covers_from_seq"], receipt["summary_version"]) == (1, summary["version"])
    assert summary["version"] == before["rolling_summary"]["version"] + 1
    assert receipt["message_ids"][0] == f"m{summary['covers_through_seq'] + 1:06d}"


def test_only_the_text_of_a_summary_can_be_changed(summarized: DebateGraph) -> None:
    summary = summarized.get_state(THREAD).values["rolling_summary"]
    for changed in ({"version": 9}, {"text": " "}, {"text": "word " * 2000}):
        with pytest.raises(InputError, match=r"^rolling_summary"):
            summarized.update_state(THREAD, {"rolling_summary": {**summary, **changed}})


def test_recorded_items_stay_if_new_ones_are_added(graph: DebateGraph) -> None:
    events: Any = [
        {"type": "extraction_pass", "through": seq, "by": "model", "dropped": {}} for seq in (0, 1)
    ]
    graph.update_state(THREAD, {"claim_events": events[:1]})
    graph.update_state(THREAD, {"claim_events": events})
    assert graph.get_state(THREAD).values["claim_events"] == events
    for sent in ([], events[:1], events[1:], [*reversed(events)], [{**events[0], "through": 7}, events[1]]):
        with pytest.raises(InputError, match=r"^claim_events\.\d: a recorded item"):
            graph.update_state(THREAD, {"claim_events": sent})


@pytest.mark.parametrize(
    "update", [{"config": {"turns": 3}}, {"round": 1}, {"status": "done"}, {"solution": "x"}], ids=str
)
def test_thread_without_a_debate_accepts_only_the_input_of_a_run(update: dict[str, Any]) -> None:
    graph = build_graph(InMemorySaver())
    with pytest.raises(InputError, match="this thread has no debate yet"):
        graph.update_state(THREAD, update)
    with pytest.raises(InputError, match="this thread has no debate yet"):
        graph.invoke(Command(update=update), THREAD)
    assert not graph.get_state(THREAD).values


@pytest.mark.parametrize("goto", [None, (), []], ids=repr)
def test_a_command_starts_a_debate_on_a_new_thread(goto: Any) -> None:
    graph = build_graph(InMemorySaver())
    asked = Command(update={"messages": [("user", "Trams?")]}, goto=goto)
    assert graph.invoke(asked, THREAD, context=CONTEXT)["status"] == "done"


@pytest.mark.parametrize("update", [None, {}, []], ids=repr)
def test_an_empty_command_is_refused(update: Any, graph: DebateGraph) -> None:
    with pytest.raises(InputError, match="the command is empty"):
        graph.invoke(Command(update=update), THREAD)


def test_a_command_cannot_choose_the_next_node(graph: DebateGraph) -> None:
    with pytest.raises(InputError, match="goto"):
        graph.invoke(Command(goto="judge"), THREAD)


@pytest.mark.parametrize(
    "graph_input", [None, {"topic": "Buses?"}, {"messages": [("user", "Go on")]}], ids=repr
)
def test_a_run_from_a_checkpoint_that_does_not_exist_is_refused(graph_input: Any, graph: DebateGraph) -> None:
    before, elsewhere = graph.get_state(THREAD), {"configurable": {**THREAD["configurable"]}}
    elsewhere["configurable"]["checkpoint_id"] = "1f1e7d1f-0000-6633-8000-2085645c49d8"
    with pytest.raises(InputError, match="no checkpoint"):
        graph.invoke(graph_input, elsewhere)  # type: ignore[arg-type]  # a dict
    with pytest.raises(InputError, match="no checkpoint"):
        asyncio.run(graph.ainvoke(graph_input, elsewhere))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no checkpoint"):
        graph.update_state(elsewhere, {"round": 1})  # type: ignore[arg-type]
    assert graph.get_state(THREAD).config == before.config


@pytest.mark.parametrize("update", [7, [("round", 1)], Command(update={"config": 7})], ids=repr)
def test_update_must_be_a_mapping(update: Any, graph: DebateGraph) -> None:
    with pytest.raises(InputError, match="not a mapping"):
        graph.update_state(THREAD, update)


@pytest.mark.parametrize("node", [node for node in NODES if node not in ("reflect", "close")])
def test_thread_without_a_debate_cannot_be_updated_as_a_node(node: str) -> None:
    graph = build_graph(InMemorySaver())
    with pytest.raises(InputError):
        graph.update_state(THREAD, {"round": 1}, node)
    assert not graph.get_state(THREAD).values


@pytest.mark.parametrize("copy", ["fork", "import"])
def test_update_of_a_copied_debate_does_not_reopen_it(copy: str, tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        made = debates.start("Trams?", DebateConfig.model_validate(CONTEXT))
        made.run()
        copied = made.fork() if copy == "fork" else debates.import_document(made.document(), name="copied")
        following = copied.state().next
        session = copied.session
        session.graph.update_state(session.run_config, {"pinned": ["m000001"]})
        assert copied.state().next == following
        assert copied.run(turns=1)["status"] == "done"


@pytest.mark.parametrize(
    "channel", sorted(ConversationState.__annotations__.keys() - {"messages", "settings"})
)
def test_no_channel_accepts_none(channel: str, graph: DebateGraph) -> None:
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.update_state(THREAD, {channel: None})


def test_async_update_is_validated() -> None:
    async def update() -> None:
        graph = build_graph(InMemorySaver())
        await graph.ainvoke({"topic": "Trams?"}, THREAD, context=CONTEXT, interrupt_after=["turn"])
        await graph.aupdate_state(THREAD, {"claim_events": [1]})

    with pytest.raises(UserError, match=r"^claim_events\.0"):
        asyncio.run(update())


def test_config_update_keeps_settings_that_it_does_not_mention(graph: DebateGraph) -> None:
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
        ("full_transcript", [{"speaker": "a", "content": "b", "x": nested(900)}]),
        ("settings", nested(900)),
        ("messages", [{"role": "user", "content": "x", "additional_kwargs": nested(900)}]),
        ("messages", [{"role": "user", "content": "x", "additional_kwargs": {"\ud800": 1}}]),
    ],
)
def test_input_of_a_run_is_validated(channel: str, value: object) -> None:
    graph, graph_input = build_graph(InMemorySaver()), {"topic": "Trams?", channel: value}
    with pytest.raises(UserError, match=rf"^{channel}\b"):
        graph.invoke(graph_input, THREAD, context=CONTEXT)
    assert not graph.get_state(THREAD).values


def test_graph_with_a_checkpointer_requires_a_thread() -> None:
    graph = build_graph(InMemorySaver())
    with pytest.raises(InputError, match="needs a thread"):
        graph.invoke({"topic": "Trams?"})
    with pytest.raises(InputError, match="thread_id"):
        graph.update_state({}, {"topic": "Trams?"})


def test_an_unknown_key_in_the_input_of_a_run_is_refused() -> None:
    graph = build_graph(InMemorySaver())
    with pytest.raises(InputError, match="turnz: unknown input key of a debate: use one of topic"):
        graph.invoke({"topic": "Tabs?", "turnz": 3}, THREAD)
    assert graph.get_state(THREAD).values == {}

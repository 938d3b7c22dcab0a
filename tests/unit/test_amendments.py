"""Changes of a stored debate by a person: corrections, pins and refused changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from moot.api import open_debates
from moot.calls.model_calls import ModelCall
from moot.config.config_files import make_config
from moot.graph.debate import build_graph
from moot.graph.runnable import DebateGraph
from moot.state.errors import InputError
from moot.state.reducers import entry_id_of
from tests.support.fakes import FakeModel

THREAD: Any = {"configurable": {"thread_id": "amended"}}
CORRECTION = "I meant 14 % of cases."


def text_of(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def paused_debate(model: FakeModel) -> DebateGraph:
    """Graph of a debate of four turns, interrupted after the second turn."""
    run = build_graph(MemorySaver(), environment=model.environment())
    config = make_config({"turns": 4, "openings": "sequential", "judge": {"enabled": False}})
    run.invoke({"topic": "Trams?"}, THREAD, context=config, interrupt_after=["turn"])
    run.invoke(None, THREAD, interrupt_after=["turn"])
    return run


def entry(run: DebateGraph, seq: int) -> dict[str, Any]:
    result: dict[str, Any] = run.get_state(THREAD).values["full_transcript"][seq]
    return result


@pytest.mark.parametrize("form", ["message", "entry", "input"])
def test_an_edited_message_reaches_the_next_prompt_as_an_amendment(
    form: str, paused_debate: DebateGraph, model: FakeModel
) -> None:
    before, graph_input = entry(paused_debate, 1), None
    if form == "entry":
        paused_debate.update_state(THREAD, {"full_transcript": [{**before, "content": CORRECTION}]})
    elif form == "message":
        paused_debate.update_state(THREAD, {"messages": [AIMessage(CORRECTION, id="m000001")]})
    else:
        graph_input = {"messages": [AIMessage(CORRECTION, id="m000001")]}
    paused_debate.invoke(graph_input, THREAD)
    values = paused_debate.get_state(THREAD).values
    (amendment,) = [each for each in values["full_transcript"] if CORRECTION in each["content"]]
    assert (amendment["speaker"], amendment["targets"]) == ("user", ["m000001"])
    assert values["full_transcript"][1] == before
    assert all(
        CORRECTION in text_of(call) and "Amendment of [m000001]" in text_of(call) for call in model.calls[2:]
    )
    ids = [each["id"] for each in values["full_transcript"]]
    assert len(ids) == len(set(ids))
    assert [entry_id_of(message) for message in values["messages"][:-1]] == ids


@pytest.mark.parametrize("following", ["turn", "judge", "extract"])
def test_an_amendment_is_in_the_next_prompt_before_any_node(following: str, model: FakeModel) -> None:
    run = build_graph(MemorySaver(), environment=model.environment())
    config = make_config(
        {"turns": 2, "openings": "sequential", "blackboard": {"extraction": "llm", "model": "m"}}
    )
    run.invoke({"topic": "Trams?"}, THREAD, context=config, interrupt_after=["turn"])
    run.invoke(None, THREAD, context=config, interrupt_before=[following])
    assert run.get_state(THREAD).next == (following,)
    call_count = len(model.calls)
    run.update_state(THREAD, {"messages": [AIMessage(CORRECTION, id="m000001")]})
    run.update_state(THREAD, {"messages": [HumanMessage("And buses?")]})
    assert run.get_state(THREAD).next == (following,)
    run.invoke(None, THREAD, context=config)
    values = run.get_state(THREAD).values
    # Claims are extracted from messages of debaters, not from amendments.
    calls = [call for call in model.calls[call_count:] if call.purpose != "extract"]
    assert calls
    assert all(CORRECTION in text_of(call) and "And buses?" in text_of(call) for call in calls)
    ids = [each["id"] for each in values["full_transcript"]]
    assert len(ids) == len(set(ids))
    assert [entry_id_of(message) for message in values["messages"][:-1]] == ids
    assert sum(CORRECTION in each["content"] for each in values["full_transcript"]) == 1


def test_unchanged_messages_are_ignored_and_new_ones_are_interjections(paused_debate: DebateGraph) -> None:
    window = paused_debate.get_state(THREAD).values["messages"]
    paused_debate.update_state(THREAD, {"messages": [*window, HumanMessage("And buses?", id="m000099")]})
    paused_debate.invoke(None, THREAD)
    transcript = paused_debate.get_state(THREAD).values["full_transcript"]
    assert [each["content"] for each in transcript if each["kind"] == "interjection"] == ["And buses?"]
    assert [each["seq"] for each in transcript] == list(range(len(transcript)))


@pytest.mark.parametrize(
    "update",
    [
        {"messages": [RemoveMessage("m000001")]},
        {"full_transcript": [{"speaker": "ada", "content": "More."}]},
        {"messages": [AIMessage("Buses?", id="m000000")]},
        {"pinned": ["m000077"]},
    ],
    ids=["removed message", "added entry", "edited topic", "unknown pin"],
)
def test_unsupported_state_updates_are_rejected(update: dict[str, Any], paused_debate: DebateGraph) -> None:
    before = paused_debate.get_state(THREAD).config
    with pytest.raises(InputError):
        paused_debate.update_state(THREAD, update)
    assert paused_debate.get_state(THREAD).config == before


@pytest.mark.parametrize("channel", ["full_transcript", "messages"])
def test_message_cannot_be_deleted_from_the_values_as_read(channel: str, paused_debate: DebateGraph) -> None:
    items = paused_debate.get_state(THREAD).values[channel]
    with pytest.raises(InputError, match=r"^'m000001\S*' cannot be removed"):
        paused_debate.update_state(THREAD, {channel: [items[0], *items[2:]]})


def test_only_the_content_of_an_entry_can_be_changed(paused_debate: DebateGraph) -> None:
    with pytest.raises(InputError, match=r"^full_transcript\.m000001\.speaker: only the `content`"):
        paused_debate.update_state(
            THREAD, {"full_transcript": [{**entry(paused_debate, 1), "speaker": "zoe"}]}
        )


def test_images_are_left_out_with_a_notice(paused_debate: DebateGraph, model: FakeModel) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    message = HumanMessage([{"type": "text", "text": "See this."}, image, image])
    paused_debate.update_state(THREAD, {"messages": [message]})
    paused_debate.invoke(None, THREAD)
    notice = "See this.\n\n[Left out, because debates read only text: 2 images]"
    assert notice in [each["content"] for each in paused_debate.get_state(THREAD).values["full_transcript"]]
    assert notice in text_of(model.calls[-1])
    assert "aGk=" not in text_of(model.calls[-1])


def test_a_pinned_message_stays_in_every_prompt_after_leaving_the_window(tmp_path: Path) -> None:
    model = FakeModel()
    config = make_config(
        {"turns": 3, "memory": {"keep_recent": 2, "summarize_every": 2, "retrieval": {"enabled": False}}}
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Trams?", config)
        debate.run()
        assert debate.pin("m000001") == ["m000001"]
        model.calls.clear()
        document = debate.run(turns=6)
        words = document["transcript"][1]["content"]
        assert document["state"]["pinned"] == ["m000001"]
        assert all(
            text_of(call).count("[m000001]: <<") == 1 and words in text_of(call)
            for call in model.calls
            if call.purpose in ("turn", "judge")
        )
        assert all(receipt["sections"]["pinned"] > 0 for receipt in document["receipts"][5:])
        assert debate.pin("m000001", pinned=False) == []
        with pytest.raises(InputError, match="m000077"):
            debate.pin("m000077")


@pytest.mark.parametrize("protocol", ["council", "dialogue", "moderated"])
def test_a_pinned_message_stays_within_the_budget_of_every_protocol(protocol: str, tmp_path: Path) -> None:
    model = FakeModel()
    config = make_config({"protocol": protocol, "turns": 4, "memory": {"budget": {"total": 1200}}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        remarks = [{"speaker": "user", "content": "A rule that counts. " * 400, "kind": "interjection"}]
        remarks.append({"speaker": "user", "content": "And another.", "kind": "interjection"})
        debate = debates.start("Trams?", config, transcript=remarks)
        debate.pin("m000001")
        document = debate.run()
    assert document["receipts"]
    for receipt in document["receipts"]:
        assert receipt["total_tokens"] <= receipt["budget"] <= 1200
        # While the pinned message is one of the recent messages, the prompt shows it once, among them.
        place = "pinned" if "pinned" in receipt["sections"] else "messages"
        assert receipt["sections"][place] > 100
        named = f"{place.removesuffix('s')} m000001"
        assert [omission["tokens"] > 0 for omission in receipt["omitted"] if omission["what"] == named] == [
            True
        ]


def test_messages_without_an_id_get_one_before_they_are_stored(paused_debate: DebateGraph) -> None:
    paused_debate.invoke(Command(update={"messages": [("user", "And buses?")]}), THREAD)
    window = paused_debate.get_state(THREAD).values["messages"]
    assert all(message.id for message in window)
    with pytest.raises(InputError, match="turn_count"):
        paused_debate.invoke(Command(update={"turn_count": "many"}), THREAD)

"""Changes of a stored debate by a person: corrections, pins and refused changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from moot.api import open_debates
from moot.calls.effects import ModelCall
from moot.graph.debate import build_graph
from moot.graph.runnable import DebateGraph
from moot.state.config.config_files import make_config
from moot.state.errors import InputError
from moot.state.reducers import entry_id_of
from tests.support.fakes import FakeModel

THREAD: Any = {"configurable": {"thread_id": "amended"}}
OTHER_WORDS = "I meant 14 % of cases."


def text_of(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def halted(model: FakeModel) -> DebateGraph:
    """A debate of four turns that stands after its second."""
    run = build_graph(MemorySaver(), environment=model.environment())
    config = make_config({"turns": 4, "openings": "sequential", "judge": {"enabled": False}})
    run.invoke({"topic": "Trams?"}, THREAD, context=config, interrupt_after=["turn"])
    run.invoke(None, THREAD, interrupt_after=["turn"])
    return run


def entry(run: DebateGraph, seq: int) -> dict[str, Any]:
    found: dict[str, Any] = run.get_state(THREAD).values["full_transcript"][seq]
    return found


@pytest.mark.parametrize("form", ["message", "entry", "input"])
def test_other_words_for_what_was_said_reach_the_next_prompt_as_an_amendment(
    form: str, halted: DebateGraph, model: FakeModel
) -> None:
    before, given = entry(halted, 1), None
    if form == "entry":
        halted.update_state(THREAD, {"full_transcript": [{**before, "content": OTHER_WORDS}]})
    elif form == "message":
        halted.update_state(THREAD, {"messages": [AIMessage(OTHER_WORDS, id="m000001")]})
    else:
        given = {"messages": [AIMessage(OTHER_WORDS, id="m000001")]}
    halted.invoke(given, THREAD)
    values = halted.get_state(THREAD).values
    (amendment,) = [each for each in values["full_transcript"] if OTHER_WORDS in each["content"]]
    assert (amendment["speaker"], amendment["targets"]) == ("user", ["m000001"])
    assert values["full_transcript"][1] == before
    assert all(
        OTHER_WORDS in text_of(call) and "Amendment of [m000001]" in text_of(call) for call in model.calls[2:]
    )
    ids = [each["id"] for each in values["full_transcript"]]
    assert len(ids) == len(set(ids))
    assert [entry_id_of(message) for message in values["messages"][:-1]] == ids


@pytest.mark.parametrize("following", ["turn", "judge", "extract"])
def test_an_amendment_is_in_the_very_next_prompt_whichever_node_comes_next(
    following: str, model: FakeModel
) -> None:
    run = build_graph(MemorySaver(), environment=model.environment())
    config = make_config(
        {"turns": 2, "openings": "sequential", "blackboard": {"extraction": "llm", "model": "m"}}
    )
    run.invoke({"topic": "Trams?"}, THREAD, context=config, interrupt_after=["turn"])
    run.invoke(None, THREAD, context=config, interrupt_before=[following])
    assert run.get_state(THREAD).next == (following,)
    asked = len(model.calls)
    run.update_state(THREAD, {"messages": [AIMessage(OTHER_WORDS, id="m000001")]})
    run.update_state(THREAD, {"messages": [HumanMessage("And buses?")]})
    assert run.get_state(THREAD).next == (following,)
    run.invoke(None, THREAD, context=config)
    values = run.get_state(THREAD).values
    # Claims are extracted from what debaters said, not from amendments of a person.
    calls = [call for call in model.calls[asked:] if call.purpose != "extract"]
    assert calls
    assert all(OTHER_WORDS in text_of(call) and "And buses?" in text_of(call) for call in calls)
    ids = [each["id"] for each in values["full_transcript"]]
    assert len(ids) == len(set(ids))
    assert [entry_id_of(message) for message in values["messages"][:-1]] == ids
    assert sum(OTHER_WORDS in each["content"] for each in values["full_transcript"]) == 1


def test_the_same_words_again_change_nothing_and_an_id_of_nobody_is_a_remark(halted: DebateGraph) -> None:
    window = halted.get_state(THREAD).values["messages"]
    halted.update_state(THREAD, {"messages": [*window, HumanMessage("And buses?", id="m000099")]})
    halted.invoke(None, THREAD)
    said = halted.get_state(THREAD).values["full_transcript"]
    assert [each["content"] for each in said if each["kind"] == "interjection"] == ["And buses?"]
    assert [each["seq"] for each in said] == list(range(len(said)))


@pytest.mark.parametrize(
    "update",
    [
        {"messages": [RemoveMessage("m000001")]},
        {"full_transcript": [{"speaker": "ada", "content": "More."}]},
        {"messages": [AIMessage("Buses?", id="m000000")]},
        {"pinned": ["m000077"]},
    ],
    ids=["removed", "added", "topic", "pin of nothing"],
)
def test_what_would_be_stored_and_ignored_is_refused(update: dict[str, Any], halted: DebateGraph) -> None:
    before = halted.get_state(THREAD).config
    with pytest.raises(InputError):
        halted.update_state(THREAD, update)
    assert halted.get_state(THREAD).config == before


def test_a_pin_stands_in_every_view_and_its_receipt_also_once_it_has_left_the_window(tmp_path: Path) -> None:
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
def test_a_pin_is_within_the_budget_of_every_protocol(protocol: str, tmp_path: Path) -> None:
    model = FakeModel()
    config = make_config({"protocol": protocol, "turns": 4, "memory": {"budget": {"total": 1200}}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        given = [{"speaker": "user", "content": "A rule that counts. " * 400, "kind": "interjection"}]
        given.append({"speaker": "user", "content": "And another.", "kind": "interjection"})
        debate = debates.start("Trams?", config, transcript=given)
        debate.pin("m000001")
        document = debate.run()
    assert document["receipts"]
    for receipt in document["receipts"]:
        assert receipt["total_tokens"] <= receipt["budget"] <= 1200
        # While the pinned message is one of the recent messages, the prompt shows it once, among them.
        place = "pinned" if "pinned" in receipt["sections"] else "messages"
        assert receipt["sections"][place] > 100
        named = f"{place.removesuffix('s')} m000001"
        assert [note["tokens"] > 0 for note in receipt["omitted"] if note["what"] == named] == [True]


def test_messages_without_an_id_get_one_before_they_are_stored(halted: DebateGraph) -> None:
    halted.invoke(Command(update={"messages": [("user", "And buses?")]}), THREAD)
    window = halted.get_state(THREAD).values["messages"]
    assert all(message.id for message in window)
    with pytest.raises(InputError, match="turn_count"):
        halted.invoke(Command(update={"turn_count": "many"}), THREAD)

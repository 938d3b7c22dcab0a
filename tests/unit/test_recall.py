"""Memories that come back into debate turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.graph.api import open_debates
from moot.graph.lookback import look_back
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.memory.indexes import Indexes, load_embeddings
from moot.nodes.memory.recall import Cue, Memories, bring_back, cue_for, memory_items
from moot.nodes.memory.window import window_message
from moot.nodes.text.tokens import counter
from moot.state.config import DebateConfig
from moot.state.config.memory_config import RetrievalConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from moot.state.errors import ConfigError
from moot.state.ledger import MOTION
from tests.support.board import opened, plain
from tests.support.fakes import FakeModel, answer

count = counter()
NAMES = {"ada": "Ada", "bo": "Bo"}


def _state(contents: list[str], window: int = 2, **channels: Any) -> ConversationState:
    entries: list[Entry] = [make_entry(0, "user", "topic", "Topic")]
    entries += [
        make_entry(seq, ("ada", "bo")[seq % 2], "speech", text) for seq, text in enumerate(contents, 1)
    ]
    entries = [{**entry, "tokens": count(entry["content"])} for entry in entries]
    messages = [window_message(entry) for entry in entries[-window:]]
    return cast(
        ConversationState,
        {"topic": "Topic", "full_transcript": entries, "messages": messages, **channels},
    )


def _recalled(state: ConversationState, cue: Cue, room: int = 250, **more: Any) -> Any:
    memories = more.pop("memories", None) or Memories(Indexes(), "d")
    return bring_back(state, memories, RetrievalConfig(**more), cue, room=room, count=count, names=NAMES)


SAID = [f"Remarks about item {n} of the agenda." for n in range(40)]


def test_nothing_comes_back_while_nothing_has_left_the_window() -> None:
    state = _state(SAID[:5], window=6)
    assert _recalled(state, Cue("agenda item 3")).text == ""


def test_what_bears_on_the_message_answered_comes_back_with_its_speaker_and_id() -> None:
    said = [*SAID]
    said[10] = "The harbour toll was forty crowns."
    found = _recalled(_state(said), Cue("Topic", "And what of the harbour toll?"))
    assert "- Ada [m000011]: The harbour toll was forty crowns." not in found.text.split("\n")[0]
    assert "Bo [m000011]: The harbour toll was forty crowns." in found.text
    assert "m000011" in found.ids


def test_of_a_long_message_the_sentence_that_bears_on_it_is_shown() -> None:
    said = [*SAID]
    said[10] = "We met early. " * 15 + "The harbour toll was forty crowns. " + "Then we left. " * 15
    assert "forty crowns" in _recalled(_state(said), Cue("harbour toll")).text


def test_nothing_that_is_in_the_window_comes_back() -> None:
    said = [*SAID, "The harbour toll was forty crowns.", "Indeed."]
    assert "m000041" not in _recalled(_state(said), Cue("harbour toll")).ids


def test_changes_of_position_reflections_and_cards_come_back_too() -> None:
    minutes = [
        *opened(),
        plain(1, "ada", "denies", MOTION, quote="no toll"),
        plain(3, "ada", "asserts", MOTION, quote="a harbour toll"),
    ]
    reflection = {
        "id": "r1",
        "content": "Both avoid the harbour toll",
        "kind": "pattern",
        "about": ["ada"],
        "message_ids": ["m000004"],
        "round": 1,
        "importance": 8,
    }
    state = _state(SAID, minutes=minutes, reflections=[reflection])
    found = _recalled(state, Cue("harbour toll"))
    assert {"shift:e003", "r1"} <= set(found.ids)
    assert "Ada moved from “no toll” to “a harbour toll”" in found.text
    items = memory_items(ledger_of(state), None, state["reflections"], NAMES, count)
    assert [item.id for item in items] == ["shift:e003", "r1"]


def test_it_can_be_switched_off() -> None:
    assert _recalled(_state(SAID), Cue("agenda"), enabled=False).text == ""


def test_an_answer_is_looked_for_with_what_another_said_last() -> None:
    state = _state(["Mine.", "Theirs.", "Mine again."])
    assert cue_for(state, state["full_transcript"], "bo").answering == "Theirs."


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["harbour toll. ", "界", "🙂 ", " \n", "<|endoftext|>"]), min_size=4, max_size=30
    ),
    st.integers(1, 400),
    st.integers(0, 300),
    st.integers(1, 12),
)
def test_what_comes_back_is_within_its_tokens_and_the_same_from_any_index(
    said: list[str], times: int, room: int, top: int
) -> None:
    state = _state([text * times for text in said])
    cue = Cue("harbour toll", said[0])
    memories = Memories(Indexes(), "d")
    _recalled(_state([text * times for text in said[:-2]]), cue, memories=memories)
    warm = _recalled(state, cue, room, top_k=top, memories=memories)
    assert warm == _recalled(state, cue, room, top_k=top)
    assert count(warm.text) <= room
    assert (warm.text == "") == (warm.ids == ())


def _reply(call: ModelCall) -> Reply:
    if call.schema is not None:
        return answer(call)
    number = int(call.digest[:4], 16)
    return Reply(text=f"Case {number} shows that tolls number {number % 7} fail, for 40 % do.", model="m")


def test_a_prompt_with_memories_is_assembled_again_byte_for_byte(tmp_path: Path) -> None:
    memory = {"budget": {"total": 1600, "tail": 500}, "keep_recent": 3, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 14, "memory": memory, "judge": {"enabled": False}})
    url = str(tmp_path / "d.sqlite")
    with open_debates(url, environment=FakeModel(_reply).environment()) as debates:
        debate = debates.start("Do tolls fail?", config, name="d")
        debate.run()
        receipts = debate.document()["receipts"]
    brought = [receipt for receipt in receipts if receipt["retrieved"]]
    assert brought
    with open_debates(url, environment=FakeModel(_reply).environment()) as debates:
        for receipt in (brought[-1], brought[0]):
            seen = look_back(debates.get("d").session, receipt["seq"])
            assert seen.exact
            assert "# From earlier in the debate" in seen.parts[-1].message["content"]


@pytest.mark.parametrize("total", [400, 8000])
def test_a_tail_never_outgrows_its_budget(total: int, tmp_path: Path) -> None:
    model = FakeModel(_reply)
    memory = {"budget": {"total": total}, "keep_recent": 2, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 12, "memory": memory, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Do tolls fail?", config)
        debate.run()
        for receipt in debate.document()["receipts"]:
            room = max(config.memory.budget.tail, 110)  # contract and instruction stay whole
            assert receipt["sections"]["tail"] <= room


class _Meaning:
    """Embeds a text by what it is about, whatever its words."""

    calls = 0
    broken = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise ConnectionError("embedding service is down")
        type(self).calls += len(texts)
        return [[float("tram" in text or "streetcar" in text), float("bee" in text), 0.1] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_embeddings_bring_back_what_is_meant_in_other_words() -> None:
    said = [f"{text} " * 8 for text in SAID]
    said[10] = "A streetcar takes four minutes to the market. " * 8
    memories = Memories(Indexes(), "d", _Meaning())
    assert "m000011" in _recalled(_state(said), Cue("How fast is a tram?"), memories=memories).ids
    assert "m000011" not in _recalled(_state(said), Cue("How fast is a tram?")).ids


def test_an_embedding_service_that_is_down_leaves_words() -> None:
    said = [*SAID]
    said[10] = "The harbour toll was forty crowns."
    broken = _Meaning()
    broken.broken = True
    found = _recalled(_state(said), Cue("harbour toll"), memories=Memories(Indexes(), "d", broken))
    assert found == _recalled(_state(said), Cue("harbour toll"))


@pytest.mark.parametrize("broken", [False, True])
def test_a_turn_embeds_before_it_assembles_and_says_what_failed(broken: bool, tmp_path: Path) -> None:
    meaning = _Meaning()
    meaning.broken = broken
    environment = replace(FakeModel(_reply).environment(), embeddings=meaning)
    memory = {"budget": {"total": 1600, "tail": 500}, "keep_recent": 3, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 9, "memory": memory, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        debate = debates.start("Do trams fail?", config)
        document = debate.run()
    assert document["status"] == "done"
    assert any("is down" in error["error"] for error in document["errors"]) is broken
    assert any(receipt["retrieved"] for receipt in document["receipts"])


def test_embeddings_are_found_by_their_name() -> None:
    found = load_embeddings(f"{__name__}:_Meaning")
    assert found.embed_query("tram") == [1.0, 0.0, 0.1]
    for name, why in ((f"{__name__}:nothing", "cannot make"), (f"{__name__}:count", "cannot make")):
        with pytest.raises(ConfigError, match=why):
            load_embeddings(name)

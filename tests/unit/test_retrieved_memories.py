"""Retrieved messages in the prompts of debaters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.api import open_debates
from moot.calls.effects import ModelCall, Reply
from moot.claims.ledger_from_events import ledger_of
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.memory.cross_debate_memory import (
    MemoryIndexes,
    RetrievalQuery,
    memory_items,
    noted_importance,
    retrieval_query,
    retrieve_memories,
)
from moot.memory.window import window_message
from moot.protocols.base import make_turn
from moot.retrieval.indexes import Indexes, load_embeddings
from moot.state.claim_events import MAIN_QUESTION
from moot.state.config import DebateConfig
from moot.state.config.memory_config import RetrievalConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, answer
from tests.support.ledger_state import plain_event, topic_event

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


def _recalled(state: ConversationState, query: RetrievalQuery, remaining: int = 250, **more: Any) -> Any:
    memories = more.pop("memories", None) or MemoryIndexes(Indexes(), "d")
    return retrieve_memories(
        state, memories, RetrievalConfig(**more), query, remaining=remaining, count=count, names=NAMES
    )


SAID = [f"Remarks about item {n} of the agenda." for n in range(40)]


def test_nothing_comes_back_while_nothing_has_left_the_window() -> None:
    state = _state(SAID[:5], window=6)
    assert _recalled(state, RetrievalQuery("agenda item 3")).text == ""


def test_what_bears_on_the_message_answered_comes_back_with_its_speaker_and_id() -> None:
    said = [*SAID]
    said[10] = "The harbour toll was forty crowns."
    found = _recalled(_state(said), RetrievalQuery("Topic", "And what of the harbour toll?"))
    assert "- Ada [m000011]: The harbour toll was forty crowns." not in found.text.split("\n")[0]
    assert "Bo [m000011]: The harbour toll was forty crowns." in found.text
    assert "m000011" in found.ids


def test_of_a_long_message_the_sentence_that_bears_on_it_is_shown() -> None:
    said = [*SAID]
    said[10] = "We met early. " * 15 + "The harbour toll was forty crowns. " + "Then we left. " * 15
    assert "forty crowns" in _recalled(_state(said), RetrievalQuery("harbour toll")).text


def test_nothing_that_is_in_the_window_comes_back() -> None:
    said = [*SAID, "The harbour toll was forty crowns.", "Indeed."]
    assert "m000041" not in _recalled(_state(said), RetrievalQuery("harbour toll")).ids


def test_a_concession_comes_back_whatever_is_asked_and_a_plain_claim_does_not() -> None:
    notes = [*topic_event("p001"), plain_event(5, "ada", "asserts"), plain_event(9, "bo", "concedes")]
    found = _recalled(_state(SAID, claim_events=notes), RetrievalQuery("the ferry"))
    assert "m000009" in found.ids
    assert "m000005" not in found.ids


def test_messages_matter_by_the_claims_on_them() -> None:
    notes = [
        *topic_event("p001", "p002"),
        plain_event(1, "ada", "asserts"),
        plain_event(1, "ada", "asserts", "p002", id="e101"),
        plain_event(2, "bo", "denies"),
        plain_event(3, "bo", "concedes", "p002"),
        plain_event(4, "bo", "asserts"),
    ]
    assert noted_importance(ledger_of({"topic": "", "claim_events": notes})) == {1: 3, 2: 2, 3: 7, 4: 8}


def test_changes_of_position_reflections_and_cards_come_back_too() -> None:
    minutes = [
        *topic_event(),
        plain_event(1, "ada", "denies", MAIN_QUESTION, quote="no toll"),
        plain_event(3, "ada", "asserts", MAIN_QUESTION, quote="a harbour toll"),
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
    state = _state(SAID, claim_events=minutes, reflections=[reflection])
    found = _recalled(state, RetrievalQuery("harbour toll"))
    assert {"shift:e003", "r1"} <= set(found.ids)
    assert "Ada moved from “no toll” to “a harbour toll”" in found.text
    items = memory_items(ledger_of(state), None, state["reflections"], NAMES, count)
    assert [item.id for item in items] == ["shift:e003", "r1"]


def test_it_can_be_switched_off() -> None:
    assert _recalled(_state(SAID), RetrievalQuery("agenda"), enabled=False).text == ""


def test_an_answer_is_looked_for_with_what_another_said_last() -> None:
    state = _state(["Mine.", "Theirs.", "Mine again."])
    assert retrieval_query(state, state["full_transcript"], make_turn("bo")).answering == "Theirs."


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
    said: list[str], times: int, remaining: int, top: int
) -> None:
    state = _state([text * times for text in said])
    query = RetrievalQuery("harbour toll", said[0])
    memories = MemoryIndexes(Indexes(), "d")
    _recalled(_state([text * times for text in said[:-2]]), query, memories=memories)
    warm = _recalled(state, query, remaining, top_k=top, memories=memories)
    assert warm == _recalled(state, query, remaining, top_k=top)
    assert count(warm.text) <= remaining
    assert (warm.text == "") == (warm.ids == ())


def _reply(call: ModelCall) -> Reply:
    if call.schema is not None:
        return answer(call)
    number = int(call.digest[:4], 16)
    return Reply(text=f"Case {number} shows that tolls number {number % 7} fail, for 40 % do.", model="m")


def test_a_prompt_with_memories_is_assembled_again_byte_for_byte(tmp_path: Path) -> None:
    memory = {"budget": {"total": 1600, "turn_suffix": 500}, "keep_recent": 3, "summarize_every": 2}
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
            seen = reconstruct_prompt(debates.get("d").session, receipt["seq"])
            assert seen.exact
            assert "# Earlier messages that matter here" in seen.parts[-1].message["content"]


@pytest.mark.parametrize("total", [400, 8000])
def test_a_tail_never_outgrows_its_budget(total: int, tmp_path: Path) -> None:
    model = FakeModel(_reply)
    memory = {"budget": {"total": total}, "keep_recent": 2, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 12, "memory": memory, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Do tolls fail?", config)
        debate.run()
        for receipt in debate.document()["receipts"]:
            remaining = max(config.memory.budget.turn_suffix, 110)  # contract and instruction stay whole
            assert receipt["sections"]["turn_suffix"] <= remaining


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
    memories = MemoryIndexes(Indexes(), "d", _Meaning())
    assert "m000011" in _recalled(_state(said), RetrievalQuery("How fast is a tram?"), memories=memories).ids
    assert "m000011" not in _recalled(_state(said), RetrievalQuery("How fast is a tram?")).ids


def test_an_embedding_service_that_is_down_leaves_words() -> None:
    said = [*SAID]
    said[10] = "The harbour toll was forty crowns."
    broken = _Meaning()
    broken.broken = True
    found = _recalled(
        _state(said), RetrievalQuery("harbour toll"), memories=MemoryIndexes(Indexes(), "d", broken)
    )
    assert found == _recalled(_state(said), RetrievalQuery("harbour toll"))


@pytest.mark.parametrize("broken", [False, True])
def test_a_turn_embeds_before_it_assembles_and_says_what_failed(broken: bool, tmp_path: Path) -> None:
    meaning = _Meaning()
    meaning.broken = broken
    environment = replace(FakeModel(_reply).environment(), embeddings=meaning)
    memory = {"budget": {"total": 1600, "turn_suffix": 500}, "keep_recent": 3, "summarize_every": 2}
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
    for name, why in ((f"{__name__}:nothing", "cannot create"), (f"{__name__}:count", "cannot create")):
        with pytest.raises(ConfigError, match=why):
            load_embeddings(name)

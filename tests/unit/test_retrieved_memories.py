"""Retrieved messages in the prompts of debaters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.claims.ledger_from_events import ledger_of
from moot.config import DebateConfig
from moot.config.memory_config import RetrievalConfig
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
from moot.protocols.schedule import make_turn
from moot.retrieval.indexes import Indexes, load_embeddings
from moot.state.claim_events import MAIN_QUESTION
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, fake_reply
from tests.support.ledger_state import new_claim_events, stance_event

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


def _retrieve(state: ConversationState, query: RetrievalQuery, remaining: int = 250, **more: Any) -> Any:
    memories = more.pop("memories", None) or MemoryIndexes(Indexes(), "d")
    return retrieve_memories(
        state, memories, RetrievalConfig(**more), query, remaining=remaining, count=count, names=NAMES
    )


REMARKS = [f"Remarks about item {n} of the agenda." for n in range(40)]


def test_nothing_is_retrieved_while_all_messages_are_in_the_window() -> None:
    state = _state(REMARKS[:5], window=6)
    assert _retrieve(state, RetrievalQuery("agenda item 3")).text == ""


def test_relevant_message_is_retrieved_with_its_speaker_and_id() -> None:
    contents = [*REMARKS]
    contents[10] = "The harbour toll was forty crowns."
    memories = _retrieve(_state(contents), RetrievalQuery("Topic", "And what of the harbour toll?"))
    assert "- Ada [m000011]: The harbour toll was forty crowns." not in memories.text.split("\n")[0]
    assert "Bo [m000011]: The harbour toll was forty crowns." in memories.text
    assert "m000011" in memories.ids


def test_relevant_sentence_of_a_long_message_is_shown() -> None:
    contents = [*REMARKS]
    contents[10] = "We met early. " * 15 + "The harbour toll was forty crowns. " + "Then we left. " * 15
    assert "forty crowns" in _retrieve(_state(contents), RetrievalQuery("harbour toll")).text


def test_messages_in_the_window_are_not_retrieved() -> None:
    contents = [*REMARKS, "The harbour toll was forty crowns.", "Indeed."]
    assert "m000041" not in _retrieve(_state(contents), RetrievalQuery("harbour toll")).ids


def test_concessions_are_retrieved_for_any_query_and_assertions_are_not() -> None:
    events = [*new_claim_events("p001"), stance_event(5, "ada", "asserts"), stance_event(9, "bo", "concedes")]
    memories = _retrieve(_state(REMARKS, claim_events=events), RetrievalQuery("the ferry"))
    assert "m000009" in memories.ids
    assert "m000005" not in memories.ids


def test_importance_of_a_message_depends_on_its_claim_events() -> None:
    events = [
        *new_claim_events("p001", "p002"),
        stance_event(1, "ada", "asserts"),
        stance_event(1, "ada", "asserts", "p002", id="e101"),
        stance_event(2, "bo", "denies"),
        stance_event(3, "bo", "concedes", "p002"),
        stance_event(4, "bo", "asserts"),
    ]
    assert noted_importance(ledger_of({"topic": "", "claim_events": events})) == {1: 3, 2: 2, 3: 7, 4: 8}


def test_changes_of_position_and_reflections_are_retrieved() -> None:
    changes = [
        *new_claim_events(),
        stance_event(1, "ada", "denies", MAIN_QUESTION, quote="no toll"),
        stance_event(3, "ada", "asserts", MAIN_QUESTION, quote="a harbour toll"),
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
    state = _state(REMARKS, claim_events=changes, reflections=[reflection])
    memories = _retrieve(state, RetrievalQuery("harbour toll"))
    assert {"shift:e003", "r1"} <= set(memories.ids)
    assert "Ada moved from “no toll” to “a harbour toll”" in memories.text
    items = memory_items(ledger_of(state), None, state["reflections"], NAMES, count)
    assert [item.id for item in items] == ["shift:e003", "r1"]


def test_retrieval_can_be_disabled() -> None:
    assert _retrieve(_state(REMARKS), RetrievalQuery("agenda"), enabled=False).text == ""


def test_retrieval_query_has_the_last_message_of_another_debater() -> None:
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
def test_retrieved_text_fits_its_budget_and_is_the_same_from_a_warm_index(
    contents: list[str], times: int, remaining: int, top: int
) -> None:
    state = _state([text * times for text in contents])
    query = RetrievalQuery("harbour toll", contents[0])
    memories = MemoryIndexes(Indexes(), "d")
    _retrieve(_state([text * times for text in contents[:-2]]), query, memories=memories)
    warm = _retrieve(state, query, remaining, top_k=top, memories=memories)
    assert warm == _retrieve(state, query, remaining, top_k=top)
    assert count(warm.text) <= remaining
    assert (warm.text == "") == (warm.ids == ())


def _reply(call: ModelCall) -> Reply:
    if call.schema is not None:
        return fake_reply(call)
    number = int(call.digest[:4], 16)
    return Reply(text=f"Case {number} shows that tolls number {number % 7} fail, for 40 % do.", model="m")


def test_prompt_with_retrieved_messages_is_reconstructed_exactly(tmp_path: Path) -> None:
    memory = {"budget": {"total": 1600, "turn_suffix": 500}, "keep_recent": 3, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 14, "memory": memory, "judge": {"enabled": False}})
    url = str(tmp_path / "d.sqlite")
    with open_debates(url, environment=FakeModel(_reply).environment()) as debates:
        debate = debates.start("Do tolls fail?", config, name="d")
        debate.run()
        receipts = debate.document()["receipts"]
    with_memories = [receipt for receipt in receipts if receipt["retrieved"]]
    assert with_memories
    with open_debates(url, environment=FakeModel(_reply).environment()) as debates:
        for receipt in (with_memories[-1], with_memories[0]):
            seen = reconstruct_prompt(debates.get("d").session, receipt["seq"])
            assert seen.exact
            assert "# Earlier messages that matter here" in seen.parts[-1].message["content"]


@pytest.mark.parametrize("total", [400, 8000])
def test_turn_suffix_never_exceeds_its_budget(total: int, tmp_path: Path) -> None:
    model = FakeModel(_reply)
    memory = {"budget": {"total": total}, "keep_recent": 2, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 12, "memory": memory, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Do tolls fail?", config)
        debate.run()
        for receipt in debate.document()["receipts"]:
            # The persona contract and the instruction are never cut: they need up to 110 tokens.
            remaining = max(config.memory.budget.turn_suffix, 110)
            assert receipt["sections"]["turn_suffix"] <= remaining


class _TopicEmbeddings:
    """Embeddings that depend on the topic of a text and not on its words."""

    calls = 0
    broken = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.broken:
            raise ConnectionError("embedding service is down")
        type(self).calls += len(texts)
        return [[float("tram" in text or "streetcar" in text), float("bee" in text), 0.1] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_embeddings_retrieve_a_message_with_other_words() -> None:
    contents = [f"{text} " * 8 for text in REMARKS]
    contents[10] = "A streetcar takes four minutes to the market. " * 8
    memories = MemoryIndexes(Indexes(), "d", _TopicEmbeddings())
    assert (
        "m000011" in _retrieve(_state(contents), RetrievalQuery("How fast is a tram?"), memories=memories).ids
    )
    assert "m000011" not in _retrieve(_state(contents), RetrievalQuery("How fast is a tram?")).ids


def test_retrieval_uses_words_if_the_embedding_service_is_down() -> None:
    contents = [*REMARKS]
    contents[10] = "The harbour toll was forty crowns."
    broken = _TopicEmbeddings()
    broken.broken = True
    result = _retrieve(
        _state(contents), RetrievalQuery("harbour toll"), memories=MemoryIndexes(Indexes(), "d", broken)
    )
    assert result == _retrieve(_state(contents), RetrievalQuery("harbour toll"))


@pytest.mark.parametrize("broken", [False, True])
def test_debate_finishes_and_reports_a_failed_embedding_service(broken: bool, tmp_path: Path) -> None:
    service = _TopicEmbeddings()
    service.broken = broken
    environment = replace(FakeModel(_reply).environment(), embeddings=service)
    memory = {"budget": {"total": 1600, "turn_suffix": 500}, "keep_recent": 3, "summarize_every": 2}
    config = DebateConfig.model_validate({"turns": 9, "memory": memory, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        debate = debates.start("Do trams fail?", config)
        document = debate.run()
    assert document["status"] == "done"
    assert any("is down" in error["error"] for error in document["errors"]) is broken
    assert any(receipt["retrieved"] for receipt in document["receipts"])


def test_embeddings_are_loaded_by_name() -> None:
    embeddings = load_embeddings(f"{__name__}:_TopicEmbeddings")
    assert embeddings.embed_query("tram") == [1.0, 0.0, 0.1]
    for name, why in ((f"{__name__}:nothing", "cannot create"), (f"{__name__}:count", "cannot create")):
        with pytest.raises(ConfigError, match=why):
            load_embeddings(name)

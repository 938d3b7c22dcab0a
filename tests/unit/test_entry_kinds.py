"""Properties of each kind of entry, such as which kinds count as turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.debates.imported_debate import document_values
from moot.debates.lifecycle import imported_row
from moot.documents import DebateDocument, make_document
from moot.graph.debate import build_graph
from moot.protocols.registry import PROTOCOLS
from moot.runtime.environment import Environment
from moot.state.entries import (
    ENTRY_KINDS,
    Entry,
    EntryKind,
    make_entry,
    traits_of,
    turns_taken,
    user_provided_in,
)
from moot.storage.catalogue import DebateRow
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "6a5d1f0e-3a9e-4a57-9f2b-0c1d2e3f4a5b"}}
SPEAKERS = ("advocate", "skeptic", "user", "moderator", "tools", "moot", "guest")


def _config(protocol: str) -> DebateConfig:
    debaters = [{"name": name} for name in ("Advocate", "Skeptic", "Sage")]
    return DebateConfig.model_validate({"protocol": protocol, "debaters": debaters, "turns": 4, "seed": 1})


def _document(config: DebateConfig, entries: list[Entry]) -> DebateDocument:
    row = DebateRow("", "d", "T", config.protocol, "done", 0, 0, 0.0, "", "", "")
    state = {
        "topic": "T",
        "config": config.to_json(),
        "full_transcript": entries,
        "turn_count": turns_taken(entries, config.names()),
    }
    return make_document(row, state)


def test_every_entry_kind_has_traits() -> None:
    assert ENTRY_KINDS.keys() == set(get_args(EntryKind))


def test_unknown_entry_kind_has_the_traits_of_a_speech() -> None:
    assert traits_of({"kind": "duel"}) is ENTRY_KINDS["speech"]


entry_fields = st.tuples(
    st.sampled_from(get_args(EntryKind)), st.sampled_from(SPEAKERS), st.sampled_from(SPEAKERS)
)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@settings(deadline=None, max_examples=25)
@given(fields=st.lists(entry_fields, max_size=12))
def test_export_and_import_keep_the_turn_count(
    protocol: str, fields: list[tuple[EntryKind, str, str]]
) -> None:
    config = _config(protocol)
    entries = [make_entry(0, "user", "topic", "T")]
    entries += [
        make_entry(seq, speaker, kind, "words", targets=[target])
        for seq, (kind, speaker, target) in enumerate(fields, 1)
    ]
    document: Any = _document(config, entries)
    expected = turns_taken(entries, config.names())
    for _ in range(2):
        values = document_values(document, Environment())
        row = imported_row(values, None, "", document)
        assert (values["turn_count"], row.turns) == (expected, expected)
        assert values["user_provided"] == user_provided_in(values["full_transcript"])
        document = make_document(row, values)


def _run(config: DebateConfig, reply: Callable[[ModelCall], Reply]) -> dict[str, Any]:
    graph = build_graph(InMemorySaver(), environment=FakeModel(reply).environment())
    graph.invoke({"topic": "T?"}, THREAD, context=config)
    values: dict[str, Any] = graph.get_state(THREAD).values
    return values


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_turn_count_of_a_run_equals_the_turns_in_its_transcript(protocol: str) -> None:
    values = _run(_config(protocol), fake_reply)
    turns = turns_taken(values["full_transcript"], _config(protocol).names())
    assert values["turn_count"] == turns == len(values["receipts"])
    assert (turns > 0) is (protocol != "pairwise"), "`pairwise` judges user-provided answers without turns"
    assert values["user_provided"] == user_provided_in(values["full_transcript"])


@pytest.mark.parametrize("protocol", ["council", "dialogue", "vote"])
def test_failed_turn_counts_as_a_turn(protocol: str) -> None:
    failing_speaker = next(iter(_config(protocol).names().values()))

    def reply(call: ModelCall) -> Reply:
        fails = call.purpose == "turn" and call.hints["speaker"] == failing_speaker
        return Reply(error="down") if fails else fake_reply(call)

    values = _run(_config(protocol), reply)
    notices = [entry for entry in values["full_transcript"] if entry["kind"] == "notice"]
    turns = turns_taken(values["full_transcript"], _config(protocol).names())
    assert notices
    assert values["turn_count"] == turns == len(values["receipts"])


def test_messages_of_a_continued_transcript_do_not_count_as_turns() -> None:
    config = _config("round-robin")
    graph = build_graph(InMemorySaver(), environment=FakeModel().environment())
    transcript: Any = [{"speaker": "advocate", "content": "Yes."}, {"speaker": "skeptic", "content": "No."}]
    graph.invoke({"topic": "T?", "full_transcript": transcript}, THREAD, context=config)
    values = graph.get_state(THREAD).values
    row = DebateRow("", "d", "T?", config.protocol, "done", 4, 0, 0.0, "", "", "")
    imported = document_values(make_document(row, values), Environment())
    assert imported["turn_count"] == values["turn_count"] == 4

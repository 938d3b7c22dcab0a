"""Reading of complete, unusual and damaged documents."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from moot.documents import DebateDocument, fill_in, load_leniently, whole_document
from moot.judging.judge_response import failed_verdict
from moot.state.conversation import SCHEMA_VERSION
from moot.state.errors import InputError
from tests.support.json_values import json_paths, json_values, replace_values
from tests.support.report_documents import debate_document


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def complete_document(**keys: Any) -> dict[str, Any]:
    """Return a complete document, with `keys` replaced."""
    document = copy.deepcopy(fill_in(DebateDocument, debate_document()))
    return {**document, "schema_version": SCHEMA_VERSION, **keys}


PLACES = json_paths(complete_document())[1:]
DOCUMENT = TypeAdapter(DebateDocument)


@settings(max_examples=80, deadline=None)
@given(bad_value=st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=4))
def test_lenient_load_keeps_the_undamaged_keys_of_a_document(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    document = replace_values(complete_document(), bad_value)
    original = copy.deepcopy(document)
    read = load_leniently(DebateDocument, document)
    DOCUMENT.validate_python(read)
    assert load_leniently(DebateDocument, read) == read
    assert repr(document) == repr(original)
    touched = {place[0] for place, _ in bad_value}
    assert {key: read.get(key) for key in document if key not in touched} == {
        key: value for key, value in complete_document().items() if key not in touched
    }


@given(value=json_values)
def test_lenient_load_reads_any_other_value_as_an_empty_document(value: Any) -> None:
    assert load_leniently(DebateDocument, value)["transcript"] == []


def test_complete_document_is_read_unchanged_with_unknown_keys() -> None:
    document = complete_document(mood="calm")
    document["transcript"][0]["mood"] = "calm"
    assert whole_document(document) == document
    assert load_leniently(DebateDocument, document) == document


def test_lenient_load_skips_list_items_of_the_wrong_type() -> None:
    entries = complete_document()["transcript"]
    read = load_leniently(
        DebateDocument, complete_document(transcript=[entries[0], "words", entries[1], None])
    )
    assert [entry["seq"] for entry in read["transcript"]] == [0, 1]


def test_verdict_fields_missing_in_an_older_document_are_empty() -> None:
    verdict = {**failed_verdict("judge", "no JSON"), "outcome": {}}
    older = {key: value for key, value in verdict.items() if key not in ("lengths", "notes")}
    document = whole_document(complete_document(verdict=older, verdicts=[older]))
    assert document["verdict"] == failed_verdict("judge", "no JSON")
    assert document["verdicts"] == [verdict]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"verdict": {**failed_verdict("j", ""), "totals": {"ada": "much"}}}, r"verdict\.totals\.ada"),
        ({"verdicts": ["ada"]}, r"verdicts\.0"),
        ({"topic": 4}, r"topic: Input should be a valid string"),
        ({"usage": {"calls": 1}}, r"usage\.prompt_tokens: Field required"),
        ({"schema_version": SCHEMA_VERSION + 1}, "a newer version .*update Moot"),
        ({"schema_version": SCHEMA_VERSION - 1}, "another version .*start the debate again"),
        ({"state": {"round": "two"}}, r"state\.round"),
        ({"usage": {"calls": 1, "prompt_tokens": 2**70}}, r"^usage\.prompt_tokens: the number is too large"),
        ({"usage": {"calls": 1, "cost_usd": 1.7e308}}, r"^usage\.cost_usd: the number is too large"),
        ({"state": {"turn_count": 2**65}}, r"^state\.turn_count: the number is too large"),
        ({"state": {"protocol_state": _nested(900)}}, "^state: .* nested levels"),
        ({"config": _nested(100_000)}, "^config: .* nested levels"),
        ({"topic": "\ud800 x"}, "^topic: the text contains a lone surrogate"),
        ({"state": {"protocol_state": {"\ud800": 1}}}, r"^state\.protocol_state: the key .* lone surrogate"),
        ({"name": "\ud800"}, "^name: the text contains a lone surrogate"),
    ],
    ids=[
        "text as a total",
        "text as a verdict",
        "number as the topic",
        "incomplete usage",
        "newer version",
        "older version",
        "text as the round",
        "too many tokens for the database",
        "cost too large to add to",
        "too many turns for the database",
        "deeply nested state",
        "deeply nested configuration",
        "lone surrogate in the topic",
        "lone surrogate in a key",
        "lone surrogate in the name",
    ],
)
def test_error_names_the_key_of_an_invalid_value(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        whole_document(complete_document(**keys))

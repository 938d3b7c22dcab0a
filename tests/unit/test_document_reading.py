"""Reading of documents: complete, unusual and broken ones."""

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
from tests.support.json_values import json_values, places, with_value_at
from tests.support.report_documents import debate


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def whole(**keys: Any) -> dict[str, Any]:
    """Return a document that lacks nothing; `keys` replace its own."""
    document = copy.deepcopy(fill_in(DebateDocument, debate()))
    return {**document, "schema_version": SCHEMA_VERSION, **keys}


PLACES = places(whole())[1:]
DOCUMENT = TypeAdapter(DebateDocument)


@settings(max_examples=80, deadline=None)
@given(bad_value=st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=4))
def test_whatever_stands_anywhere_the_rest_is_read_and_what_is_read_is_a_document(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    document = with_value_at(whole(), bad_value)
    given_before = copy.deepcopy(document)
    read = load_leniently(DebateDocument, document)
    DOCUMENT.validate_python(read)
    assert load_leniently(DebateDocument, read) == read
    assert repr(document) == repr(given_before)
    touched = {place[0] for place, _ in bad_value}
    assert {key: read.get(key) for key in document if key not in touched} == {
        key: value for key, value in whole().items() if key not in touched
    }


@given(value=json_values)
def test_what_is_no_document_at_all_is_read_as_an_empty_one(value: Any) -> None:
    assert load_leniently(DebateDocument, value)["transcript"] == []


def test_a_whole_document_is_read_as_it_is_unknown_keys_too() -> None:
    document = whole(mood="calm")
    document["transcript"][0]["mood"] = "calm"
    assert whole_document(document) == document
    assert load_leniently(DebateDocument, document) == document


def test_an_item_of_another_type_is_left_out_of_its_list() -> None:
    entries = whole()["transcript"]
    read = load_leniently(DebateDocument, whole(transcript=[entries[0], "words", entries[1], None]))
    assert [entry["seq"] for entry in read["transcript"]] == [0, 1]


def test_what_later_versions_record_of_a_verdict_is_empty_in_an_older_one() -> None:
    verdict = {**failed_verdict("judge", "no JSON"), "outcome": {}}
    older = {key: value for key, value in verdict.items() if key not in ("lengths", "notes")}
    document = whole_document(whole(verdict=older, verdicts=[older], agreement={}))
    assert document["verdict"] == failed_verdict("judge", "no JSON")
    assert document["verdicts"][0]["lengths"] == {}
    assert "agreement" not in document or document["agreement"] == {}


@pytest.mark.parametrize(
    ("keys", "says"),
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
        "a total in words",
        "a verdict in words",
        "no topic",
        "half a usage",
        "a newer version",
        "an older version",
        "a state",
        "more tokens than a database stores",
        "a cost that leaves no room for the next",
        "more turns than a database stores",
        "a deep state",
        "a deep configuration",
        "half a character",
        "half a character as a key",
        "half a character in a name",
    ],
)
def test_what_is_wrong_is_named_by_its_key(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        whole_document(whole(**keys))

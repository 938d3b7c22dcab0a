"""Reading of complete, unusual and damaged documents."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moot.documents import read_document, whole_document
from moot.judging.response_check import failed_verdict
from moot.reports import render_brief, render_html, render_markdown
from moot.reports.argdown import render_argdown
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
    document = copy.deepcopy(debate_document())
    return {**document, "schema_version": SCHEMA_VERSION, **keys}


PLACES = json_paths(complete_document())[1:]


@settings(max_examples=80, deadline=None)
@given(place=st.sampled_from(PLACES), value=json_values)
def test_damaged_document_is_refused_or_read_unchanged(place: tuple[Any, ...], value: Any) -> None:
    document = replace_values(complete_document(), [(place, value)])
    original = copy.deepcopy(document)
    with suppress(InputError):
        assert read_document(document) == document
    assert repr(document) == repr(original)


@pytest.mark.parametrize("value", [None, [], {}, "text", 4])
def test_value_that_is_no_document_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"not a valid moot\.debate/1 document"):
        read_document(value)


def test_complete_document_is_read_unchanged_with_unknown_keys() -> None:
    document = complete_document(mood="calm")
    document["transcript"][0]["mood"] = "calm"
    assert whole_document(document) == document


@pytest.mark.parametrize("render", [render_html, render_markdown, render_brief, render_argdown])
def test_report_of_an_incomplete_document_names_the_missing_key(render: Callable[[Any], str]) -> None:
    document = {key: value for key, value in complete_document().items() if key != "receipts"}
    with pytest.raises(InputError, match="receipts: Field required"):
        render(document)


def test_report_of_a_document_with_an_invalid_configuration_names_the_key() -> None:
    config = {"debaters": [{"id": "ada", "name": 7}]}
    with pytest.raises(InputError, match=r"config\.debaters\.0\.name"):
        render_html(complete_document(config=config))


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

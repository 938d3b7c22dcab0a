"""Text made safe for a terminal."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.cli.terminal import json_text, one_line, safe

HOSTILE = "\x1b[31mred\x1b[0m \x9b2J \u202egnp.exe\u2066 \x07 \x00 \x7f \rover \ud800 \ufeff"
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from(HOSTILE))
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def _is_control(character: str) -> bool:
    """Return whether a terminal interprets the character instead of showing it."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in BIDI


@given(ANY_TEXT)
def test_safe_text_contains_no_control_character(text: str) -> None:
    assert not any(map(_is_control, safe(text)))


@given(ANY_TEXT, ANY_TEXT)
def test_concatenation_of_safe_texts_is_safe(one: str, other: str) -> None:
    assert not any(map(_is_control, safe(one) + safe(other)))


@given(ANY_TEXT)
def test_safe_is_idempotent(text: str) -> None:
    assert safe(safe(text)) == safe(text)


def test_safe_keeps_ordinary_text() -> None:
    text = "日本語 — “quoted” 👩‍👩‍👧 naïve\n\tindented עברית"
    assert safe(text) == text


def test_safe_shows_control_characters_instead_of_dropping_them() -> None:
    assert safe("\x1b[31m\u202e\r\n") == "␛[31m⟨U+202E⟩\n"


@given(ANY_TEXT, st.integers(1, 50))
def test_one_line_returns_a_single_line_within_the_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert len(line) <= width


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_text_is_safe_to_print_and_parses_to_the_same_value(value: Any) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert not any(map(_is_control, text))


@pytest.mark.parametrize("character", ["\x7f", "\u2028", "\u202e", "\x9b"], ids=ascii)
def test_json_text_escapes_characters_that_json_dumps_does_not(character: str) -> None:
    assert character not in json_text({"a": character})

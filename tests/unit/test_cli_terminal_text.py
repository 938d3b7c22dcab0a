from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.terminal import json_text, one_line, safe

HOSTILE = "\x1b[31mred\x1b[0m \x9b2J \u202egnp.exe\u2066 \x07 \x00 \x7f \rover \ud800 \ufeff"
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from(HOSTILE))
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def _obeyed(character: str) -> bool:
    """Return whether a terminal would do something else than show it."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or unicodedata.bidirectional(character) in BIDI


@given(ANY_TEXT)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not any(map(_obeyed, safe(text)))


@given(ANY_TEXT, ANY_TEXT)
def test_parts_made_safe_on_their_own_are_safe_together(one: str, other: str) -> None:
    assert not any(map(_obeyed, safe(one) + safe(other)))


@given(ANY_TEXT)
def test_making_safe_twice_changes_nothing_more(text: str) -> None:
    assert safe(safe(text)) == safe(text)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "日本語 — “quoted” 👩‍👩‍👧 naïve\n\tindented עברית"
    assert safe(text) == text


def test_an_escape_is_shown_not_dropped() -> None:
    assert safe("\x1b[31m\u202e\r\n") == "␛[31m⟨U+202E⟩\n"


@given(ANY_TEXT, st.integers(1, 50))
def test_one_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert len(line) <= width


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_is_safe_to_print_and_means_the_same(value: Any) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert not any(map(_obeyed, text))


@pytest.mark.parametrize("character", ["\x7f", "\u2028", "\u202e", "\x9b"], ids=ascii)
def test_json_escapes_what_json_itself_would_not(character: str) -> None:
    assert character not in json_text({"a": character})

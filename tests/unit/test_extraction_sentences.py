"""Sentence splitting, and texts on one line without markup."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, strategies as st

from moot.text.plain_text import clip, excerpt, plain_line, sanitize_line
from moot.text.terms import split_sentences


def texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "It costs too much. We stop! Why?", ["It costs too much.", "We stop!", "Why?"], id="latin"
        ),
        pytest.param("税应该提高。你同意吗？不！", ["税应该提高。", "你同意吗？", "不！"], id="cjk"),
        pytest.param(
            "Dr. Smith pays $3.50 now. He left.", ["Dr. Smith pays $3.50 now.", "He left."], id="title"
        ),
        pytest.param("See e.g. Paris or v. 2.1.3 today.", ["See e.g. Paris or v. 2.1.3 today."], id="dotted"),
        pytest.param("In the U.S. Senate it fails. J. S. Mill agreed.", None, id="initials"),
        pytest.param("He lives in the U.S. They do not.", ["He lives in the U.S.", "They do not."], id="end"),
        pytest.param("Das gilt z.B. in Köln. Gut.", ["Das gilt z.B. in Köln.", "Gut."], id="german"),
        pytest.param("हाँ। नहीं।", ["हाँ।", "नहीं।"], id="danda"),
        pytest.param("ما رأيك؟ لا أدري.", ["ما رأيك؟", "لا أدري."], id="arabic"),
        pytest.param("“Stop!” he said. Fine.", ["“Stop!” he said.", "Fine."], id="quoted"),
        pytest.param("i agree. it holds.", ["i agree.", "it holds."], id="no-capitals"),
        pytest.param("wrapped\nline here. Next", ["wrapped\nline here.", "Next"], id="wrapped"),
    ],
)
def test_text_is_split_at_sentence_ends(text: str, expected: list[str] | None) -> None:
    assert texts(text) == (expected or ["In the U.S. Senate it fails.", "J. S. Mill agreed."])


def test_list_items_headings_and_code_are_split_apart() -> None:
    sentences = split_sentences("# Plan\nIntro\n- one\n- two\n1. three\n```py\nx = 1.\n\n# y. Z\n```\nEnd")
    assert [(s.kind, s.text) for s in sentences] == [
        ("heading", "# Plan"),
        ("prose", "Intro"),
        ("bullet", "- one"),
        ("bullet", "- two"),
        ("bullet", "1. three"),
        ("code", "```py\nx = 1.\n\n# y. Z\n```"),
        ("prose", "End"),
    ]


def test_an_unclosed_code_block_reaches_to_the_end() -> None:
    assert texts("Look:\n```\na. B. c") == ["Look:", "```\na. B. c"]


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n .。-`#>|")))
def test_sentences_are_verbatim_in_order_and_lose_no_word(text: str) -> None:
    end = 0
    for sentence in split_sentences(text):
        assert sentence.text.strip() == sentence.text != ""
        assert text[sentence.start : sentence.start + len(sentence.text)] == sentence.text
        assert not text[end : sentence.start].strip()
        end = sentence.start + len(sentence.text)
    assert not text[end:].strip()


@pytest.mark.parametrize("piece", [" ", "a", ".", "a. ", "\n", "- ", "```\n", "。", '"', "> ", "("])
def test_any_long_text_is_split_in_linear_time(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    began = time.process_time()
    split_sentences(text)
    assert time.process_time() - began < 4


@given(st.text(), st.integers(0, 60))
def test_clipped_text_respects_its_limit(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert len(excerpt(text, limit, around=len(text) // 2)) <= max(limit, 1)


@given(st.text(st.characters() | st.sampled_from("\n\r\u2028\u2029#>-*|=~` \u202e")))
def test_sanitized_text_is_one_line_without_markup(text: str) -> None:
    line = sanitize_line(text)
    assert line == "" or len(line.splitlines()) == 1
    assert not any(unicodedata.category(char) == "Cc" for char in line)
    assert line[:1] not in {"#", ">", "|", "=", "~", "`"}
    assert not line.startswith(("- ", "* ", "+ "))
    assert plain_line(line) == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Verdict: Ben wins", "Verdict: Ben wins"),
        ("> # nested", "nested"),
        ("-5% growth", "-5% growth"),
        ("see [m000007, m000009] there", "see (m000007, m000009) there"),
        ("a <h1>b</h1>", "a ‹h1>b‹/h1>"),
        ("12. item", "item"),
        ("``` # code", "code"),
    ],
)
def test_sanitize_line_removes_structural_markup(text: str, expected: str) -> None:
    assert sanitize_line(text) == expected

"""What is seen in a message: evidence, names, how much it matters; in any script and in linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.nodes.reading.exhibits import find_evidence
from moot.nodes.reading.moves import importance
from moot.nodes.reading.names import mentions
from moot.nodes.text.terms import likeness, terms
from moot.state.entries import make_entry

NAMES = {"ada": "Ada Lovelace", "ben": "Ben", "chen": "陈明", "will": "Will Power"}


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("It rose by 12.5 % last year.", "percent", "12.5 %"),
        ("下降了百分之三十。", "percent", "百分之三十"),
        ("It costs $3.2 million a year.", "number", "$3.2 million"),
        ("In ١٩٩٩ it ended.", "number", "١٩٩٩"),
        ("See https://example.org/a?b=1 for more.", "link", "https://example.org/a?b=1"),
        ("Smith et al. (2019) found it.", "citation", "Smith et al. (2019)"),
        ("This was shown (Jones, 2020) before.", "citation", "(Jones, 2020)"),
        ("He wrote “we shall never give up on this”.", "quote", "“we shall never give up on this”"),
        ("他说「我们绝不放弃」。", "quote", "「我们绝不放弃」"),
    ],
)
def test_evidence_is_seen_by_its_form(text: str, form: str, value: str) -> None:
    assert (form, value) in find_evidence(text).items()


def test_a_lone_digit_is_no_evidence() -> None:
    assert find_evidence("There are 2 sides to it.") == {}


def test_names_are_found_by_case_and_script() -> None:
    assert mentions("Lovelace and 陈明说 will agree with Ben's plan", NAMES) == ["ada", "chen", "ben"]
    assert mentions("Benefits of benches, @will", NAMES) == ["will"]


def test_unspaced_scripts_are_compared_by_their_bigrams() -> None:
    assert terms("核电安全") == ["核电", "电安", "安全"]
    assert likeness("核电是安全的", "核电是很安全的") > likeness("核电是安全的", "税应该提高") == 0


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_english_has_the_same_terms_by_the_quicker_way(text: str) -> None:
    assert [*terms(text), "é"] == terms(f"{text} é")


@pytest.mark.parametrize(
    ("text", "least"), [("I concede this.", 7), ("I've changed my mind.", 8), ("我改变了看法。", 8)]
)
def test_concessions_and_shifts_are_important(text: str, least: int) -> None:
    assert importance(make_entry(3, "ada", "speech", text)) >= least


def test_a_courtesy_is_unimportant() -> None:
    assert importance(make_entry(3, "ada", "speech", "Thank you.")) == 1


@given(st.text(), st.sampled_from(["speech", "critique", "proposal", "question", "tool_result", "notice"]))
def test_any_message_matters_from_one_to_ten(text: str, kind: str) -> None:
    entry = make_entry(3, "ada", kind, text, targets=["ben"])  # type: ignore[arg-type]  # an entry kind
    assert 1 <= importance(entry) <= 10


@pytest.mark.parametrize("piece", ["a", "i ", "1,", "a-", "你好。", "that's a ", "(", "http://", "Abc. "])
def test_any_long_text_is_read_in_linear_time(piece: str) -> None:
    entry = make_entry(3, "ada", "speech", piece * (200_000 // len(piece)))
    began = time.process_time()
    importance(entry)
    assert time.process_time() - began < 5

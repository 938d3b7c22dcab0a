"""Titles of debates: the question in a topic, or the judge's wording of it."""

import pytest
from hypothesis import given, strategies as st

from moot.text.terms import question_in, title_of


@pytest.mark.parametrize(
    ("topic", "question"),
    [
        ("We are 45 engineers.\nOne in nine is rolled back. Should we split?", "Should we split?"),
        ("Should we split?\n\nSome ask: why now? It costs a year.", "Should we split?"),
        ("Why now? It costs a year. Should we split it?", "Should we split it?"),
        ("Free transport is worth its price.\nIt is.", "Free transport is worth its price."),
        ("  Is it\tso?  ", "Is it so?"),
        ("背景。値上げすべきか？", "値上げすべきか？"),
        ("", ""),
    ],
)
def test_question_in_returns_the_question_of_a_topic(topic: str, question: str) -> None:
    assert question_in(topic) == question


@pytest.mark.parametrize(
    ("topic", "title"),
    [
        ("Should we split it?", "Should we split it?"),
        ("Monolith or services\n", "Monolith or services"),
        ("We are 45 engineers.\nShould we split?", "Does a split pay?"),
        ("A fact. " * 50, "Does a split pay?"),
    ],
    ids=["a question", "one line", "two lines", "a long line"],
)
def test_title_of_uses_the_judges_wording_only_for_a_long_topic(topic: str, title: str) -> None:
    assert title_of(topic, " Does a split\npay? ") == title


def test_the_question_at_the_end_of_a_long_topic_is_found() -> None:
    assert question_in("A fact. " * 5000 + "\nShould we?") == "Should we?"


@given(st.text())
def test_a_title_is_one_line(topic: str) -> None:
    title = question_in(topic)
    assert title == " ".join(title.split())

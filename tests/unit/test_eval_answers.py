"""Parsing of answers into a normal form. No wrong answer is read as a right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moot.plugins.evals.arms import read_arms
from moot.plugins.evals.items import (
    QuestionItem,
    answer_part,
    gold_answer,
    majority,
    read_answer,
    read_items,
    topic_of,
)
from moot.state.errors import ConfigError


def item(**keys: Any) -> QuestionItem:
    return QuestionItem.model_validate({"id": "1", "question": "Q?", **keys})


COLOURS = item(choices=["Red", "Blue-green", "I do not know"], answer="B")
NUMBER = item(answer=1250)
WORDS = item(answer="The Hague")
LIST = item(answer=["Oslo", "Bergen"])


@pytest.mark.parametrize(
    ("text", "of", "answer"),
    [
        ("Answer: B", COLOURS, "B"),
        ("**Answer:** (b).", COLOURS, "B"),
        ("Final answer: B) Blue-green", COLOURS, "B"),
        ("blue-green", COLOURS, "B"),
        ("Answer: A\nNo, wait.\nAnswer: B", COLOURS, "B"),
        ("I think B is right.", COLOURS, None),
        ("Answer: B or C", COLOURS, None),
        ("Answer: D", COLOURS, None),
        ("Answer: B) Red", COLOURS, None),
        ("Answer: I", COLOURS, None),
        ("Answer: A\nAnswer:", COLOURS, None),
        ("Answer: 1,250", NUMBER, "1250"),
        ("Answer: 1250.0", NUMBER, "1250"),
        ("Answer: 1.25e3", NUMBER, "1250"),
        ("Answer: **1250**.", NUMBER, "1250"),
        ("Answer: 12,50", NUMBER, None),
        ("Answer: 1250 km", NUMBER, None),
        ("Answer: about 1250", NUMBER, None),
        ("Answer: 1250 or 1300", NUMBER, None),
        ("Answer: -1250", NUMBER, "-1250"),
        ("Answer: the  hague.", WORDS, "the hague"),
        ("Answer: Hague", WORDS, "hague"),
        ("Answer: Bergen; oslo", LIST, "bergen; oslo"),
        ("Answer: Oslo", LIST, "oslo"),
        ("Answer: Oslo;", LIST, None),
    ],
)
def test_read_answer_normalises_an_answer_or_returns_none(
    text: str, of: QuestionItem, answer: str | None
) -> None:
    result = read_answer(text, of)
    if answer is not None and of is NUMBER:
        assert result is not None
        assert float(result) == float(answer)
    else:
        assert result == answer


@pytest.mark.parametrize("of", [COLOURS, NUMBER, WORDS, LIST], ids=lambda of: of.form)
def test_a_written_gold_answer_is_read_as_the_gold_answer(of: QuestionItem) -> None:
    written = {"choice": "B", "number": "1250", "text": "The Hague", "set": "Bergen; Oslo"}[of.form]
    assert read_answer(f"Answer: {written}", of) == gold_answer(of)


@given(st.text(max_size=40), st.integers(-(10**6), 10**6))
def test_a_number_with_other_text_is_unreadable(text: str, number: int) -> None:
    result = read_answer(f"Answer: {number} {text}", item(answer=number))
    assert (
        result in (None, gold_answer(item(answer=number)))
        or text.strip(" \t\r\n.*_`'\"“”‘’").isdigit()
        or "\n" in text
        or "\r" in text
        or "nswer" in text.casefold()
    )


@given(st.text(max_size=300))
def test_the_stored_part_of_a_text_gives_the_same_answer(text: str) -> None:
    for of in (COLOURS, NUMBER, WORDS):
        assert read_answer(answer_part(text), of) == read_answer(text, of)


def test_the_first_of_equally_frequent_answers_wins() -> None:
    texts = ["Answer: C", "no idea", "Answer: B", "Answer: (b)", "Answer: c"]
    result = majority(texts, COLOURS)
    assert (result.answer, result.index, result.agreement) == ("C", 0, 0.4)
    assert majority(["?", "!"], COLOURS).answer is None


def test_the_topic_shows_the_choices_but_no_gold_answer() -> None:
    topic = topic_of(item(choices=["x", "y"], answer="B", reference="secret"))
    assert "A) x\nB) y" in topic
    assert "secret" not in topic
    assert topic_of(item()) == "Q?"


QUESTION = '{"id": "1", "question": "Q?", "answer": "Oslo"}'
PAIR = '{"id": "1", "input": "Q?", "a": "x", "b": "y", "better": "a"}'


@pytest.mark.parametrize(
    ("item_text", "result", "error"),
    [
        (PAIR, {"answer": "a"}, "give this result the key `winners`"),
        (PAIR, {"answer": "a", "winners": []}, "give this result the key `winners`"),
        (QUESTION, {"winners": ["a", "b"]}, "give this result the key `answer`"),
        (QUESTION, {"answer": None}, "give this result the key `answer`"),
        (QUESTION, {"answer": ""}, ""),
        (PAIR, {"winners": ["tie"]}, ""),
    ],
)
def test_an_incomplete_recorded_result_is_rejected_with_its_line_number(
    tmp_path: Path, item_text: str, result: dict[str, Any], error: str
) -> None:
    item_file, result_file = tmp_path / "items.jsonl", tmp_path / "results.jsonl"
    item_file.write_text(item_text)
    result_file.write_text("\n" + json.dumps({"id": "1", **result}))
    items, arms = read_items(item_file), [f"recorded:{result_file}"]
    if not error:
        assert read_arms(arms, items, {})[0].recorded.keys() == {"1"}
        return
    with pytest.raises(ConfigError, match=f"results.jsonl:2: {error}"):
        read_arms(arms, items, {})

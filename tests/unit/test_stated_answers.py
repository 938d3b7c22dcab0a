"""Answers are read from texts only where they are stated, and equal answers have equal keys."""

from __future__ import annotations

import pytest

from moot.text.answers import answer_key, option_of, stated_answer

LETTERS, POLAR = ("A", "B", "C"), ("yes", "no")


@pytest.mark.parametrize(
    "text",
    [
        "Answer: B",
        "answer: **B**",
        "**Answer:** (B)",
        "Final answer: B.",
        "**Final Answer**: Option B",
        "The answer: B",
        "The correct answer is B.",
        "So, the answer is B.",
        "Thus, my answer: B",
        "My answer remains B.",
        "答案是B",
        "Answer: <answer>B</answer>",
        "I weighed it.\nThe answer is B",
        "Therefore, the final answer is (B).",
        "## Answer\n\nB",
        "**Final answer**\nB",
        "\\boxed{B}",
        "Thus $\\boxed{\\text{B}}$.",
        "<answer>B</answer>",
        '{"answer": "B"}',
        '# Decision: "B"',
        "Decision: B",
        "My choice is B.",
        "- Answer: B",
        "> **Answer:** B",
        "Answer: B, because two of nine know it",
        "Answer: B) the second",
        "Answer: B – the second",
        "Answer： B",
        "Antwort: B",
        "Die Antwort ist B.",
        "Réponse finale : B",
        "Respuesta: B",
        "Risposta: B",
        "答案：B",
        "Ответ: B",
        "Answer: A\n\nI was wrong.\nAnswer: B",
        "Answer = B",
        "The answer is: B",
        "Answer -> B",
        "Verdict: A\nAnswer: B",
    ],
)
def test_a_stated_option_is_read(text: str) -> None:
    assert option_of(stated_answer(text), LETTERS) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "I see B in the text.",
        "The answer is not B.",
        "The answer is unclear.",
        "The answer is B or C.",
        "Ben says that the answer is B, and he errs.",
        "The answer is A. No: the answer is B.",
        "Answer: B or C",
        "Answer: not B",
        "Answer: neither",
        "Answer: a good question",
        "Answer: D",
        "Answer: A and B",
        "The answering machine is B.",
        "Answer: Because B is long.",
        "Whether the answer is B depends.",
    ],
)
def test_a_text_without_a_certain_option_has_none(text: str) -> None:
    assert option_of(stated_answer(text), LETTERS) == ""


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("The answer: Yes", "yes"),
        ('# Decision: "yes"', "yes"),
        ("**Final answer:** no", "no"),
        ("Answer: Yes, from October.", "yes"),
        ("Answer: no idea", ""),
        ("Answer: yes and no", ""),
        ("Answer: No.", "no"),
        ("Answer: not yes", ""),
        ("Answer: Nothing", ""),
        ("Answer: yesterday", ""),
    ],
)
def test_yes_and_no_are_read(text: str, option: str) -> None:
    assert option_of(stated_answer(text), POLAR) == option


@pytest.mark.parametrize(
    "answers",
    [
        ("EUR 1.125", "1.125 EUR", "€1.125", "€ 1.125", "1.125 euros"),
        ("50 %", "50%", "50 percent"),
        ("1/2", "0.5", "½", "0,5", "0.50"),
        ("1,000", "1000", "1 000", "1000.0"),
        ("$5", "US$ 5", "5 USD", "5 dollars"),
        ("1.234,50 €", "1,234.50 EUR"),
        ("2 km", "2km"),
        ("Lyon", "**lyon**.", "“Lyon”"),
    ],
)
def test_equal_answers_have_one_key(answers: tuple[str, ...]) -> None:
    assert len(set(map(answer_key, answers))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("50%", "50"), ("5 EUR", "5 USD"), ("1.125", "1125"), ("1/2", "1/3"), ("2 km", "2 m"), ("Lyon", "Nice")],
)
def test_different_answers_have_different_keys(one: str, other: str) -> None:
    assert answer_key(one) != answer_key(other)

"""Functions that ask for, read and grade the answers of an evaluation.

Reading is strict: an answer counts only if its normal form is certain. Any other answer is unreadable, counts
as wrong, and is listed in the report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal

from pydantic import BaseModel, Field

from moot.calls.effects import CallGenerator
from moot.claims.model_extraction import structured_call
from moot.evals.items import QuestionItem, bare_text, normal_text, number_in
from moot.prompts.request import model_params
from moot.prompts.templates import load_prompt_template
from moot.state.config import DebateConfig
from moot.text.tokens import TokenCounter

GRADER = load_prompt_template("grade-answer", home=__package__)

_ANSWER_LINE = re.compile(
    r"^[\s>*_#-]*(?:final\s+)?answer[\s*_]*:[\s*_]*(.*?)\s*$", re.IGNORECASE | re.MULTILINE
)
_CHOICE = re.compile(r"\(?([a-z])(?:\)|[.:])?", re.IGNORECASE)
_CHOICE_WITH_TEXT = re.compile(r"\(?([a-z])(?:\)|[.:])\s*(.+)", re.IGNORECASE)

ENDINGS = {
    "choice": 'End your answer with one line: "Answer: " and the letter of one choice.',
    "number": 'End your answer with one line: "Answer: " and one number in digits, without a unit.',
    "set": 'End your answer with one line: "Answer: " and all items, separated by semicolons.',
    "text": 'End your answer with one line: "Answer: " and the answer in as few words as possible.',
    "free": "",
}
"""Instruction on how to end an answer, keyed by answer form."""


def topic_of(item: QuestionItem) -> str:
    """Return a debate topic that contains the question, its choices and its answer form."""
    letters = zip(ascii_uppercase, item.choices, strict=False)
    choices = "\n".join(f"{letter}) {choice}" for letter, choice in letters)
    ending = ENDINGS[item.form]
    return "\n\n".join(filter(None, [item.question, choices, ending]))


def read_answer(text: str, item: QuestionItem) -> str | None:
    """Return the normal form of the answer in a text, or `None` if there is no readable answer.

    The answer is the text after the last `Answer:` at the start of a line. A text without such a line is read
    as a whole.
    """
    marked: list[str] = _ANSWER_LINE.findall(text)
    given = marked[-1] if marked else text
    match item.form:
        case "choice":
            return _read_choice(given, item.choices)
        case "number":
            number = number_in(given)
            return None if number is None else str(number)
        case "set":
            parts = [normal_text(part) for part in given.split(";")]
            return None if not all(parts) else "; ".join(sorted(set(parts)))
    return normal_text(given) or None


DECISIONS = {
    "number": 'Write the decision as "Answer: " and one number in digits, without a unit.',
    "set": 'Write the decision as "Answer: " and all items, separated by semicolons.',
    "text": 'Write the decision as "Answer: " and the answer in as few words as possible.',
}
"""Instruction to the judge on how to write the decision, keyed by answer form. Questions with choices use
options instead."""


def has_answer_line(text: str) -> bool:
    """Return True if a line of a text begins with `Answer:`."""
    return _ANSWER_LINE.search(text) is not None


MAX_PART = 2_000
"""Maximum number of characters in a stored answer. A longer text without an `Answer:` line has no normal
form."""


def answer_part(text: str) -> str:
    """Return the part of a text that contains the answer."""
    marked: list[str] = _ANSWER_LINE.findall(text)
    return f"Answer: {marked[-1]}" if marked else text if len(text) <= MAX_PART else text[:MAX_PART] + "…"


def gold_answer(item: QuestionItem) -> str | None:
    """Return the normal form of an item's gold answer, or `None` if the item has no gold answer."""
    if item.answer is None:
        return None
    if item.form == "choice":
        index = item.right_choice
        return None if index is None else ascii_uppercase[index]
    if item.form == "set":
        texts = item.answer if isinstance(item.answer, tuple) else (str(item.answer),)
        return "; ".join(sorted({normal_text(text) for text in texts}))
    if item.form == "number":
        return str(number_in(str(item.answer)))
    return normal_text(str(item.answer))


def _read_choice(given: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the choice that a text names by its letter, by its text or by both."""
    texts = [normal_text(choice) for choice in choices]
    plain = normal_text(given)
    if texts.count(plain) == 1:
        return ascii_uppercase[texts.index(plain)]
    bare = bare_text(given)
    if whole := _CHOICE_WITH_TEXT.fullmatch(bare):
        index = ascii_uppercase.find(whole[1].upper())
        agrees = 0 <= index < len(texts) and texts[index] == normal_text(whole[2])
        return ascii_uppercase[index] if agrees else None
    letter = _CHOICE.fullmatch(bare)
    if letter and ascii_uppercase.index(letter[1].upper()) < len(texts):
        return letter[1].upper()
    return None


@dataclass(frozen=True)
class Majority:
    """Most frequent answer among several texts."""

    answer: str | None
    """Most frequent readable answer, or `None` if no answer is readable. If several are equally frequent,
    the first given one."""
    index: int | None
    """Index of the first text that gives this answer."""
    agreement: float
    """Share of the texts that give this answer."""


def majority(texts: Sequence[str], item: QuestionItem) -> Majority:
    """Find the most frequent answer in a sequence of texts.

    The first of several equally frequent answers wins. The answers are exchangeable, so in expectation this
    equals a random choice among them.
    """
    answers = [read_answer(text, item) for text in texts]
    counts = Counter(answer for answer in answers if answer is not None)
    if not counts:
        return Majority(None, None, 0.0)
    answer, votes = counts.most_common(1)[0]  # equal counts keep their first occurrence's order
    return Majority(answer, answers.index(answer), votes / len(texts))


class Grade(BaseModel):
    """Grade of an answer that is compared with a reference text."""

    reasoning: str = Field(description="In at most three sentences: what agrees with the reference.")
    grade: Literal["correct", "partly correct", "incorrect"] = Field(description="The grade.")


SCORES = {"correct": 1.0, "partly correct": 0.5, "incorrect": 0.0}
"""Score for each grade."""


def grade_answer(
    item: QuestionItem, answer: str, config: DebateConfig, count: TokenCounter
) -> CallGenerator[float]:
    """Ask the judge's model to compare a free answer with the item's reference, and return the score.

    Raises:
        ModelError: No model replied.
    """
    texts = [f"# Question\n{item.question}", f"# Reference\n{item.reference}", f"# Answer\n{answer}"]
    params = model_params(config, config.judge)
    (reply,) = yield [
        structured_call("evaluate", config, GRADER.render(), texts, Grade, count, params=params)
    ]
    data = reply.require().data or {}
    return SCORES[data["grade"]]

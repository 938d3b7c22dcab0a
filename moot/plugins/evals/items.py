"""Items of an evaluation set, and how their answers are asked for, read and graded."""

import csv
import hashlib
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import isfinite
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, get_args

import pydantic

from moot.calls.model_calls import CallGenerator
from moot.config import DebateConfig, section
from moot.plugins.evals.mallm_sets import mallm_rows
from moot.prompts.request import model_params
from moot.prompts.structured_calls import structured_call
from moot.prompts.templates import fenced, load_prompt_template
from moot.protocols.answer_calls import read_texts
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, file_error_reason
from moot.text.answers import ANSWER_WORDS, option_of, stated_answer
from moot.text.tokens import TokenCounter

Kind = Literal["question", "pair", "topic"]
Gold = str | int | float | bool | tuple[str, ...]
"""Correct answer to a question, given as text, a number or a set of texts."""
AnswerForm = Literal["choice", "number", "set", "text", "free"]
"""Form of an answer, which determines how Moot requests, reads and compares it. A judge grades or compares
`free` texts."""
MAX_CHOICES = len(ascii_uppercase)
MARKUP = "*_`\"'“”‘’ \t\r\n"
"""Markup characters to strip from the start and end of an answer."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
LISTS = ("choices",)
"""Names of the CSV columns whose cells contain a JSON list."""


class _Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    id: str = pydantic.Field(min_length=1)
    """Id of the item, unique within the item set."""
    group: str = ""
    """Name of the item's group, for which the report shows separate figures."""

    @pydantic.field_validator("id", "group", mode="before")
    @classmethod
    def _to_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @pydantic.field_validator("*")
    @classmethod
    def _check_not_blank(cls, value: object, info: pydantic.ValidationInfo) -> object:
        if isinstance(value, str) and value and not value.strip():
            raise ValueError(f"{info.field_name} is blank")
        return value


class QuestionItem(_Item):
    """A question that every configuration under evaluation answers."""

    question: str = pydantic.Field(min_length=1)
    choices: tuple[str, ...] = ()
    """Texts of the choices of a multiple-choice question."""
    answer: Gold | None = None
    """Correct answer to the question, or the letter or text of the correct choice."""
    reference: str = ""
    """Reference answer against which a model grades free-form answers."""
    context: str = ""
    """Background text for the question, which all participants can read."""

    @pydantic.field_validator("choices")
    @classmethod
    def _check_choices(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) == 1 or len(value) > MAX_CHOICES:
            raise ValueError(
                f"the number of choices is {len(value)}: give 2 to {MAX_CHOICES} choices, or none"
            )
        if len({_folded(each) for each in value}) < len(value) or not all(map(str.strip, value)):
            raise ValueError("the choices must be distinct, and none may be blank")
        return value

    @pydantic.model_validator(mode="after")
    def _check_answer(self) -> "QuestionItem":
        if self.choices and self.answer is not None and self.right_choice is None:
            raise ValueError(
                f"answer {self.answer!r} is not one of the choices: write the letter or the text of a choice"
            )
        if isinstance(self.answer, tuple) and not (self.answer and all(map(normal_text, self.answer))):
            raise ValueError("`answer` must be a list of one or more non-empty strings")
        if isinstance(self.answer, str) and not normal_text(self.answer):
            raise ValueError("`answer` is empty: write the correct answer, or leave out the key")
        if isinstance(self.answer, float) and not isfinite(self.answer):
            raise ValueError("`answer` is not a finite number: write a number in digits")
        return self

    @property
    def right_choice(self) -> int | None:
        """Index of the right choice, or `None` if the question has no right choice."""
        texts = [_folded(each) for each in self.choices]
        answer_text = _folded(str(self.answer))
        if answer_text in texts:
            return texts.index(answer_text)
        letters = ascii_uppercase[: len(texts)].casefold()
        return letters.index(answer_text) if len(answer_text) == 1 and answer_text in letters else None

    @property
    def form(self) -> AnswerForm:
        """Form that the answer to the question must have, such as a choice or a number."""
        if self.choices:
            return "choice"
        if self.answer is None:
            return "free"
        if isinstance(self.answer, tuple):
            return "set"
        if isinstance(self.answer, bool):
            return "text"
        return (
            "number" if isinstance(self.answer, int | float) or number_in(self.answer) is not None else "text"
        )

    @property
    def graded_by(self) -> Literal["answer", "reference", "comparison"]:
        """Method by which answers to the question are graded.

        An answer is compared with the item's `answer` or `reference`, or with another configuration's answer.
        """
        if self.answer is not None:
            return "answer"
        return "reference" if self.reference else "comparison"


class PairItem(_Item):
    """Two answers to the same input, one of which people preferred.

    It tests whether a judge prefers the same answer.
    """

    input: str = pydantic.Field(min_length=1)
    a: str
    b: str
    better: Literal["a", "b"]


class TopicItem(_Item):
    """Topic that two groups of debaters argue about.

    Such a group is called a line-up.
    """

    topic: str = pydantic.Field(min_length=1)


Item = QuestionItem | PairItem | TopicItem
ITEM_TYPES: Mapping[Kind, type[Item]] = {"question": QuestionItem, "pair": PairItem, "topic": TopicItem}


@dataclass(frozen=True)
class ItemSet:
    """Evaluation set, whose items are all of the same kind."""

    name: str
    kind: Kind
    items: tuple[Item, ...]

    @cached_property
    def digest(self) -> str:
        """Hash of the contents of all items, as 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def needs_comparison(self) -> bool:
        """True if a judge must compare the answers because no correct answers are known."""
        return any(isinstance(item, QuestionItem) and item.graded_by == "comparison" for item in self.items)

    def to_json(self) -> list[JsonObject]:
        """Return the items of the evaluation set as JSON data."""
        return [each.model_dump(mode="json") for each in self.items]

    @classmethod
    def from_json(cls, name: str, kind: Kind, rows: list[JsonObject]) -> "ItemSet":
        """Restore an item set from the JSON data that `to_json` produced."""
        return cls(name, kind, tuple(ITEM_TYPES[kind].model_validate(row) for row in rows))


def read_items(path: Path) -> ItemSet:
    """Read an evaluation set from a `.jsonl` or `.csv` file, or a question set of MALLM from a `.json` file.

    Raises:
        ConfigError: The file cannot be read, or an item is invalid. The message names the file and the line.
    """
    items: dict[str, Item] = {}
    lines: dict[str, int] = {}
    kind: Kind | None = None
    for line, row in _rows(path):
        place = f"{path}:{line}"
        row_kind = _kind_of(row, place)
        if kind is not None and row_kind != kind:
            raise ConfigError(
                f"{place}: this is a {row_kind} item, but earlier items are {kind} items: use only one "
                "kind in each file"
            )
        kind = row_kind
        try:
            item = ITEM_TYPES[kind].model_validate(row)
        except pydantic.ValidationError as error:
            mistakes = "; ".join(section.errors_in(error))
            keys = ", ".join(ITEM_TYPES[kind].model_fields)
            raise ConfigError(f"{place}: {mistakes}. The valid keys of a {kind} item are {keys}") from error
        if item.id in items:
            raise ConfigError(
                f"{place}: the id {item.id!r} is also used in line {lines[item.id]}: "
                "give each item a different id"
            )
        items[item.id], lines[item.id] = item, line
    if kind is None:
        raise ConfigError(
            f"evaluation set {str(path)!r} has no items: write one JSON object per line, or CSV rows"
        )
    _check_gold(path, items, lines)
    _check_duplicates(path, items, lines)
    return ItemSet(path.name, kind, tuple(items.values()))


def _check_gold(path: Path, items: Mapping[str, Item], lines: Mapping[str, int]) -> None:
    """Raise an error if only some questions have an `answer` or `reference`."""
    ungraded_ids = [
        each.id
        for each in items.values()
        if isinstance(each, QuestionItem) and each.graded_by == "comparison"
    ]
    if ungraded_ids and len(ungraded_ids) < len(items):
        raise ConfigError(
            f"{path}:{lines[ungraded_ids[0]]}: the item has neither `answer` nor `reference`, but other "
            "items do: add one of these keys, or move the item to another set"
        )


def _check_duplicates(path: Path, items: Mapping[str, Item], lines: Mapping[str, int]) -> None:
    ids_by_content: dict[str, str] = {}
    for key, item in items.items():
        content = json.dumps(item.model_dump(mode="json", exclude={"id", "group"}), sort_keys=True)
        if first := ids_by_content.get(content):
            raise ConfigError(
                f"{path}:{lines[key]}: item {key!r} has the same content as item {first!r} in line "
                f"{lines[first]}: remove one of them"
            )
        ids_by_content[content] = key


def _kind_of(row: Mapping[str, object], place: str) -> Kind:
    for kind, key in (("question", "question"), ("pair", "input"), ("topic", "topic")):
        if key in row:
            return kind  # type: ignore[return-value]  # one of the literals above
    raise ConfigError(
        f"{place}: the item needs `question`, `topic`, or all of `input`, `a`, `b` and `better`, but "
        f"its keys are {', '.join(row) or 'missing'}"
    )


def _rows(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield each row of an evaluation set's file with its line number."""
    suffix = path.suffix.lower()
    readers = {".jsonl": _json_rows, ".csv": _csv_rows, ".json": mallm_rows}
    if suffix not in readers:
        raise ConfigError(f"the name of the evaluation set {str(path)!r} must end in .jsonl, .csv or .json")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read evaluation set {str(path)!r}: {file_error_reason(error)}") from error
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: the text is not UTF-8: save the file as UTF-8") from error
    yield from readers[suffix](path, text)


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, JsonObject]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_without_repeated_keys)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}:{number}: the line is not a JSON object: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(f'{path}:{number}: expected a JSON object, such as {{"id": …}}')
        yield number, row


def _without_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError(f"repeated key in {[key for key, _ in pairs]}")
    return row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, JsonObject]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(set(header)) < len(header) or not all(header):
            raise ConfigError(
                f"{path}:1: the header has empty or repeated column names, {header}: give each column a name "
                "of its own"
            )
        next_line = reader.line_num + 1
        for cells in reader:
            line, next_line = next_line, reader.line_num + 1
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise ConfigError(
                    f"{path}:{line}: the row has {len(cells)} cells, but the header has {len(header)}: give "
                    "each row as many cells as the header"
                )
            named_cells = zip(header, cells, strict=True)
            yield line, {key: _cell(key, cell, f"{path}:{line}") for key, cell in named_cells if cell != ""}
    except csv.Error as error:
        raise ConfigError(f"{path}:{reader.line_num}: malformed CSV: {error}") from error


def _cell(key: str, cell: str, place: str) -> object:
    """Return the value of a CSV cell, which may be a JSON list."""
    if key not in LISTS and not (key == "answer" and cell.lstrip().startswith("[")):
        return cell
    try:
        value = json.loads(cell)
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise ConfigError(f'{place}: {key} must be a JSON list, such as ["Paris", "Rome"]')
    return value


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def number_in(text: str) -> Decimal | None:
    """Parse a text as a number, or return `None` if it contains anything else."""
    bare = bare_text(text).replace("−", "-")
    if not _NUMBER.fullmatch(bare) or not bare.isascii():
        return None
    number = Decimal(bare.replace(",", ""))
    return number.normalize() + 0  # 1E+2 and 100 are equal; -0 becomes 0


def normal_text(text: str) -> str:
    """Return a text in lower case without markup, repeated spaces or a final full stop."""
    return " ".join(bare_text(text).casefold().split())


def bare_text(text: str) -> str:
    """Return a text without the markup around it and without a final full stop.

    The text is normalized to Unicode form NFKC.
    """
    return unicodedata.normalize("NFKC", text).strip(MARKUP).removesuffix(".").strip(MARKUP)


assert get_args(Kind) == tuple(ITEM_TYPES)  # noqa: S101  # one type for each kind


GRADER = load_prompt_template("grade-answer", home=__package__)

_CHOICE = re.compile(r"\(?([a-z])(?:\)|[.:])?", re.IGNORECASE)
_CHOICE_WITH_TEXT = re.compile(r"\(?([a-z])(?:\)|[.:])\s*(.+)", re.IGNORECASE)

ENDINGS = {
    "choice": 'End your answer with one line: "Answer: " and the letter of one choice.',
    "number": 'End your answer with one line: "Answer: " and one number in digits, without a unit.',
    "set": 'End your answer with one line: "Answer: " and all items, separated by semicolons.',
    "text": 'End your answer with one line: "Answer: " and the answer in as few words as possible.',
    "free": "",
}
"""Instructions to debaters on how to end their answers, keyed by answer form."""


def topic_of(item: QuestionItem) -> str:
    """Return the topic for a debate about a question.

    The topic contains the question, its choices, and an instruction on how the answer must end.
    """
    letters = zip(ascii_uppercase, item.choices, strict=False)
    choices = "\n".join(f"{letter}) {choice}" for letter, choice in letters)
    ending = ENDINGS[item.form]
    return "\n\n".join(filter(None, [item.question, choices, ending]))


def read_answer(text: str, item: QuestionItem) -> str | None:
    """Return the normalised answer in a text, or `None` if the text has no readable answer.

    A text that states no answer is read as a whole.
    """
    answer_text = stated_answer(text) or text
    match item.form:
        case "choice":
            return _read_choice(answer_text, item.choices)
        case "number":
            number = number_in(answer_text)
            return None if number is None else str(number)
        case "set":
            parts = [normal_text(part) for part in answer_text.split(";")]
            return None if not all(parts) else "; ".join(sorted(set(parts)))
    return normal_text(answer_text) or None


DECISIONS = {
    "number": 'Write the decision as "Answer: " and one number in digits, without a unit.',
    "set": 'Write the decision as "Answer: " and all items, separated by semicolons.',
    "text": 'Write the decision as "Answer: " and the answer in as few words as possible.',
}
"""Instructions to the judge on how to write the decision, keyed by answer form. Questions with choices use
options instead."""


MAX_PART = 2_000
"""Maximum length of a text that states no answer, in characters. `answer_part` truncates a longer
text."""


def answer_part(text: str) -> str:
    """Return the answer that a text states, as an `Answer:` line, or else the text's beginning."""
    if answer := stated_answer(text):
        return f"Answer: {answer}"
    return text if len(text) <= MAX_PART else text[:MAX_PART] + "…"


def _unread(texts: Sequence[str], item: QuestionItem) -> list[str]:
    """Return the texts that state no readable answer to a question with a known form of answer."""
    match item.form:
        case "free":
            return []
        case "text":  # every text can be read, but a long one is no answer
            return [text for text in texts if not stated_answer(text) and len(text.split()) > ANSWER_WORDS]
    return [text for text in texts if text and read_answer(text, item) is None]


def gold_answer(item: QuestionItem) -> str | None:
    """Return the item's correct answer in normalised form, or `None` if it has none."""
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


def _read_choice(text: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the choice that a text names, or `None` if it names none."""
    texts = [normal_text(choice) for choice in choices]
    plain = normal_text(text)
    if texts.count(plain) == 1:
        return ascii_uppercase[texts.index(plain)]
    bare = bare_text(text)
    if match := _CHOICE_WITH_TEXT.fullmatch(bare):
        index = ascii_uppercase.find(match[1].upper())
        agrees = 0 <= index < len(texts) and texts[index] == normal_text(match[2])
        return ascii_uppercase[index] if agrees else None
    letter_match = _CHOICE.fullmatch(bare)
    if letter_match and ascii_uppercase.index(letter_match[1].upper()) < len(texts):
        return letter_match[1].upper()
    return option_of(text, ascii_uppercase[: len(choices)]) or None


@dataclass(frozen=True)
class Majority:
    """Most frequent answer among several texts."""

    answer: str | None
    """Most frequent readable answer, or `None` if no answer is readable. If several are equally frequent,
    the first given one."""
    index: int | None
    """Index of the first text that gives this answer, or `None` if no answer is readable."""
    agreement: float
    """Share of the texts that give the most frequent answer, from 0 to 1."""


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


class Grade(pydantic.BaseModel):
    """Grade for an answer, based on a comparison with a reference text."""

    reasoning: str = pydantic.Field(
        description="Parts of the answer that agree with the reference, in at most three sentences."
    )
    grade: Literal["correct", "partly correct", "incorrect"] = pydantic.Field(description="The grade.")


SCORES = {"correct": 1.0, "partly correct": 0.5, "incorrect": 0.0}
"""Score from 0 to 1 for each grade."""


def grade_answer(
    item: QuestionItem, answer: str, config: DebateConfig, count: TokenCounter
) -> CallGenerator[float]:
    """Ask the judge's model to grade an answer, and return the score.

    The model compares the answer with the item's reference.

    Raises:
        ModelError: No model replied.
    """
    sections = {"Question": item.question, "Reference": item.reference, "Answer": answer}
    texts = [fenced(text, config.fence, f"# {heading}") for heading, text in sections.items()]
    params = model_params(config, config.judge)
    (reply,) = yield [
        structured_call("evaluate", config, GRADER.render(), texts, Grade, count, params=params)
    ]
    data = reply.require().data or {}
    return SCORES[data["grade"]]


@dataclass(frozen=True)
class FinishedAnswer:
    """Texts and grade of an outcome after all calls about it."""

    texts: tuple[str, ...]
    """Texts with answers. An answer that a call read replaces its text as an `Answer:` line."""
    grade: float | None = None
    error: str = ""
    """Errors of calls that read answers, or `""`."""


def is_unfinished(item: QuestionItem, texts: Sequence[str], grade: float | None) -> bool:
    """Return True if answers to an item must still be graded, or be read by a call."""
    if item.graded_by == "reference":
        return grade is None and bool(texts)
    return bool(_unread(texts, item))


def finish_answer(
    item: QuestionItem, texts: Sequence[str], config: DebateConfig, count: TokenCounter
) -> CallGenerator[FinishedAnswer]:
    """Ask a model to grade an answer, or to read the answers that no rule can read.

    Raises:
        ModelError: No model graded the answer.
    """
    if item.graded_by == "reference":
        grade = yield from grade_answer(item, texts[0], config, count)
        return FinishedAnswer(tuple(texts), grade)
    unread, letters = _unread(texts, item), ascii_uppercase[: len(item.choices)]
    answers, errors = yield from read_texts(topic_of(item), unread, letters, config, count)
    lines = {text: f"Answer: {answer}" for text, answer in zip(unread, answers, strict=True) if answer}
    return FinishedAnswer(tuple(lines.get(text, text) for text in texts), error="; ".join(errors))

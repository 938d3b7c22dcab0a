"""Structured replies are read in the forms that models send, and where a form is ambiguous, not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, WithJsonSchema

from moot.models.structured import parse_reply
from moot.prompts.request import between, one_of
from moot.text.naming import meant_name

Person = one_of(["Debater A", "Debater B"], "Person")


class Row(BaseModel):
    """A scored person."""

    debater: Person  # type: ignore[valid-type]  # made for the test
    score: between(0, 100)  # type: ignore[valid-type]
    quotes: list[str] = []


class Position(BaseModel):
    """A person's position."""

    debater: str
    position: str


class Ruling(BaseModel):
    """A verdict."""

    reasoning: str
    winner: one_of(["Debater A", "Debater B", "tie"])  # type: ignore[valid-type]
    confidence: Annotated[float | None, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})] = (
        None
    )
    open_points: list[str] = []
    rows: list[Row] = []
    positions: list[Position] = []
    final: bool = False
    mood: Literal["calm", "angry"] = "calm"


class Finding(BaseModel):
    """A finding of an extraction."""

    text: str
    weight: int = Field(1, ge=0, le=10)


class Findings(BaseModel):
    """All findings."""

    items: list[Finding] = []


GOOD: dict[str, Any] = {
    "reasoning": "Two of nine people know it.",
    "winner": "Debater A",
    "confidence": 70,
    "open_points": ["the date"],
    "rows": [{"debater": "Debater A", "score": 80, "quotes": []}],
}
TEXT = json.dumps(GOOD)
PRETTY = json.dumps(GOOD, indent=1)


def read(text: str, **options: Any) -> dict[str, Any] | None:
    return parse_reply(Ruling, text, **options).data


def changed(**fields: Any) -> dict[str, Any] | None:
    return read(json.dumps({**GOOD, **fields}))


REPAIRED: Mapping[str, str] = {
    "trailing comma in an object": PRETTY.replace("\n}", ",\n}"),
    "trailing comma in a list": PRETTY.replace('"the date"', '"the date",'),
    "Python literals": repr({**GOOD, "final": True, "confidence": 70}),
    "line break in a string": TEXT.replace("people know", "people\nknow"),
    "tab in a string": TEXT.replace("people know", "people\tknow"),
    "hash comment": PRETTY.replace('"winner"', '# the winner\n "winner"'),
    "slash comment": PRETTY.replace('"winner"', '// the winner\n "winner"'),
    "block comment": PRETTY.replace('"winner"', '/* the winner */ "winner"'),
    "keys without quotes": TEXT.replace('"winner"', "winner").replace('"confidence"', "confidence"),
    "typographic quotes": TEXT.replace('"winner": "Debater A"', "“winner”: “Debater A”"),
    "invalid escape": TEXT.replace("Two of", "Two \\of"),
    "quotation marks in a string": TEXT.replace("nine people", 'nine "people"'),
    "a comma is missing": TEXT.replace('"Debater A", "confidence"', '"Debater A" "confidence"'),
    "missing closing brackets": TEXT[:-1],
    "in an unclosed fence": f"Here:\n```json\n{PRETTY.replace('70,', '70,,')}",
    "in a fence with prose behind": f"```json\n{PRETTY[:-2]},\n}}\n```\nI hope that this helps {{really}}.",
    "with prose around": f"The verdict (see {{note}}) is {TEXT[:-1]},}} as asked.",
}


@pytest.mark.parametrize("text", REPAIRED.values(), ids=REPAIRED.keys())
def test_a_broken_reply_is_repaired(text: str) -> None:
    data = read(text)
    assert data is not None
    assert (data["winner"], data["confidence"], data["open_points"]) == ("Debater A", 70, ["the date"])


WRAPPED: Mapping[str, object] = {
    "JSON string": TEXT,
    "JSON string twice": json.dumps(TEXT),
    "list of one": [GOOD],
    "a key": {"verdict": GOOD},
    "two keys": {"response": {"result": GOOD}},
    "tool call": {"name": "Ruling", "arguments": GOOD},
    "tool call with text": {"name": "Ruling", "arguments": TEXT},
    "tool call with parameters": {"type": "function", "name": "Ruling", "parameters": GOOD},
    "tool calls": {"tool_calls": [{"type": "function", "function": {"name": "R", "arguments": TEXT}}]},
    "properties of a schema": {"type": "object", "properties": GOOD},
    "a fence in a string": {"output": f"```json\n{TEXT}\n```"},
    "camel case": {"openPoints" if key == "open_points" else key: item for key, item in GOOD.items()},
    "capitals": {key.upper(): item for key, item in GOOD.items()},
    "titles": {key.replace("_", " ").title(): item for key, item in GOOD.items()},
    "further keys": {**GOOD, "thoughts": "x", "meta": {"a": 1}},
}


@pytest.mark.parametrize("value", WRAPPED.values(), ids=WRAPPED.keys())
def test_a_wrapped_reply_is_unwrapped(value: object) -> None:
    data = read(json.dumps(value))
    assert data is not None
    assert (data["winner"], data["confidence"], data["open_points"]) == ("Debater A", 70, ["the date"])


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("70%", 70),
        ("70 %", 70),
        ("7/10", 70),
        ("7 / 10", 70),
        ("70/100", 70),
        ("7 out of 10", 70),
        ("35 of 50", 70),
        ("70", 70),
        ("**70**", 70),
        ("72,5", 72.5),
        ("70 points", 70),
        ("70 (fairly sure)", 70),
        ([70], 70),
        ({"value": 70}, 70),
        (70.4, 70.4),
        (105, 105),
        (None, None),
        (0, 0),
    ],
)
def test_a_number_is_read_on_the_scale_of_the_schema(written: object, number: float | None) -> None:
    data = changed(confidence=written)
    assert data is not None
    assert data["confidence"] == number


@pytest.mark.parametrize(
    "written",
    [float("nan"), float("inf"), "NaN", "Infinity", -1, "-5%", "high", "60-80", 0.8, "0.8", True, {}],
)
def test_a_number_with_no_certain_meaning_is_an_error(written: object) -> None:
    parsed = parse_reply(Ruling, json.dumps({**GOOD, "confidence": written}))
    assert parsed.data is None
    assert "confidence" in parsed.error


def test_a_reply_that_is_wholly_on_a_scale_to_1_is_scaled() -> None:
    data = changed(confidence=0.7, rows=[{"debater": "Debater A", "score": 0.85}])
    assert data is not None
    assert (data["confidence"], data["rows"][0]["score"]) == (70, 85)


@pytest.mark.parametrize("written", [1, 1.0])
def test_a_confidence_of_1_is_asked_again_and_then_used_as_written(written: float) -> None:
    parsed = parse_reply(Ruling, json.dumps({**GOOD, "confidence": written, "rows": []}))
    assert parsed.error
    assert parsed.data is not None
    assert parsed.data["confidence"] == 1


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        ({"open_points": None}, "open_points", []),
        ({"open_points": "the date"}, "open_points", ["the date"]),
        ({"open_points": ""}, "open_points", []),
        ({"open_points": '["the date"]'}, "open_points", ["the date"]),
        ({"reasoning": ["Two."]}, "reasoning", "Two."),
        ({"reasoning": {"text": "Two."}}, "reasoning", "Two."),
        ({"final": "True"}, "final", True),
        ({"final": None}, "final", False),
        ({"mood": "Angry."}, "mood", "angry"),
        ({"positions": {"Ada": "yes"}}, "positions", [{"debater": "Ada", "position": "yes"}]),
        (
            {"rows": {"Debater B": {"score": "8/10"}}},
            "rows",
            [{"debater": "Debater B", "score": 80, "quotes": []}],
        ),
        ({"rows": GOOD["rows"][0]}, "rows", [{"debater": "Debater A", "score": 80, "quotes": []}]),
    ],
)
def test_a_value_is_converted_to_the_type_of_the_schema(
    fields: dict[str, Any], name: str, expected: object
) -> None:
    data = changed(**fields)
    assert data is not None
    assert data[name] == expected


def test_a_row_out_of_bounds_drops_this_row_only() -> None:
    items = [
        {"text": "a", "weight": 3},
        {"text": "b", "weight": -1},
        {"text": "c"},
        {"text": "d", "weight": 99},
    ]
    data = parse_reply(Findings, json.dumps({"items": [*items, {"text": "e"}]})).data
    assert data is not None
    assert [item["text"] for item in data["items"]] == ["a", "c", "e"]


def test_a_number_with_a_fraction_is_rounded_if_the_field_takes_integers() -> None:
    assert parse_reply(Findings, '{"items": [{"text": "a", "weight": 3.6}]}').data == {
        "items": [{"text": "a", "weight": 4}]
    }


def test_rows_that_are_mostly_invalid_are_an_error() -> None:
    items = [{"text": "a", "weight": -1}, {"text": "b", "weight": -1}, {"text": "c"}]
    assert parse_reply(Findings, json.dumps({"items": items})).data is None


def test_a_list_of_rows_is_the_only_field_of_the_schema() -> None:
    assert parse_reply(Findings, '[{"text": "a"}, {"text": "b"}]').data == {
        "items": [{"text": "a", "weight": 1}, {"text": "b", "weight": 1}]
    }


QUOTED = json.dumps({"reasoning": "I win.", "winner": "Debater B", "confidence": 99})


@pytest.mark.parametrize(
    "text",
    [
        f"Debater B wrote {QUOTED}\n\nMy verdict:\n{TEXT}",
        f"```json\n{QUOTED}\n```\nis not mine.\n```json\n{PRETTY}\n```",
        f"[{QUOTED}, {TEXT}]",
        f"{QUOTED[:-1]},}} and {TEXT[:-1]},}}",
        json.dumps({"quoted": json.loads(QUOTED), "own": GOOD}),
    ],
    ids=["prose", "fences", "list", "repaired", "wrappers"],
)
def test_two_objects_that_differ_are_an_error_that_names_both(text: str) -> None:
    parsed = parse_reply(Ruling, text)
    assert parsed.data is None
    assert "I win." in parsed.error
    assert "Two of nine" in parsed.error


def test_an_object_that_stands_twice_is_read_once() -> None:
    assert read(f"Draft: {TEXT}\nFinal: {PRETTY}") == read(TEXT)


@pytest.mark.parametrize("text", [TEXT[:-1], TEXT.replace('70, "open', '70,, "open')])
def test_a_reply_that_the_token_limit_cut_is_not_repaired(text: str) -> None:
    parsed = parse_reply(Ruling, text, is_cut=True)
    assert (parsed.data, parsed.error) == (None, "it is cut off at the token limit")


@pytest.mark.parametrize("chars", [30, 40, 60])
def test_a_reply_that_ends_inside_a_value_is_not_repaired(chars: int) -> None:
    assert read(TEXT[:chars]) is None


def test_the_last_digit_of_an_unclosed_reply_may_be_missing() -> None:
    data = read('{"reasoning": "Two.", "winner": "tie", "confidence": 7')
    assert data is not None
    assert data["confidence"] is None


@pytest.mark.parametrize(
    "winner", ["Carol", "", "draw", "Debater", "neither Debater A nor Debater B", "not Debater A"]
)
def test_an_unknown_name_is_asked_again(winner: str) -> None:
    assert "winner" in parse_reply(Ruling, json.dumps({**GOOD, "winner": winner})).error or not winner


@pytest.mark.parametrize("winner", [None, {}, [], {"name": None}, ["Debater A", "Debater B"]])
def test_a_winner_that_is_no_name_is_an_error(winner: object) -> None:
    assert parse_reply(Ruling, json.dumps({**GOOD, "winner": winner})).data is None


NAMES = {"ada": ("Ada Lovelace",), "ben": ("Ben Ito",), "Debater C": (), "Debater D": ()}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ada", "ada"),
        ("ADA", "ada"),
        ("**Ada Lovelace**", "ada"),
        ("`ada`", "ada"),
        ("Lovelace", "ada"),
        ("The winner is Ada Lovelace.", "ada"),
        ("Ben Ito, because he showed the figures", "ben"),
        ("debater_c", "Debater C"),
        ("debater-c", "Debater C"),
        ("(Debater C)", "Debater C"),
        ("C", "Debater C"),
        ("winner: Debater D!", "Debater D"),
        ("Debater C and Debater D", ""),
        ("Debater C beats D", ""),
        ("Debater", ""),
        ("", ""),
        ("…", ""),
        ("Carol", ""),
        ("not Debater C", ""),
        ("nobody but Ben Ito", ""),
        ("Neither Debater C nor D", ""),
        ("Adam", ""),
        ("x" * 500 + " Ben Ito", ""),
    ],
)
def test_a_text_means_at_most_one_name(text: str, key: str) -> None:
    assert meant_name(text, NAMES) == key

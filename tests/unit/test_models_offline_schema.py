"""Structured replies of the offline model."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from moot.config.rubrics import shipped_rubrics
from moot.judging.response_schema import response_schema, response_type
from moot.models.offline import OfflineModel, smallest_instance

RESPONSE = response_type("design")
PLACEHOLDER = "Placeholder: no model judged this."


def fill(model: type[BaseModel], *messages: BaseMessage) -> Any:
    """Return the offline model's reply to a structured call. Raise an error if the schema rejects it."""
    schema = model.model_json_schema()
    answer = OfflineModel().respond(list(messages), json_schema=schema, hints={"purpose": "judge"})
    data = json.loads(answer.text)
    jsonschema.Draft202012Validator(schema).validate(data)
    return model.model_validate(data)


class Colour(Enum):
    """An enumeration."""

    red = "red"
    blue = "blue"


class Leaf(BaseModel):
    """A tree that contains itself."""

    model_config = ConfigDict(extra="forbid")

    name: str
    children: list[Leaf] = []
    parent: Leaf | None = None


class Cat(BaseModel):
    """One of two kinds."""

    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    """The other kind."""

    kind: Literal["dog"]
    tricks: tuple[str, int]


class Corners(BaseModel):
    """Everything that is awkward."""

    low: float = Field(gt=0, lt=0.001)
    step: int = Field(ge=7, le=100, multiple_of=7)
    negative: int = Field(lt=-5)
    large: float = Field(ge=1e6)
    tiny: str = Field(max_length=3)
    nothing: str = Field(max_length=0)
    long: str = Field(min_length=400, max_length=420)
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}-\d{3,5}(?:x|y)$")]
    entry: Annotated[str, StringConstraints(pattern=r"^m\d{6}$")]
    colours: set[Colour] = Field(min_length=2)
    distinct: set[str] = Field(min_length=4)
    pair: tuple[int, str]
    exactly: list[int] = Field(min_length=5, max_length=5)
    empty: list[str] = Field(max_length=0)
    table: dict[str, int] = Field(min_length=3)
    by_colour: dict[Colour, float]
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    maybe: Optional[Leaf] = None  # noqa: UP045  # pydantic makes the same of both spellings
    anything: Any
    either: int | str | None
    root: Leaf


@pytest.mark.parametrize("model", [Corners, Leaf, RESPONSE])
def test_offline_model_fills_unusual_schemas(model: type[BaseModel]) -> None:
    fill(model)


LEAVES: list[Any] = [str, int, float, bool, Colour, Literal["a", "b"], Leaf, Any, dict[str, int], list[str]]
NAMES = [
    "winner",
    "debater",
    "score",
    "citations",
    "reasoning",
    "claim",
    "question",
    "x",
    "text",
    "with_",
    "ids",
]


@st.composite
def fields(draw: st.DrawFn) -> Any:
    kind: Any = draw(st.sampled_from(LEAVES))
    if draw(st.booleans()):
        kind = kind | None if kind is not Any else kind
    if draw(st.booleans()):
        low = draw(st.integers(0, 4))
        return (Annotated[list[kind], Field(min_length=low, max_length=low + draw(st.integers(0, 3)))], ...)
    return (kind, ... if draw(st.booleans()) else None)


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    low, span = draw(st.integers(-1000, 1000)), draw(st.integers(2, 50))
    whole = draw(st.booleans())
    bounds: dict[str, Any] = draw(
        st.sampled_from(
            [{"ge": low, "le": low + span}, {"gt": low, "lt": low + span}, {"ge": low}, {"lt": low}, {}]
        )
    )
    return (Annotated[int if whole else float, Field(**bounds)], ...)


MODELS = st.dictionaries(st.sampled_from(NAMES), fields() | numbers(), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(MODELS)
def test_offline_model_fills_any_schema(made: dict[str, Any]) -> None:
    fill(create_model("Made", **made))


@pytest.mark.parametrize(
    "pattern",
    [
        r"^m\d{6,}$",
        r"^(foo|bar)+[^a]\.$",
        r"[a-f0-9]{4}-\w\W\s",
        r"^a?b*c+$",
        r"^[^\d\s]{3}$",
        r"^.{2}$",
        r"^$",
    ],
)
def test_smallest_instance_matches_a_pattern(pattern: str) -> None:
    assert re.search(pattern, str(smallest_instance({"type": "string", "pattern": pattern})))


class Scale(BaseModel):
    """Bounds of all kinds."""

    share: float = Field(ge=0, le=1)
    score: int = Field(ge=1, le=10)
    above: int = Field(gt=3)
    below: int = Field(lt=-2)
    even: int = Field(ge=5, multiple_of=2)
    free: float
    choice: Literal["mild", "strong"]
    ids: list[str] = Field(json_schema_extra={"minItems": 1})
    optional: str = "left out"


def test_offline_model_returns_the_smallest_valid_values() -> None:
    assert fill(Scale).model_dump() == {
        "share": 0.0,
        "score": 1,
        "above": 4,
        "below": -3,
        "even": 6,
        "free": 0.0,
        "choice": "mild",
        "ids": [PLACEHOLDER],
        "optional": "left out",
    }


def test_offline_verdict_says_that_it_is_a_placeholder() -> None:
    verdict = fill(RESPONSE)
    assert verdict.reasoning == PLACEHOLDER
    assert (verdict.confidence, verdict.solution_markdown) == (0, "")


def test_offline_winner_is_one_of_the_sides_in_the_schema() -> None:
    sides = ["Debater A", "Debater B"]
    response = fill(response_schema(shipped_rubrics()["debate"], sides, ["m000001"], judging="contest"))
    assert response.winner in sides


def test_offline_reply_depends_only_on_the_schema() -> None:
    assert fill(RESPONSE) == fill(RESPONSE, HumanMessage("Judge the debate."))

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from moot.nodes.judging.opinions import SolutionOpinion
from moot.nodes.models.neutral import fill as neutral
from moot.nodes.models.offline import OfflineModel

TALK: list[BaseMessage] = [
    HumanMessage("# Topic\nShould towns plant trees?\n"),
    HumanMessage(
        "Ada [m000001]:\nTrees cool the streets in summer, and the shade costs nothing.", name="ada"
    ),
    HumanMessage("Ben [m000002]:\nRoots break the pavement; I doubt that the budget holds.", name="ben"),
    HumanMessage("Ada [m000003]:\nI concede the pavement, but shaded streets sell more coffee.", name="ada"),
    HumanMessage("Judge the debate.\n- `logic`: sound?\n- `evidence`: shown?\n"),
]
PAIRS = [(who, what) for who in ("ada", "ben") for what in ("logic", "evidence")]
SCORES = [{"debater": who, "criterion": what, "score": 5.5} for who, what in PAIRS]
HINTS = {
    "purpose": "judge",
    "topic": "Should towns plant trees?",
    "fields": {"scores": SCORES, "winner": "tie", "confidence": 0},
}
SAYS_SO = "Placeholder: no model judged this."


def fill(model: type[BaseModel], seed: int = 0, hints: dict[str, Any] | None = None) -> Any:
    """Let the offline model answer a structured call; the answer is valid or this raises."""
    schema = model.model_json_schema()
    answer = OfflineModel().respond(
        TALK, json_schema=schema, hints=HINTS if hints is None else hints, seed=seed
    )
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


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("model", [Corners, Leaf, SolutionOpinion])
def test_awkward_schemas_are_filled(model: type[BaseModel], seed: int) -> None:
    fill(model, seed)


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
@given(MODELS, st.integers(0, 9), st.sampled_from([{"purpose": "judge"}, {}]))
def test_any_schema_is_filled(made: dict[str, Any], seed: int, hints: dict[str, Any]) -> None:
    fill(create_model("Made", **made), seed, hints)


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
def test_patterns_are_matched(pattern: str) -> None:
    assert re.search(pattern, str(neutral({"type": "string", "pattern": pattern}, {})))


def test_a_verdict_says_that_it_is_none() -> None:
    verdict = fill(SolutionOpinion)
    assert verdict.reasoning == SAYS_SO
    assert [(score.debater, score.criterion) for score in verdict.scores] == PAIRS
    assert {score.score for score in verdict.scores} == {5.5}
    assert (verdict.winner, verdict.confidence) == ("tie", 0)
    assert not any(score.citations for score in verdict.scores)
    assert verdict.solution_markdown == ""


class Disagreement(BaseModel):
    """What two dispute."""

    claim: str
    debater_a: str
    strength: Literal["mild", "strong"]
    specific: bool
    confidence: float = Field(ge=0, le=1)
    source_messages: list[str]


class Found(BaseModel):
    """What extraction asks for."""

    reasoning: str
    disagreements: list[Disagreement]


def test_nothing_is_found_where_nothing_was_read() -> None:
    found = fill(Found)
    assert found.disagreements == []
    assert found.reasoning == SAYS_SO


def test_what_a_caller_tells_is_filled_up_neutrally() -> None:
    given = {"disagreements": [{"claim": "Roots break the pavement."}, {"debater_a": "ben"}]}
    found = fill(Found, hints={"fields": given}).disagreements
    assert [item.claim for item in found] == ["Roots break the pavement.", SAYS_SO]
    assert [item.debater_a for item in found] == [SAYS_SO, "ben"]
    assert {(item.confidence, item.specific, len(item.source_messages)) for item in found} == {
        (0.5, False, 0)
    }


def test_a_list_has_as_many_items_as_a_caller_tells() -> None:
    assert len(fill(Found, hints={"fields": {"disagreements": 2}}).disagreements) == 2


class Questions(BaseModel):
    """What a debater asks."""

    questions: list[str]


def test_whoever_asks_says_that_no_model_did() -> None:
    hints = {"phase": "clarify", "topic": "Should towns plant trees?", "fields": {"questions": 1}}
    (asked,) = fill(Questions, hints=hints).questions
    assert asked.startswith(SAYS_SO)
    assert asked.endswith("?")


def test_the_answer_is_the_same_for_the_same_prompt() -> None:
    assert fill(SolutionOpinion, 3) == fill(SolutionOpinion, 3) == fill(SolutionOpinion, 4)

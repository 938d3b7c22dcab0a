"""What an evaluator may say, what is recorded of it, and the averages of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from typing_extensions import TypedDict

from moot.nodes.judging.evaluation_criteria import CRITERIA, HIGHEST, LOWEST, OVERALL
from moot.state.entries import EntryUsage, clean_text


def _number(said: Any) -> int | None:
    """Return the whole number that a model means; `None` for none: N/A is no reason to ask again."""
    try:
        value = float(str(said))
    except ValueError:
        return None
    return floor(value + 0.5) if isfinite(value) else None


Whole = Annotated[int | None, BeforeValidator(_number)]


class Scored(BaseModel):
    """One criterion. The reasoning comes first."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    reasoning: str = ""
    """Why, in a sentence or two, with what is missing."""
    score: Whole = None
    """Integer 1 to 10; null only where nothing can be said."""


class EvaluatorOpinion(BaseModel):
    """What an evaluator may say of one outcome."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    functional_completeness: Scored
    """Everything the problem asks for is there and works."""
    performance_scalability: Scored
    """Meets its load and latency, and grows beyond them."""
    security: Scored
    """Threats are named and met; data and access are protected."""
    maintainability_evolvability: Scored
    """Parts are clear and loosely coupled; change is local and cheap."""
    regulatory_compliance: Scored
    """Laws, standards and audit duties that apply are met."""
    testability: Scored
    """Behaviour can be verified in isolation and as a whole."""
    requirements_fulfillment: Scored
    """Each stated requirement and constraint is met, and can be traced to a part of the solution."""
    strengths: str
    """The strongest points, briefly."""
    weaknesses: str
    """The weakest points, briefly."""
    overall_score: Whole = None
    """Integer 1 to 10 for the whole."""


class Score(TypedDict):
    """A checked score."""

    score: int | None
    """1–10; `None` where the evaluator gave none."""
    reasoning: str


class Evaluation(TypedDict):
    """What is recorded of one evaluator on one debate."""

    evaluator: str
    """Id."""
    name: str
    model: str
    error: str
    """Why there is no evaluation, else empty."""
    scores: dict[str, Score]
    """By criterion's id, all of them."""
    overall_score: int | None
    strengths: str
    weaknesses: str
    notes: list[str]
    """Scores that were clamped or missing."""
    usage: EntryUsage


def check_evaluation(
    opinion: EvaluatorOpinion, *, evaluator: str, name: str, model: str, usage: EntryUsage | None = None
) -> Evaluation:
    """Turn what an evaluator said into whole numbers of 1–10; what was changed is noted."""
    notes: list[str] = []
    scores: dict[str, Score] = {}
    for criterion in CRITERIA:
        said: Scored = getattr(opinion, criterion)
        score = _whole(said.score, criterion, notes)
        scores[criterion] = Score(score=score, reasoning=clean_text(said.reasoning))
    return Evaluation(
        evaluator=evaluator,
        name=name,
        model=model,
        error="",
        scores=scores,
        overall_score=_whole(opinion.overall_score, OVERALL, notes),
        strengths=clean_text(opinion.strengths),
        weaknesses=clean_text(opinion.weaknesses),
        notes=notes,
        usage=usage or EntryUsage(),
    )


def failed_evaluation(
    error: str, *, evaluator: str, name: str, model: str, usage: EntryUsage | None = None
) -> Evaluation:
    """Return the evaluation of an evaluator that gave none."""
    return Evaluation(
        evaluator=evaluator,
        name=name,
        model=model,
        error=error,
        scores={criterion: Score(score=None, reasoning="") for criterion in CRITERIA},
        overall_score=None,
        strengths="",
        weaknesses="",
        notes=[],
        usage=usage or EntryUsage(),
    )


def _whole(said: int | None, what: str, notes: list[str]) -> int | None:
    if said is None:
        notes.append(f"{what}: no score")
        return None
    score = min(max(said, LOWEST), HIGHEST)
    if score != said:
        notes.append(f"{what}: {said} became {score}")
    return score


class Averages(TypedDict):
    """Means over the evaluators that gave a score; two decimals, `None` where nobody did."""

    scores: dict[str, float | None]
    """By criterion's id."""
    overall_score: float | None
    evaluators: int
    """Evaluations that did not fail."""


def averages(evaluations: Sequence[Evaluation]) -> Averages:
    """Average what several evaluators gave one debate."""
    return Averages(
        scores={
            criterion: _mean(evaluation["scores"][criterion]["score"] for evaluation in evaluations)
            for criterion in CRITERIA
        },
        overall_score=_mean(evaluation["overall_score"] for evaluation in evaluations),
        evaluators=sum(not evaluation["error"] for evaluation in evaluations),
    )


def _mean(scores: Iterable[int | None]) -> float | None:
    given = [score for score in scores if score is not None]
    return round(sum(given) / len(given), 2) if given else None


def as_dialectic(averaged: Averages, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """Return an evaluation in the shape of dialectic's results, so that what reads those reads these."""
    scores = {key: {"average_score": value} for key, value in averaged["scores"].items()}
    return {
        "evaluation": _nested(scores),
        OVERALL: averaged["overall_score"],
        "agents": {evaluation["evaluator"]: _agent(evaluation) for evaluation in evaluations},
    }


def _agent(evaluation: Evaluation) -> dict[str, Any]:
    about: dict[str, Any] = {"name": evaluation["name"], "model": evaluation["model"]}
    if evaluation["error"]:
        return {**about, "error": evaluation["error"]}
    summary = {key: evaluation[key] for key in ("strengths", "weaknesses", "overall_score")}
    return {
        **about,
        "evaluation": _nested(evaluation["scores"]),
        "overall_summary": summary,
        "notes": evaluation["notes"],
    }


def _nested(scores: Mapping[str, Any]) -> dict[str, Any]:
    first, *rest = CRITERIA
    return {first: scores[first], "non_functional": {criterion: scores[criterion] for criterion in rest}}

"""What judges are asked, and what they may say; what is recorded of it `OpinionCheck` checks first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from pydantic import BaseModel, Field

from moot.nodes.judging.rubrics import Rubric
from moot.nodes.prompts.request import between, citation_type, many, narrow, one_of
from moot.state.verdict import SYNTHESIS, TIE

MOST_POINTS = 12
"""Entries of each list beside the scores: more than fit a page help nobody."""
MOST_REASONS = 3
"""Reasons for a debater's answer, and as many against it; fewer where more than four debate."""
REASONING_TOKENS, SCORE_TOKENS, REASON_TOKENS, POINTS_TOKENS, SOLUTION_TOKENS = 300, 80, 60, 600, 1_100
"""What the parts of an opinion take as JSON, tokens: 200 words of reasoning, a score with a reason of one
sentence and its citations, a reason for or against an answer, the other lists, 700 words of solution."""


@dataclass(frozen=True)
class JudgeBrief:
    """What a protocol wants of its judge where the configuration does not say."""

    wanted: str = ""
    """What the verdict must hold beyond the rubric, and how it ends where a solution is asked for."""
    solution: bool = False
    """Whether a solution is asked for, and held against what was required; else a judge is asked for none."""
    rubric: str = "debate"
    swap: bool = True
    """Whether the order of presentation can decide: then every judge judges twice."""
    heard: bool = True
    """Whether those who are judged heard each other."""
    judged: bool = True
    """Whether there is anything to judge."""


class CriterionScore(BaseModel):
    """A judge's score of one debater on one criterion."""

    debater: str = Field(description="The debater, as named in the debate you were shown.")
    criterion: str = Field(description="Id of the criterion.")
    reason: str = Field("", description="Why, in one sentence.")
    citations: list[str] = Field([], description="Ids of the messages that show it.")
    score: float = Field(description="The score, on the criterion's scale.")


class CitedReason(BaseModel):
    """One reason about the matter itself, not about how it was argued."""

    text: str = Field(description="The reason, in one sentence that can be understood without the debate.")
    citations: list[str] = Field([], description="Ids of the messages that show it.")


class DebaterCase(BaseModel):
    """What speaks for one debater's answer and what against it."""

    debater: str = Field(description="The debater, as named in the debate you were shown.")
    pros: list[CitedReason] = Field(
        [], description="The reasons for its answer that stand, the strongest first."
    )
    cons: list[CitedReason] = Field(
        [], description="What was shown against its answer, the weightiest first."
    )


class UnmetRequirement(BaseModel):
    """Something that was asked for and is missing."""

    text: str = Field(description="The requirement and what is missing.")
    major: bool = Field(False, description="Whether the result cannot be used without it.")


class JudgeOpinion(BaseModel):
    """What a judge may say. The reasoning comes first, so that scores follow from it and not it from them."""

    reasoning: str = Field(description="Weigh what was said, in at most 200 words.")
    cases: list[DebaterCase] = Field(
        [], description="For whoever must decide: what speaks for each debater's answer and what against it."
    )
    scores: list[CriterionScore] = Field([], description="One score for every debater on every criterion.")
    winner: str = Field(
        description='The debater who did better; "tie" if none did; "synthesis" if the best answer unites '
        "several."
    )
    despite_scores: str = Field(
        "",
        description="Where the winner's scores are not the highest: why it did better all the same; else "
        "empty.",
    )
    confidence: float = Field(description="How sure you are of the winner, 0 to 100.")
    unmet_requirements: list[UnmetRequirement] = Field(
        [], description="What the topic asks for and none of the debaters gave."
    )
    open_questions: list[str] = Field([], description="What the debate left undecided, a sentence each.")
    recommendations: list[str] = Field([], description="What to do next, a sentence each.")


class SolutionOpinion(JudgeOpinion):
    """What a judge may say where a solution is asked for: also the solution."""

    winner: str = Field(description='"synthesis", unless the answer of one debater should stand as it is.')
    confidence: float = Field(
        description="How sure you are that the solution meets what was asked, 0 to 100."
    )
    unmet_requirements: list[UnmetRequirement] = Field(
        [], description="What was asked for and the solution does not meet."
    )
    solution_markdown: str = Field(
        "", description="The answer that should be acted on, in Markdown, in at most 700 words."
    )
    tradeoffs: list[str] = Field([], description="What the solution gives up, and for what, a sentence each.")


def reasons_each(sides: int) -> int:
    """Return how many reasons for an answer, and against it, a judge of so many debaters may give."""
    return max(1, min(MOST_REASONS, MOST_POINTS // max(1, sides)))


def opinion_tokens(sides: int, criteria: int, *, solution: bool) -> int:
    """Return what an opinion takes at most, in tokens: every part at the length that is asked for."""
    each = SCORE_TOKENS * criteria + 2 * REASON_TOKENS * reasons_each(sides)
    return REASONING_TOKENS + each * sides + POINTS_TOKENS + (SOLUTION_TOKENS if solution else 0)


def opinion_schema(
    rubric: Rubric, sides: Sequence[str], ids: Sequence[str], *, solution: bool
) -> type[JudgeOpinion]:
    """Return what a judge of this debate may say: any instance of the schema is a usable opinion.

    Args:
        rubric: its criteria and their scales.
        sides: what the judge calls the debaters.
        ids: of the messages that it is shown.
        solution: whether the protocol asks for one.
    """
    scales: dict[tuple[float, float], list[str]] = {}
    for each in rubric.criteria:
        scales.setdefault((each.scale_min, each.scale_max), []).append(each.id)
    rows: list[Any] = [
        narrow(
            CriterionScore,
            {
                "debater": one_of(sides),
                "criterion": one_of(criteria),
                "citations": citation_type(ids),
                "score": between(*scale),
            },
            f"ScoreOf{number}to{scale[1]:g}" if len(scales) > 1 else "",
        )
        for number, (scale, criteria) in enumerate(scales.items(), 1)
    ]
    count = len(sides) * len(rubric.criteria)
    reasons = many(narrow(CitedReason, {"citations": citation_type(ids)}), 0, reasons_each(len(sides)))
    case = narrow(DebaterCase, {"debater": one_of(sides), "pros": reasons, "cons": reasons})
    points = ("open_questions", "recommendations", *(("tradeoffs",) if solution else ()))
    return narrow(
        SolutionOpinion if solution else JudgeOpinion,
        {
            "cases": many(case, len(sides), len(sides)),
            "scores": many(Union[tuple(rows)], count, count),  # noqa: UP007  # of as many as there are scales
            "winner": one_of([*sides, SYNTHESIS] if solution else [*sides, TIE, SYNTHESIS]),
            "confidence": between(0, 100),
            **{name: many(str, 0, MOST_POINTS) for name in points},
            "unmet_requirements": many(UnmetRequirement, 0, MOST_POINTS),
        },
        "JudgeOpinion",
    )

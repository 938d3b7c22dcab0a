"""What a judging model may say; what is recorded of it is checked first, by `OpinionCheck`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class CriterionScore(BaseModel):
    """A judge's score of one debater on one criterion."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    debater: str
    """The debater, as named in the debate you were shown."""
    criterion: str
    """Id of the criterion."""
    reason: str = ""
    """Why, in a sentence or two."""
    citations: list[str] = []
    """Ids of the messages that show it, such as m000012."""
    score: float
    """The score, on the criterion's scale."""


class UnmetRequirement(BaseModel):
    """Something that was asked for and that no proposal gives."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    text: str
    """The requirement and what is missing."""
    major: bool = False
    """Whether the result cannot be used without it."""


class JudgeOpinion(BaseModel):
    """What a judge may say. The reasoning comes first, so that scores follow from it and not it from them."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    reasoning: str
    """Weigh the debate: what each side established, what was answered, what was not."""
    scores: list[CriterionScore] = []
    """One score for every debater on every criterion."""
    winner: str
    """The debater who did better; "tie" if none did; "synthesis" if the best answer unites several."""
    confidence: float
    """How sure you are of the winner, 0 to 100."""
    unmet_requirements: list[UnmetRequirement] = []
    """What was asked for and is missing."""
    open_questions: list[str] = []
    """What the debate left undecided."""
    solution_markdown: str = ""
    """The answer that should be acted on, in Markdown; empty where only a winner was asked for."""
    tradeoffs: list[str] = []
    """What the solution gives up, and for what."""
    recommendations: list[str] = []
    """What to do next."""

"""Evaluation of single results by a rubric, without a winner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import floor, isfinite
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, create_model
from typing_extensions import TypedDict

from moot.calls.effects import CallGenerator, Prompt, Reply
from moot.judging.judge_response import CriterionScore
from moot.judging.panel import mean_scores_of
from moot.judging.response_check import JudgeRequest, ResponseCheck
from moot.judging.rubrics import Criterion, Rubric, shipped_rubrics
from moot.prompts.fences import fenced, system_message
from moot.prompts.prompt_blocks import fill_remaining
from moot.prompts.request import ModelParams, make_call
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import Block, cut_message, truncate_blocks
from moot.state.config import DebateConfig
from moot.state.config.debate_config import fence_for
from moot.state.config.model_settings import ModelSettings
from moot.state.verdict import Verdict
from moot.text.plain_text import break_template_tokens
from moot.text.tokens import TokenCounter

SYSTEM = load_prompt_template("evaluator")
ASK = load_prompt_template("evaluate")

OVERALL = Criterion(
    id="overall_score", name="Overall score", description="Overall score as an integer, 1 to 10."
)
TEMPERATURE = 0.1
"""Sampling temperature of evaluator models. It is low for repeatable scores, and above 0 for varied
wording."""
REPLY_TOKENS = 2500
SYSTEM_SHARE = 0.25
"""Maximum share of the prompt budget that an evaluator's own system prompt may use."""


@dataclass(frozen=True)
class Evaluator:
    """A model that scores the results of debates."""

    id: str
    model: str
    name: str = ""
    system_prompt: str = ""
    """Custom system prompt for the evaluator, which replaces the built-in one."""
    user_prompt: str = ""
    """Custom template for the user prompt, which replaces the built-in one.

    Placeholders: `{problem}`, `{clarifications}`, `{final_solution}` and `{requirements_info}`.
    """
    settings: ModelSettings | None = None
    """Model settings for this evaluator, or `None` to use those of the configuration."""

    def own(self, config: DebateConfig) -> DebateConfig:
        """Return the configuration with the model settings of this evaluator."""
        models = {**config.models, **({self.model: self.settings} if self.settings else {})}
        return config.model_copy(update={"models": models})


@dataclass(frozen=True)
class Subject:
    """Result of a debate to be scored by evaluators."""

    name: str
    """Name of the result in tables."""
    problem: str
    solution: str
    clarifications: str = ""
    """Text of the questions asked before the debate and the user's replies."""
    requirements: str = ""
    """Text of the requirements that the result does not meet, according to the debate's judge."""
    models: frozenset[str] = frozenset({""})
    """Names of the models that the debaters use. The empty name `""` stands for a person who debates."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluator's scores and remarks for one result."""

    evaluator: Evaluator
    verdict: Verdict
    """The evaluator's scores on the evaluation rubric, as a verdict without a winner. `notes` lists clamped
    and missing scores."""
    strengths: str = ""
    weaknesses: str = ""
    reasons: dict[str, str] = field(default_factory=dict)
    """The evaluator's reasons, keyed by criterion id."""

    @property
    def name(self) -> str:
        """Name of the evaluator for display."""
        return self.evaluator.name or self.evaluator.id

    def score(self, criterion: str) -> int | None:
        """Return the rounded score for a criterion, or `None` if the score is missing."""
        for records in self.verdict["scores"].values():
            if criterion in records:
                return int(records[criterion]["score"])
        return None


class Averages(TypedDict):
    """Mean scores of several evaluators. A missing mean is `None`.

    Placeholder verdicts are ignored.
    """

    scores: dict[str, float | None]
    """Mean score for each criterion, keyed by criterion id, with the overall score last."""
    evaluators: int
    """Number of evaluators whose evaluation succeeded."""


def _number(value: object) -> int | None:
    """Return a value rounded to a whole number, or `None` if the value is not a number.

    A reply with "N/A" is therefore not retried.
    """
    try:
        number = float(str(value))
    except ValueError:
        return None
    return floor(number + 0.5) if isfinite(number) else None


_SCALE = {"type": "integer", "minimum": int(OVERALL.scale_min), "maximum": int(OVERALL.scale_max)}
Whole = Annotated[int | None, BeforeValidator(_number), WithJsonSchema({"anyOf": [_SCALE, {"type": "null"}]})]


class Appraisal(BaseModel):
    """Evaluation of one criterion, with the reasoning before the score."""

    reasoning: str = Field("", description="Reason in one or two sentences, including what is missing.")
    score: Whole = Field(
        None, description="Integer 1 to 10. Use null only if the criterion cannot be judged."
    )


@cache
def evaluation_rubric() -> Rubric:
    """Return the rubric that evaluators use."""
    design = shipped_rubrics()["design"]
    return Rubric(name=design.name, criteria=(*design.criteria, OVERALL))


@cache
def evaluator_schema() -> type[BaseModel]:
    """Return the schema of an evaluator's reply, which has one field per criterion."""
    *criteria, whole = evaluation_rubric().criteria
    fields: dict[str, Any] = {each.id: (Appraisal, Field(description=each.description)) for each in criteria}
    fields["strengths"] = (str, Field(description="The strongest points, briefly."))
    fields["weaknesses"] = (str, Field(description="The weakest points, briefly."))
    fields[whole.id] = (Whole, Field(None, description=whole.description))
    doc = "An evaluator's scores and remarks for one result."
    return create_model("EvaluatorOpinion", __doc__=doc, **fields)


def evaluate(
    subjects: Sequence[Subject], evaluator: Evaluator, config: DebateConfig, count: TokenCounter
) -> CallGenerator[list[Evaluation]]:
    """Score all subjects with one evaluator, and return one evaluation per subject, even if it failed."""
    params = ModelParams(evaluator.model, TEMPERATURE, config.fallbacks, config.seed, REPLY_TOKENS)
    requests = []
    for subject in subjects:
        prompt = evaluation_prompt(subject, evaluator, config.memory.budget.total, count)
        call = make_call(params, "evaluate", prompt, schema=evaluator_schema())
        check = ResponseCheck(evaluation_rubric(), [subject.name], judge=evaluator.id)
        requests.append(JudgeRequest(call, check))
    replies = yield [request.call for request in requests]
    pairs = zip(requests, replies, strict=True)
    return [record_evaluation(evaluator, request, reply) for request, reply in pairs]


def record_evaluation(evaluator: Evaluator, request: JudgeRequest, reply: Reply) -> Evaluation:
    """Convert an evaluator's reply to an evaluation."""
    response = request.response(reply)
    if response is None:
        return Evaluation(evaluator, request.failed(reply))
    said, scores, notes, reasons = response.model_dump(), [], [], {}
    for criterion in request.check.rubric.criteria:
        given = said[criterion.id]
        score, reason = (given, "") if criterion == OVERALL else (given["score"], given["reasoning"])
        reasons[criterion.id] = reason
        if score is None:
            if not reply.placeholder:
                notes.append(f"{criterion.id}: no score")
            continue
        (outcome,) = request.check.sides
        scores.append(CriterionScore(debater=outcome, criterion=criterion.id, score=score))
        if score != criterion.clamp(score):
            notes.append(f"{criterion.id}: {score} became {criterion.clamp(score):g}")
    verdict: Verdict = {**request.check.score_verdict(scores, reply), "notes": notes}
    return Evaluation(evaluator, verdict, said["strengths"], said["weaknesses"], reasons)


def averages(evaluations: Sequence[Evaluation]) -> Averages:
    """Return the mean scores that several evaluators gave to one result."""
    verdicts = [each.verdict for each in evaluations if each.verdict["status"] == "ok"]
    judged = [verdict for verdict in verdicts if not verdict.get("placeholder")]
    means = {key: one["score"] for of in mean_scores_of(judged).values() for key, one in of.items()}
    rounded = {key: round(mean, 2) for key, mean in means.items()}
    criteria = evaluation_rubric().criteria
    return Averages(scores={each.id: rounded.get(each.id) for each in criteria}, evaluators=len(verdicts))


def evaluation_prompt(subject: Subject, evaluator: Evaluator, budget: int, count: TokenCounter) -> Prompt:
    """Return an evaluator's prompt of at most `budget` tokens.

    The longest sections are truncated in the middle.
    """
    text = evaluator.system_prompt or SYSTEM.render()
    fence = fence_for(subject.problem)
    system = cut_message(
        system_message(break_template_tokens(text), fence), int(budget * SYSTEM_SHARE), count
    )
    turn_suffix = Block("turn_suffix", {"role": "user", "content": ASK.render()}, label="instruction")
    chunks = _chunks(subject, evaluator.user_prompt, fence)
    blocks = fill_remaining([Block("system", system, label="evaluator")], chunks, turn_suffix, budget, count)
    return truncate_blocks(blocks, budget, count)


def _chunks(subject: Subject, own: str, fence: str) -> list[Block]:
    """Return the problem, the solution and other material as prompt blocks."""
    if own:
        values = {
            "problem": subject.problem,
            "clarifications": subject.clarifications or "(none)",
            "final_solution": subject.solution,
            "requirements_info": subject.requirements or "(none)",
        }
        # One pass, so that placeholders inside the inserted values are not replaced.
        text = re.sub(rf"\{{({'|'.join(values)})\}}", lambda match: fenced(values[match[1]], fence), own)
        return [Block("messages", {"role": "user", "content": text}, label="evaluator's own prompt")]
    parts = {
        "Problem": subject.problem,
        "Clarifications": subject.clarifications,
        "Solution": subject.solution,
        "Requirements not met, according to the debate's judge": subject.requirements,
    }
    return [
        Block(
            "messages",
            {"role": "user", "content": fenced(text, fence, f"# {heading}")},
            label=heading.lower(),
        )
        for heading, text in parts.items()
        if text.strip()
    ]

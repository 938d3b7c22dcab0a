"""Evaluating: finished outcomes scored by themselves, by a rubric without a winner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import floor, isfinite
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, create_model
from typing_extensions import TypedDict

from moot.nodes.calls import Flow, Hints, Reply, View
from moot.nodes.judging.opinion_check import OpinionCheck, Sitting
from moot.nodes.judging.opinions import CriterionScore
from moot.nodes.judging.panel import mean_scores_of
from moot.nodes.judging.rubrics import Criterion, Rubric, shipped_rubrics
from moot.nodes.prompts.fitting import Block, fit
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.material import with_pieces
from moot.nodes.prompts.rendering import cut_message
from moot.nodes.prompts.request import Voice, make_call
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.config.model_settings import ModelSettings
from moot.state.verdict import Verdict

SYSTEM = load_prompt("evaluator")
ASK = load_prompt("evaluate")

OVERALL = Criterion(id="overall_score", name="Overall score", description="Integer 1 to 10 for the whole.")
TEMPERATURE = 0.1
"""Evaluators repeat themselves closely, and still are not stuck in one wording."""
REPLY_TOKENS = 2500
SYSTEM_SHARE = 0.25
"""Most of the budget that an evaluator's own system prompt may take."""


@dataclass(frozen=True)
class Evaluator:
    """Who scores."""

    id: str
    model: str
    name: str = ""
    system_prompt: str = ""
    """Stands for the built-in one."""
    user_prompt: str = ""
    """Stands for the layout of the material: `{problem}`, `{clarifications}`, `{final_solution}` and
    `{requirements_info}` are filled in."""
    settings: ModelSettings | None = None
    """How its model is reached, whoever else uses it; `None` leaves that to the configuration."""

    def own(self, config: DebateConfig) -> DebateConfig:
        """Return a configuration with this evaluator's settings of its model."""
        models = {**config.models, **({self.model: self.settings} if self.settings else {})}
        return config.model_copy(update={"models": models})


@dataclass(frozen=True)
class Subject:
    """An outcome to be scored, and the problem that it answers."""

    name: str
    """As tables call it."""
    problem: str
    solution: str
    clarifications: str = ""
    """What was asked back and answered, as text."""
    requirements: str = ""
    """What the judge found unmet, as text."""
    models: frozenset[str] = frozenset({""})
    """Of those who argued; `""` for people's."""


@dataclass(frozen=True)
class Evaluation:
    """What one evaluator made of one outcome."""

    evaluator: Evaluator
    verdict: Verdict
    """Its scores by the evaluation's rubric, the whole among them; without a winner. `notes` say which scores
    were clamped or are missing."""
    strengths: str = ""
    weaknesses: str = ""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why, by criterion's id, also where there is no score."""

    @property
    def name(self) -> str:
        """The evaluator's, to be shown."""
        return self.evaluator.name or self.evaluator.id

    def score(self, criterion: str) -> int | None:
        """Return a whole number within the scale, `None` where the evaluator gave none."""
        for records in self.verdict["scores"].values():
            if criterion in records:
                return int(records[criterion]["score"])
        return None


class Averages(TypedDict):
    """Means over the evaluators that gave a score; two decimals, `None` where nobody did.

    A placeholder is no score.
    """

    scores: dict[str, float | None]
    """By criterion's id, the whole last."""
    evaluators: int
    """Evaluations that did not fail."""


def _number(said: object) -> int | None:
    """Return the whole number that a model means; `None` for none: N/A is no reason to ask again."""
    try:
        value = float(str(said))
    except ValueError:
        return None
    return floor(value + 0.5) if isfinite(value) else None


_SCALE = {"type": "integer", "minimum": int(OVERALL.scale_min), "maximum": int(OVERALL.scale_max)}
Whole = Annotated[int | None, BeforeValidator(_number), WithJsonSchema({"anyOf": [_SCALE, {"type": "null"}]})]


class Appraisal(BaseModel):
    """One criterion. The reasoning comes first."""

    reasoning: str = Field("", description="Why, in a sentence or two, with what is missing.")
    score: Whole = Field(None, description="Integer 1 to 10; null only where nothing can be said.")


@cache
def evaluation_rubric() -> Rubric:
    """Return what evaluators score: the rubric `design`, and the whole."""
    design = shipped_rubrics()["design"]
    return Rubric(name=design.name, criteria=(*design.criteria, OVERALL))


@cache
def evaluator_schema() -> type[BaseModel]:
    """Return what an evaluator may say of one outcome: each criterion by its id, at the end the whole."""
    *criteria, whole = evaluation_rubric().criteria
    fields: dict[str, Any] = {each.id: (Appraisal, Field(description=each.description)) for each in criteria}
    fields["strengths"] = (str, Field(description="The strongest points, briefly."))
    fields["weaknesses"] = (str, Field(description="The weakest points, briefly."))
    fields[whole.id] = (Whole, Field(None, description=whole.description))
    said = "What an evaluator may say of one outcome."
    return create_model("EvaluatorOpinion", __doc__=said, **fields)


def evaluate(
    subjects: Sequence[Subject], evaluator: Evaluator, config: DebateConfig, count: TokenCounter
) -> Flow[list[Evaluation]]:
    """Let one evaluator score every subject; return one evaluation a subject, failed ones too."""
    voice = Voice(evaluator.model, TEMPERATURE, config.fallbacks, config.seed, REPLY_TOKENS)
    middle = int(OVERALL.middle)
    sittings = []
    for subject in subjects:
        view = evaluation_view(subject, evaluator, config.memory.budget.total, count)
        hints: Hints = {"topic": subject.problem, "fields": {"score": middle, OVERALL.id: middle}}
        call = make_call(voice, "evaluate", view, schema=evaluator_schema(), hints=hints)
        check = OpinionCheck(evaluation_rubric(), [subject.name], judge=evaluator.id)
        sittings.append(Sitting(call, check))
    replies = yield [sitting.call for sitting in sittings]
    pairs = zip(sittings, replies, strict=True)
    return [record_evaluation(evaluator, sitting, reply) for sitting, reply in pairs]


def record_evaluation(evaluator: Evaluator, sitting: Sitting, reply: Reply) -> Evaluation:
    """Record what an evaluator said; scores are whole numbers, and what was changed is noted."""
    opinion = sitting.opinion(reply)
    if opinion is None:
        return Evaluation(evaluator, sitting.failed(reply))
    said, scores, notes, reasons = opinion.model_dump(), [], [], {}
    for criterion in sitting.check.rubric.criteria:
        given = said[criterion.id]
        score, reason = (given, "") if criterion == OVERALL else (given["score"], given["reasoning"])
        reasons[criterion.id] = reason
        if score is None:
            notes.append(f"{criterion.id}: no score")
            continue
        (outcome,) = sitting.check.sides
        scores.append(CriterionScore(debater=outcome, criterion=criterion.id, score=score))
        if score != criterion.clamp(score):
            notes.append(f"{criterion.id}: {score} became {criterion.clamp(score):g}")
    verdict: Verdict = {**sitting.check.score_verdict(scores, reply), "notes": notes}
    return Evaluation(evaluator, verdict, said["strengths"], said["weaknesses"], reasons)


def averages(evaluations: Sequence[Evaluation]) -> Averages:
    """Average what several evaluators gave one outcome."""
    verdicts = [each.verdict for each in evaluations if each.verdict["status"] == "ok"]
    judged = [verdict for verdict in verdicts if not verdict.get("placeholder")]
    means = {key: one["score"] for of in mean_scores_of(judged).values() for key, one in of.items()}
    rounded = {key: round(mean, 2) for key, mean in means.items()}
    criteria = evaluation_rubric().criteria
    return Averages(scores={each.id: rounded.get(each.id) for each in criteria}, evaluators=len(verdicts))


def evaluation_view(subject: Subject, evaluator: Evaluator, budget: int, count: TokenCounter) -> View:
    """Assemble an evaluator's prompt within `budget`; the longest parts are cut in their middle."""
    text = evaluator.system_prompt or SYSTEM.render()
    system = cut_message({"role": "system", "content": text}, int(budget * SYSTEM_SHARE), count)
    tail = Block("tail", {"role": "user", "content": ASK.render()}, label="what is asked")
    pieces = _pieces(subject, evaluator.user_prompt)
    blocks = with_pieces([Block("system", system, label="evaluator")], pieces, tail, budget, count)
    return fit(blocks, budget, count)


def _pieces(subject: Subject, own: str) -> list[Block]:
    """Return the material under headings, or as the evaluator's `own` prompt lays it out."""
    if own:
        values = {
            "problem": subject.problem,
            "clarifications": subject.clarifications or "(none)",
            "final_solution": subject.solution,
            "requirements_info": subject.requirements or "(none)",
        }
        # In one pass: what a prompt is filled with is never read as a template.
        text = re.sub(rf"\{{({'|'.join(values)})\}}", lambda match: values[match[1]], own)
        return [Block("messages", {"role": "user", "content": text}, label="evaluator's own prompt")]
    parts = {
        "Problem": subject.problem,
        "Clarifications": subject.clarifications,
        "Solution": subject.solution,
        "Found unmet by the judge of the debate": subject.requirements,
    }
    return [
        Block("messages", {"role": "user", "content": f"# {heading}\n{text}"}, label=heading.lower())
        for heading, text in parts.items()
        if text.strip()
    ]

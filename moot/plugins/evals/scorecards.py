"""Scores of finished debates by a rubric: scorecards, their files, and their calculation."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import floor, isfinite
from pathlib import Path
from typing import Annotated, Any

import pydantic
from typing_extensions import TypedDict

from moot.calls.model_calls import CallGenerator, Prompt, Reply
from moot.config import (
    DebateConfig,
    boundary,
    config_files,
    debate_config,
    model_settings,
    participants,
    slug,
)
from moot.config.rubrics import Criterion, Rubric, shipped_rubrics
from moot.judging.panel import mean_scores_of
from moot.judging.response_check import JudgeRequest, ResponseCheck
from moot.judging.response_schema import CriterionScore
from moot.plugins.evals.subjects import Subject
from moot.plugins.importing.dialectic import PROVIDERS
from moot.prompts.request import ModelParams, make_call
from moot.prompts.templates import break_fence, fenced, load_prompt_template, system_message
from moot.prompts.truncation import Block, cut_message, truncate_blocks, truncate_by_priority
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state import settings as environment
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError, file_error_reason
from moot.state.verdict import Verdict
from moot.text.plain_text import break_template_tokens
from moot.text.tokens import TokenCounter

MISSING = "N/A"


@dataclass(frozen=True)
class Scorecard:
    """All evaluations of one debate's result, with their mean scores."""

    name: str
    averages: Averages
    evaluations: list[Evaluation]

    def to_json(self) -> JsonObject:
        """Return the debate's mean scores and each evaluator's scores as JSON data."""
        evaluators = [_evaluator_row(each) for each in self.evaluations]
        return {"debate": self.name, "scores": self.averages["scores"], "evaluators": evaluators}


def _evaluator_row(evaluation: Evaluation) -> JsonObject:
    verdict = evaluation.verdict
    return {
        "id": evaluation.evaluator.id,
        "name": evaluation.name,
        "model": verdict["model"],
        "error": verdict["error"] if verdict["status"] == "failed" else "",
        "placeholder": bool(verdict.get("placeholder")),
        "scores": {
            key: {"score": evaluation.score(key), "reasoning": reason}
            for key, reason in evaluation.reasons.items()
        },
        "strengths": evaluation.strengths,
        "weaknesses": evaluation.weaknesses,
        "notes": verdict["notes"],
    }


def evaluate_subjects(
    subjects: Sequence[Subject],
    evaluators: Sequence[Evaluator],
    config: DebateConfig,
    environment: Environment,
) -> list[Scorecard]:
    """Evaluate every subject with every evaluator.

    Return one scorecard per subject. At most `limits.concurrency` calls run at the same time.

    Raises:
        ConfigError: The model of an evaluator cannot be used.
        InputError: There are no subjects or no evaluators.
    """
    if not subjects or not evaluators:
        raise InputError("nothing to evaluate" if evaluators else "no evaluator: use --evaluator or --config")
    for evaluator in evaluators:
        environment.models_of(boundary.Permissions.of_operator(evaluator.own(config))).check(
            [evaluator.model]
        )

    limit = asyncio.Semaphore(config.limits.concurrency)

    async def score(evaluator: Evaluator) -> list[Evaluation]:
        own_config = evaluator.own(config)
        flow = evaluate(
            subjects, evaluator, own_config, environment.token_counter_for(own_config, evaluator.model)
        )
        handler = EffectHandler(
            environment, boundary.Permissions.of_operator(own_config), JournalPosition(), limit=limit
        )
        return await run_generator(flow, handler.handle)

    async def score_all() -> list[list[Evaluation]]:
        return list(await asyncio.gather(*map(score, evaluators)))

    by_subject = zip(*call_from_sync(score_all), strict=True)
    return [
        Scorecard(subject.name, averages(evaluations), list(evaluations))
        for subject, evaluations in zip(subjects, by_subject, strict=True)
    ]


def to_json(cards: Sequence[Scorecard]) -> JsonObject:
    """Return the scorecards as JSON data, with one row per debate."""
    return {"debates": [card.to_json() for card in cards]}


def header() -> tuple[str, ...]:
    """Return the column headings of a score table, which are `debate` and the name of each criterion."""
    return ("debate", *(criterion.name.title() for criterion in evaluation_rubric().criteria))


def figures(card: Scorecard, missing: str = MISSING) -> list[str]:
    """Return a debate's mean scores as table cells.

    A missing score becomes `missing`.
    """
    return [missing if mean is None else f"{mean:.2f}" for mean in card.averages["scores"].values()]


def to_csv(cards: Sequence[Scorecard], *, heading: bool = True) -> str:
    """Return the scores as CSV, with one row per debate and empty cells for missing scores."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    if heading:
        writer.writerow(header())
    for card in cards:
        name = " ".join(card.name.split())
        # The quote prevents spreadsheets from reading the name as a formula.
        cell = f"'{name}" if name[:1] in ("=", "+", "-", "@") else name
        writer.writerow([cell, *figures(card, "")])
    return output.getvalue()


class _Agent(pydantic.BaseModel, coerce_numbers_to_str=True):
    """Settings of one evaluator in a configuration file of the program dialectic."""

    model: str = pydantic.Field(pattern=r"\S")
    """Name of the evaluator's model."""
    id: str | None = None
    name: str | None = None
    provider: str | None = None
    timeout: float | None = pydantic.Field(default=None, gt=0)
    """Timeout of the evaluator's calls in milliseconds."""
    systemPromptPath: str | None = None
    userPromptPath: str | None = None


def evaluators_named(models: Sequence[str], used_ids: Collection[str] = ()) -> tuple[Evaluator, ...]:
    """Return an evaluator with a new id for each model.

    A model may occur twice.
    """
    evaluators: dict[str, Evaluator] = {}
    for model in models:
        evaluator_id = participants.unique_slug(slug(model) or "evaluator", {*evaluators, *used_ids})
        evaluators[evaluator_id] = Evaluator(evaluator_id, model, model)
    return tuple(evaluators.values())


def read_evaluators(path: Path) -> tuple[Evaluator, ...]:
    """Return the evaluators that a configuration file lists under `agents` or `evaluators`.

    Further keys are `enabled` (false skips the evaluator), `systemPromptPath` and `userPromptPath` (relative
    to the file), and `timeout` (milliseconds). `provider` is `openai` or `openrouter`; `OPENAI_BASE_URL`
    overrides its address.

    Raises:
        ConfigError: The file cannot be read, or enables no evaluator. The message names the key.
    """
    data = config_files.load_config(path)
    rows = data.get("agents", data.get("evaluators"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(
            f"{str(path)!r} has no list of agents: add the key `agents` with a list of mappings that contain "
            "`id`, `name`, `model` and `provider`"
        )
    enabled = [row for row in rows if row.get("enabled", True) is not False]
    if not enabled:
        raise ConfigError(f"{str(path)!r} enables no evaluator")
    evaluators = tuple(_evaluator(row, number, path) for number, row in enumerate(enabled))
    ids = [each.id for each in evaluators]
    if len(set(ids)) < len(ids):
        raise ConfigError(
            f"{str(path)!r}: the evaluator ids {ids} are not unique: give each evaluator a different id"
        )
    return evaluators


def _evaluator(row: object, number: int, path: Path) -> Evaluator:
    try:
        agent = _Agent.model_validate(row)
    except pydantic.ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        hints = {"model": "set the name of the model", "timeout": "set milliseconds above 0"}
        advice = hints.get(key, error.errors()[0]["msg"])
        raise ConfigError(f"{str(path)!r}: agents[{number}].{key}: {advice}") from error
    has_own_server = environment.variable("OPENAI_BASE_URL") is not None
    provider_settings = {} if has_own_server else PROVIDERS.get((agent.provider or "").lower(), {})
    timeout = {"timeout_s": agent.timeout / 1000} if agent.timeout else {}
    id_ = agent.id or f"evaluator-{number + 1}"
    return Evaluator(
        id_,
        agent.model,
        agent.name or id_,
        system_prompt=_prompt(agent.systemPromptPath, "systemPromptPath", path),
        user_prompt=_prompt(agent.userPromptPath, "userPromptPath", path),
        settings=model_settings.ModelSettings.model_validate({**provider_settings, **timeout}),
    )


def _prompt(prompt_path: str | None, key: str, path: Path) -> str:
    try:
        return (path.parent / prompt_path).read_text(encoding="utf-8") if prompt_path else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: cannot read {prompt_path!r}: {file_error_reason(error)}") from error


SYSTEM = load_prompt_template("evaluator")
ASK = load_prompt_template("evaluate")

OVERALL = Criterion(
    id="overall_score", name="Overall score", description="Overall score as an integer from 1 to 10."
)
TEMPERATURE = 0.1
"""Sampling temperature of evaluator models. It is low for repeatable scores, and above 0 for varied
wording."""
REPLY_TOKENS = 2500
SYSTEM_SHARE = 0.25
"""Maximum share of the prompt budget for an evaluator's own system prompt."""


@dataclass(frozen=True)
class Evaluator:
    """A model that scores the results of debates."""

    id: str
    model: str
    name: str = ""
    system_prompt: str = ""
    """Custom system prompt that replaces the evaluator's built-in system prompt."""
    user_prompt: str = ""
    """Custom template that replaces the evaluator's built-in user prompt.

    Placeholders: `{problem}`, `{clarifications}`, `{final_solution}` and `{requirements_info}`.
    """
    settings: model_settings.ModelSettings | None = None
    """Model settings for this evaluator, or `None` to use those of the configuration."""

    def own(self, config: DebateConfig) -> DebateConfig:
        """Return a copy of `config` with the evaluator's own model settings."""
        models = {**config.models, **({self.model: self.settings} if self.settings else {})}
        return config.model_copy(update={"models": models})


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
    """The evaluator's reasons for the scores, keyed by criterion id."""

    @property
    def name(self) -> str:
        """Name of the evaluator for display."""
        return self.evaluator.name or self.evaluator.id

    def score(self, criterion: str) -> int | None:
        """Return the evaluator's score for a criterion, or `None` if the evaluator gave none."""
        for records in self.verdict["scores"].values():
            if criterion in records:
                return int(records[criterion]["score"])
        return None


class Averages(TypedDict):
    """Mean scores that several evaluators gave to one debate result.

    A missing mean is `None`. The means leave out placeholder verdicts, but `evaluators` counts them.
    """

    scores: dict[str, float | None]
    """Mean score for each criterion, keyed by criterion id, with the overall score last."""
    evaluators: int
    """Number of evaluators that returned a valid evaluation."""


def _number(value: object) -> int | None:
    """Round a value to a whole number, or return `None` if it is not a number.

    A reply with "N/A" is therefore not retried.
    """
    try:
        number = float(str(value))
    except ValueError:
        return None
    return floor(number + 0.5) if isfinite(number) else None


_SCALE = {"type": "integer", "minimum": int(OVERALL.scale_min), "maximum": int(OVERALL.scale_max)}
Whole = Annotated[
    int | None,
    pydantic.BeforeValidator(_number),
    pydantic.WithJsonSchema({"anyOf": [_SCALE, {"type": "null"}]}),
]


class Appraisal(pydantic.BaseModel):
    """Score for one criterion, preceded by the reasoning for it."""

    reasoning: str = pydantic.Field(
        "",
        description="Reason for the score in one or two sentences, including what the evaluated result "
        "lacks.",
    )
    score: Whole = pydantic.Field(
        None, description="Score from 1 to 10 as an integer. Use null only if the criterion cannot be judged."
    )


@cache
def evaluation_rubric() -> Rubric:
    """Return the rubric that evaluators use."""
    design = shipped_rubrics()["design"]
    return Rubric(name=design.name, criteria=(*design.criteria, OVERALL))


@cache
def evaluator_schema() -> type[pydantic.BaseModel]:
    """Return the schema of an evaluator's reply with one field per criterion."""
    *criteria, overall = evaluation_rubric().criteria
    fields: dict[str, Any] = {
        each.id: (Appraisal, pydantic.Field(description=each.description)) for each in criteria
    }
    fields["strengths"] = (
        str,
        pydantic.Field(description="Strongest points of the solution, in a few words each."),
    )
    fields["weaknesses"] = (
        str,
        pydantic.Field(description="Weakest points of the solution, in a few words each."),
    )
    fields[overall.id] = (Whole, pydantic.Field(None, description=overall.description))
    doc = "An evaluator's scores and remarks for one result."
    return pydantic.create_model("EvaluatorOpinion", __base__=_EvaluatorReply, __doc__=doc, **fields)


class _EvaluatorReply(pydantic.BaseModel):
    """Reply of an evaluator, which may also have the nested form that prompts of dialectic request."""

    @classmethod
    def flattened(cls, data: dict[str, object]) -> dict[str, object]:
        """Return the data of a reply with one key per field."""
        scores = data.get("evaluation")
        if not isinstance(scores, dict):
            return data
        nested = scores.get("non_functional")
        summary = data.get("overall_summary")
        parts = [part for part in (scores, nested, summary) if isinstance(part, dict)]
        flat = {key: value for part in parts for key, value in part.items()}
        # These prompts say to omit a score that cannot be given.
        missing: dict[str, object] = {
            key: "" if each.annotation is str else {} for key, each in cls.model_fields.items()
        }
        return missing | {OVERALL.id: None} | flat


def evaluate(
    subjects: Sequence[Subject], evaluator: Evaluator, config: DebateConfig, count: TokenCounter
) -> CallGenerator[list[Evaluation]]:
    """Return the evaluations of all subjects by one evaluator. A failed evaluation records its error."""
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
    opinion, scores, notes, reasons = response.model_dump(), [], [], {}
    for criterion in request.check.rubric.criteria:
        value = opinion[criterion.id]
        score, reason = (value, "") if criterion == OVERALL else (value["score"], value["reasoning"])
        reasons[criterion.id] = reason
        if score is None:
            if not reply.placeholder:
                notes.append(f"{criterion.id}: no score")
            continue
        (side,) = request.check.sides
        scores.append(CriterionScore(debater=side, criterion=criterion.id, score=score))
        if score != criterion.clamp(score):
            notes.append(f"{criterion.id}: {score} became {criterion.clamp(score):g}")
    verdict: Verdict = {**request.check.score_verdict(scores, reply), "notes": notes}
    return Evaluation(evaluator, verdict, opinion["strengths"], opinion["weaknesses"], reasons)


def averages(evaluations: Sequence[Evaluation]) -> Averages:
    """Average the scores that several evaluators gave to one debate result."""
    verdicts = [each.verdict for each in evaluations if each.verdict["status"] == "ok"]
    real_verdicts = [verdict for verdict in verdicts if not verdict.get("placeholder")]
    means = {
        key: record["score"]
        for records in mean_scores_of(real_verdicts).values()
        for key, record in records.items()
    }
    rounded = {key: round(mean, 2) for key, mean in means.items()}
    criteria = evaluation_rubric().criteria
    return Averages(scores={each.id: rounded.get(each.id) for each in criteria}, evaluators=len(verdicts))


def evaluation_prompt(subject: Subject, evaluator: Evaluator, budget: int, count: TokenCounter) -> Prompt:
    """Return an evaluator's prompt of at most `budget` tokens.

    The longest sections are truncated in the middle.
    """
    text = evaluator.system_prompt or SYSTEM.render()
    fence = debate_config.fence_for(subject.problem, subject.solution)
    system = cut_message(
        system_message(break_fence(break_template_tokens(text), fence), fence),
        int(budget * SYSTEM_SHARE),
        count,
    )
    turn_suffix = Block("turn_suffix", {"role": "user", "content": ASK.render()}, label="instruction")
    chunks = _chunks(subject, evaluator.user_prompt, fence)
    blocks = truncate_by_priority(
        [Block("system", system, label="evaluator")], chunks, turn_suffix, budget, count
    )
    return truncate_blocks(blocks, budget, count)


def _chunks(subject: Subject, user_prompt: str, fence: str) -> list[Block]:
    """Return the prompt blocks with the problem, the requirements and the solution."""
    if user_prompt:
        values = {
            "problem": subject.problem,
            "clarifications": subject.clarifications or "(none)",
            "final_solution": subject.solution,
            "requirements_info": subject.requirements or "(none)",
        }
        # One pass, so that placeholders inside the inserted values are not replaced.
        text = re.sub(
            rf"\{{({'|'.join(values)})\}}",
            lambda match: fenced(values[match[1]], fence),
            break_template_tokens(user_prompt),
        )
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

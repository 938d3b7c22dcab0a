"""Scorecards of finished debates, and the files that they are read from and written to."""

import asyncio
import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from moot.configuration.dialectic import PROVIDERS
from moot.evals.rubric_scoring import (
    Averages,
    Evaluation,
    Evaluator,
    Subject,
    averages,
    evaluate,
    evaluation_rubric,
)
from moot.importing import parse_transcript
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition, run_generator
from moot.state import settings as environment
from moot.state.config import DebateConfig, slug
from moot.state.config.boundary import Permissions
from moot.state.config.config_files import load_config
from moot.state.config.model_settings import ModelSettings
from moot.state.config.participants import unique_slug
from moot.state.entries import JsonObject, traits_of
from moot.state.errors import ConfigError, InputError
from moot.state.verdict import PanelVerdict

MISSING = "N/A"


@dataclass(frozen=True)
class Scorecard:
    """All evaluations of one debate's result, with their mean scores."""

    name: str
    averages: Averages
    evaluations: list[Evaluation]

    def to_json(self) -> JsonObject:
        """Return the mean scores and each evaluator's scores as JSON data."""
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
            key: {"score": evaluation.score(key), "reasoning": why} for key, why in evaluation.reasons.items()
        },
        "strengths": evaluation.strengths,
        "weaknesses": evaluation.weaknesses,
        "notes": verdict["notes"],
    }


def subject_of_document(document: Mapping[str, Any], *, name: str = "", problem: str = "") -> Subject:
    """Return the result of a `moot.debate/1` document as a subject for evaluation.

    Without a solution, the last message of each debater is evaluated.

    Raises:
        InputError: The debate has no messages.
    """
    transcript = document.get("transcript") or []
    verdict = cast(PanelVerdict, document.get("verdict") or {})
    names = {debater["id"]: debater["name"] for debater in (document.get("config") or {}).get("debaters", [])}
    context = [entry["content"] for entry in transcript if traits_of(entry).user_input == "document"]
    asked = [entry for entry in transcript if traits_of(entry).user_input == "answer"]
    argued = [entry for entry in transcript if traits_of(entry).argues]
    last = _last_messages([(entry["speaker"], entry["content"]) for entry in argued], names)
    solution = document.get("solution") or verdict.get("solution_markdown") or last
    if not solution.strip():
        raise InputError(f"debate {name or document.get('name')!r}: the debate has no messages to evaluate")
    unmet = [
        f"- {item['text']}{' (major)' * item['major']}" for item in verdict.get("unmet_requirements") or []
    ]
    return Subject(
        name=name or str(document.get("name") or document.get("id") or "debate"),
        problem=problem or "\n\n".join([str(document.get("topic") or ""), *context]),
        solution=solution,
        clarifications="\n".join(f"{entry['speaker']}: {entry['content']}" for entry in asked),
        requirements="\n".join(unmet),
        models=frozenset(str(entry.get("model") or "") for entry in argued),
    )


def _last_messages(said: Iterable[tuple[str, str]], names: Mapping[str, str]) -> str:
    last = {who: words for who, words in said if not names or who in names}
    if not last:
        return ""
    parts = [f"## {names.get(who, who)}\n{words}" for who, words in last.items()]
    return "\n\n".join(["The debate has no solution. The last message of each debater:", *parts])


def read_subject(path: Path, *, problem: str = "") -> Subject:
    """Read a result to evaluate from the file of a debate or transcript.

    Raises:
        InputError: The file cannot be read, or has no problem or no result.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read debate {str(path)!r}: {error}") from error
    subject = _dialectic_subject(text, path, problem) if path.suffix.lower() == ".json" else None
    if subject is None:
        try:
            imported = parse_transcript(text, filename=path.name)
        except InputError as error:
            raise InputError(f"{str(path)!r}: {error}") from error
        if imported.document is not None:
            subject = subject_of_document(imported.document, name=path.stem, problem=problem)
        else:
            names = {speaker.id: speaker.name for speaker in imported.speakers}
            said = [(each.speaker, each.content) for each in imported.messages if each.kind == "speech"]
            solution = imported.solution or _last_messages(said, names)
            subject = Subject(path.stem, problem or imported.topic, solution)
    if not subject.problem.strip():
        raise InputError(f"{str(path)!r} has no problem: give one with --problem")
    return subject


class _Clarification(BaseModel):
    question: str = ""
    answer: str = "NA"


class _AgentQuestions(BaseModel):
    agentName: str = ""
    items: list[_Clarification] = []


class _Solution(BaseModel):
    description: str = ""
    tradeoffs: list[str] = []
    recommendations: list[str] = []
    unfulfilledMajorRequirements: list[str] = []


class _DialecticDebate(BaseModel):
    """Keys of a dialectic debate file that this module reads."""

    problem: str
    rounds: list[object]
    clarifications: list[_AgentQuestions] = []
    finalSolution: _Solution | None = None


def _dialectic_subject(text: str, path: Path, problem: str) -> Subject | None:
    """Return the result of a dialectic debate, or `None` if the text has another format."""
    try:
        debate = _DialecticDebate.model_validate_json(text)
    except ValidationError:
        return None
    final = debate.finalSolution or _Solution()
    parts = [final.description.strip()]
    if not parts[0]:
        raise InputError(f"{str(path)!r} has no finalSolution.description: the debate is not finished")
    for heading, listed in (("Tradeoffs", final.tradeoffs), ("Recommendations", final.recommendations)):
        if listed:
            parts.append(f"## {heading}\n" + "\n".join(f"- {item}" for item in listed))
    asked = [
        f"{group.agentName} asked: {item.question}\nAnswer: {item.answer}"
        for group in debate.clarifications
        for item in group.items
    ]
    return Subject(
        name=path.stem,
        problem=problem or debate.problem,
        solution="\n\n".join(parts),
        clarifications="\n".join(asked),
        requirements="\n".join(f"- {item} (major)" for item in final.unfulfilledMajorRequirements),
    )


def evaluate_subjects(
    subjects: Sequence[Subject],
    evaluators: Sequence[Evaluator],
    config: DebateConfig,
    environment: Environment,
) -> list[Scorecard]:
    """Evaluate every subject with every evaluator, and return one scorecard per subject.

    At most `limits.concurrency` calls run at the same time.

    Raises:
        ConfigError: The model of an evaluator cannot be used.
        InputError: There are no subjects or no evaluators.
    """
    if not subjects or not evaluators:
        raise InputError("nothing to evaluate" if evaluators else "no evaluator: use --evaluator or --config")
    for evaluator in evaluators:
        environment.models_of(Permissions.of_operator(evaluator.own(config))).check([evaluator.model])

    limit = asyncio.Semaphore(config.limits.concurrency)

    async def score(evaluator: Evaluator) -> list[Evaluation]:
        own = evaluator.own(config)
        flow = evaluate(subjects, evaluator, own, environment.token_counter_for(own, evaluator.model))
        answering = EffectHandler(environment, Permissions.of_operator(own), JournalPosition(), limit=limit)
        return await run_generator(flow, answering.handle)

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
    """Return the column headings of the score tables."""
    return ("debate", *(criterion.name.title() for criterion in evaluation_rubric().criteria))


def figures(card: Scorecard, missing: str = MISSING) -> list[str]:
    """Return a debate's mean scores as text, one for each column of the table."""
    return [missing if mean is None else f"{mean:.2f}" for mean in card.averages["scores"].values()]


def to_csv(cards: Sequence[Scorecard], *, heading: bool = True) -> str:
    """Return the scores as CSV, with one row per debate and empty cells for missing scores."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if heading:
        writer.writerow(header())
    for card in cards:
        line = " ".join(card.name.split())
        # The quote prevents spreadsheets from reading the name as a formula.
        inert = f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
        writer.writerow([inert, *figures(card, "")])
    return out.getvalue()


class _Agent(BaseModel, coerce_numbers_to_str=True):
    """An evaluator as configured in a file of the tool dialectic."""

    model: str = Field(pattern=r"\S")
    """Name of the evaluator's model."""
    id: str | None = None
    name: str | None = None
    provider: str | None = None
    timeout: float | None = Field(default=None, gt=0)
    """Timeout of the evaluator's calls in milliseconds."""
    systemPromptPath: str | None = None
    userPromptPath: str | None = None


def evaluators_named(models: Sequence[str], taken: Collection[str] = ()) -> tuple[Evaluator, ...]:
    """Return one evaluator with a new id for each model.

    A model may occur twice.
    """
    evaluators: dict[str, Evaluator] = {}
    for model in models:
        key = unique_slug(slug(model) or "evaluator", {*evaluators, *taken})
        evaluators[key] = Evaluator(key, model, model)
    return tuple(evaluators.values())


def read_evaluators(path: Path) -> tuple[Evaluator, ...]:
    """Return the evaluators that a configuration file lists under `agents` or `evaluators`.

    Further keys are `enabled` (false skips the evaluator), `systemPromptPath` and `userPromptPath` (relative
    to the file), and `timeout` (milliseconds). `provider` is `openai` or `openrouter`; `OPENAI_BASE_URL`
    overrides its address.

    Raises:
        ConfigError: The file cannot be read, or enables no evaluator. The message names the key.
    """
    data = load_config(path)
    rows = data.get("agents", data.get("evaluators"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{str(path)!r}: add `agents`, a list of {{id, name, model, provider}}")
    enabled = [row for row in rows if row.get("enabled", True) is not False]
    if not enabled:
        raise ConfigError(f"{str(path)!r}: no evaluator is enabled")
    evaluators = tuple(_evaluator(row, number, path) for number, row in enumerate(enabled))
    ids = [each.id for each in evaluators]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{str(path)!r}: duplicate evaluator ids in {ids}")
    return evaluators


def _evaluator(row: object, number: int, path: Path) -> Evaluator:
    try:
        agent = _Agent.model_validate(row)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        wanted = {"model": "set the name of the model", "timeout": "set milliseconds above 0"}
        advice = wanted.get(key, error.errors()[0]["msg"])
        raise ConfigError(f"{str(path)!r}: agents[{number}].{key}: {advice}") from error
    own_server = environment.variable("OPENAI_BASE_URL") is not None
    reached = {} if own_server else PROVIDERS.get((agent.provider or "").lower(), {})
    timeout = {"timeout_s": agent.timeout / 1000} if agent.timeout else {}
    id_ = agent.id or f"evaluator-{number + 1}"
    return Evaluator(
        id_,
        agent.model,
        agent.name or id_,
        system_prompt=_prompt(agent.systemPromptPath, "systemPromptPath", path),
        user_prompt=_prompt(agent.userPromptPath, "userPromptPath", path),
        settings=ModelSettings.model_validate({**reached, **timeout}),
    )


def _prompt(named: str | None, key: str, path: Path) -> str:
    try:
        return (path.parent / named).read_text(encoding="utf-8") if named else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: cannot read {named!r}: {error}") from error

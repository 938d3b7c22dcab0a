"""Evaluating finished debates: what is scored, who scores, and how the results are written."""

import asyncio
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from moot.graph.importing import parse_transcript
from moot.nodes.driving.answering import Answering, JournalPlace, run_flow
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judging.evaluation import (
    OVERALL,
    Averages,
    Evaluation,
    Evaluator,
    Subject,
    averages,
    evaluate,
    evaluation_rubric,
)
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim
from moot.state.entries import kind_of
from moot.state.errors import InputError
from moot.state.verdict import Decision

MISSING = "N/A"


@dataclass(frozen=True)
class Scorecard:
    """One debate, evaluated."""

    name: str
    averages: Averages
    evaluations: list[Evaluation]

    def to_json(self) -> dict[str, object]:
        """Return it in the shape of dialectic's results, with the debate's name."""
        means = {key: {"average_score": mean} for key, mean in self.averages["scores"].items()}
        return {
            "debate": self.name,
            "evaluation": _nest(means),
            OVERALL.id: self.averages["scores"][OVERALL.id],
            "agents": {each.evaluator.id: _agent(each) for each in self.evaluations},
        }


def _agent(evaluation: Evaluation) -> dict[str, object]:
    verdict = evaluation.verdict
    about = {"name": evaluation.name, "model": verdict["model"]}
    if verdict["status"] == "failed":
        return {**about, "error": verdict["error"]}
    scores = {
        key: {"score": evaluation.score(key), "reasoning": why} for key, why in evaluation.reasons.items()
    }
    summary = {"strengths": evaluation.strengths, "weaknesses": evaluation.weaknesses}
    return {
        **about,
        **({"placeholder": True} if verdict.get("placeholder") else {}),
        "evaluation": _nest(scores),
        "overall_summary": {**summary, OVERALL.id: evaluation.score(OVERALL.id)},
        "notes": verdict["notes"],
    }


def _nest(scores: Mapping[str, object]) -> dict[str, object]:
    """Return scores as dialectic nests them: the first criterion is the functional one."""
    first, *rest, _ = (criterion.id for criterion in evaluation_rubric().criteria)
    return {first: scores[first], "non_functional": {criterion: scores[criterion] for criterion in rest}}


def subject_of_document(document: Mapping[str, Any], *, name: str = "", problem: str = "") -> Subject:
    """Return what is scored of a `moot.debate/1` document.

    Where no solution was written, the debaters' last words stand for one.

    Raises:
        InputError: nothing was said.
    """
    transcript = document.get("transcript") or []
    verdict = cast(Decision, document.get("verdict") or {})
    names = {debater["id"]: debater["name"] for debater in (document.get("config") or {}).get("debaters", [])}
    context = [entry["content"] for entry in transcript if kind_of(entry).gift == "document"]
    asked = [entry for entry in transcript if kind_of(entry).gift == "answer"]
    argued = [entry for entry in transcript if kind_of(entry).argues]
    last = _last_words([(entry["speaker"], entry["content"]) for entry in argued], names)
    solution = document.get("solution") or verdict.get("solution_markdown") or last
    if not solution.strip():
        raise InputError(f"debate {name or document.get('name')!r}: nothing was said that could be evaluated")
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


def _last_words(said: Iterable[tuple[str, str]], names: Mapping[str, str]) -> str:
    last = {who: words for who, words in said if not names or who in names}
    if not last:
        return ""
    parts = [f"## {names.get(who, who)}\n{words}" for who, words in last.items()]
    return "\n\n".join(["No solution was written. The last words of each debater:", *parts])


def read_subject(path: Path, *, problem: str = "") -> Subject:
    """Read what is scored from a file: an exported debate, dialectic's debate, or any transcript.

    Raises:
        InputError: it cannot be read, or it has no problem or no outcome.
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
            said = [(each.speaker, each.content) for each in imported.utterances]
            solution = imported.solution or _last_words(said, names)
            subject = Subject(path.stem, problem or imported.topic, solution)
    if not subject.problem.strip():
        raise InputError(f"{str(path)!r} says no problem: give one with --problem")
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
    """What is read of dialectic's debate file."""

    problem: str
    rounds: list[object]
    clarifications: list[_AgentQuestions] = []
    finalSolution: _Solution | None = None


def _dialectic_subject(text: str, path: Path, problem: str) -> Subject | None:
    """Return what is scored of dialectic's debate, `None` where the text is something else."""
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
    """Let every evaluator score every subject, `limits.concurrency` calls at the same time.

    Raises:
        ConfigError: an evaluator's model cannot be used.
        InputError: there is nothing to score, or nobody to score it.
    """
    if not subjects or not evaluators:
        raise InputError(
            "nothing to evaluate" if evaluators else "no evaluator: give --evaluator or --config"
        )
    for evaluator in evaluators:
        environment.models_of(Claim.of_operator(evaluator.own(config))).check([evaluator.model])

    limit = asyncio.Semaphore(config.limits.concurrency)

    async def score(evaluator: Evaluator) -> list[Evaluation]:
        own = evaluator.own(config)
        flow = evaluate(subjects, evaluator, own, environment.count_for(own, evaluator.model))
        answering = Answering(environment, Claim.of_operator(own), JournalPlace(), limit=limit)
        return await run_flow(flow, answering.carry_out)

    async def score_all() -> list[list[Evaluation]]:
        return list(await asyncio.gather(*map(score, evaluators)))

    by_subject = zip(*call_from_sync(score_all), strict=True)
    return [
        Scorecard(subject.name, averages(evaluations), list(evaluations))
        for subject, evaluations in zip(subjects, by_subject, strict=True)
    ]


def to_json(cards: Sequence[Scorecard]) -> Any:
    """Return one result, or a list of several."""
    return cards[0].to_json() if len(cards) == 1 else [card.to_json() for card in cards]


def header() -> tuple[str, ...]:
    """Return the heading of every table."""
    return ("debate", *(criterion.name.title() for criterion in evaluation_rubric().criteria))


def figures(card: Scorecard, missing: str = MISSING) -> list[str]:
    """Return a debate's averages in the order of the table, two decimals."""
    return [missing if mean is None else f"{mean:.2f}" for mean in card.averages["scores"].values()]


def to_csv(cards: Sequence[Scorecard], *, heading: bool = True) -> str:
    """Return a row a debate; a missing score is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if heading:
        writer.writerow(header())
    for card in cards:
        line = " ".join(card.name.split())
        # No spreadsheet must take a name for a formula.
        inert = f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
        writer.writerow([inert, *figures(card, "")])
    return out.getvalue()

"""Evaluating finished debates: what is scored, who scores, and how the results are written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.graph.importing import parse_transcript
from moot.nodes.driving.answering import Answering, Place, run_flow
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judging.evaluation import Evaluator, Subject, evaluate
from moot.nodes.judging.evaluation_criteria import CRITERIA, OVERALL_TITLE
from moot.nodes.judging.evaluation_scores import Averages, Evaluation, as_dialectic, averages
from moot.state.config import DebateConfig
from moot.state.entries import kind_of
from moot.state.errors import InputError

MISSING = "N/A"


@dataclass(frozen=True)
class Scorecard:
    """One debate, evaluated."""

    name: str
    averages: Averages
    evaluations: list[Evaluation]

    def to_json(self) -> dict[str, Any]:
        """Return it in the shape of dialectic's results, with the debate's name."""
        return {"debate": self.name, **as_dialectic(self.averages, self.evaluations)}


def subject_of_document(document: Mapping[str, Any], *, name: str = "", problem: str = "") -> Subject:
    """Return what is scored of a `moot.debate/1` document.

    Where no solution was written, the debaters' last words stand for one.

    Raises:
        InputError: nothing was said.
    """
    transcript = document.get("transcript") or []
    verdict = document.get("verdict") or {}
    context = [entry["content"] for entry in transcript if kind_of(entry).gift == "document"]
    solution = document.get("solution") or verdict.get("solution_markdown") or _last_words(document)
    if not solution.strip():
        raise InputError(f"debate {name or document.get('name')!r}: nothing was said that could be evaluated")
    asked = [entry for entry in transcript if kind_of(entry).gift == "answer"]
    unmet = [
        f"- {item['text']}{' (major)' if item.get('major') else ''}"
        for item in verdict.get("unmet_requirements") or []
    ]
    return Subject(
        name=name or str(document.get("name") or document.get("id") or "debate"),
        problem=problem or "\n\n".join([str(document.get("topic") or ""), *context]),
        solution=solution,
        clarifications="\n".join(f"{entry['speaker']}: {entry['content']}" for entry in asked),
        requirements="\n".join(unmet),
    )


def _last_words(document: Mapping[str, Any]) -> str:
    names = {d["id"]: d["name"] for d in (document.get("config") or {}).get("debaters", [])}
    last = {
        entry["speaker"]: entry["content"]
        for entry in document.get("transcript") or []
        if not names or entry["speaker"] in names
        if kind_of(entry).argues
    }
    said = [f"## {names.get(who, who)}\n{words}" for who, words in last.items()]
    return "\n\n".join(["No solution was written. The last words of each debater:", *said]) if said else ""


def read_subject(path: Path, *, problem: str = "") -> Subject:
    """Read what is scored from a file: an exported debate, dialectic's debate, or any transcript.

    Raises:
        InputError: it cannot be read, or it has no problem or no outcome.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read debate {str(path)!r}: {error}") from error
    found = _json_object(text) if path.suffix.lower() == ".json" else None
    if found is not None and isinstance(found.get("rounds"), list) and "problem" in found:
        subject = _dialectic_subject(found, path, problem)
    else:
        try:
            imported = parse_transcript(text, filename=path.name)
        except InputError as error:
            raise InputError(f"{str(path)!r}: {error}") from error
        entries = [{"speaker": one.speaker, "content": one.content} for one in imported.utterances]
        debaters = [{"id": speaker.id, "name": speaker.name} for speaker in imported.speakers]
        document = imported.document or {
            "topic": imported.topic,
            "transcript": entries,
            "solution": imported.solution,
            "config": {"debaters": debaters},
        }
        subject = subject_of_document(document, name=path.stem, problem=problem)
    if not subject.problem.strip():
        raise InputError(f"{str(path)!r} says no problem: give one with --problem")
    return subject


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _dialectic_subject(debate: Mapping[str, Any], path: Path, problem: str) -> Subject:
    final = debate.get("finalSolution")
    solution = final if isinstance(final, dict) else {}
    parts = [str(solution.get("description") or "").strip()]
    if not parts[0]:
        raise InputError(f"{str(path)!r} has no finalSolution.description: the debate is not finished")
    for key in ("tradeoffs", "recommendations"):
        if listed := solution.get(key):
            parts.append(f"## {key.capitalize()}\n" + "\n".join(f"- {item}" for item in listed))
    unmet = solution.get("unfulfilledMajorRequirements") or []
    return Subject(
        name=path.stem,
        problem=problem or str(debate["problem"]),
        solution="\n\n".join(parts),
        clarifications="\n".join(_clarifications(debate.get("clarifications") or [])),
        requirements="\n".join(f"- {item} (major)" for item in unmet),
    )


def _clarifications(groups: Sequence[Any]) -> list[str]:
    items = [
        (group.get("agentName") or "", item)
        for group in groups
        if isinstance(group, dict)
        for item in group.get("items") or []
        if isinstance(item, dict)
    ]
    return [
        f"{who} asked: {item.get('question', '')}\nAnswer: {item.get('answer', 'NA')}" for who, item in items
    ]


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
        environment.models_of(evaluator.own(config)).check([evaluator.model])
    found = call_from_sync(_evaluate, subjects, evaluators, config, environment)
    return [
        Scorecard(subject.name, averages(evaluations), evaluations)
        for subject, evaluations in zip(subjects, found, strict=True)
    ]


async def _evaluate(
    subjects: Sequence[Subject],
    evaluators: Sequence[Evaluator],
    config: DebateConfig,
    environment: Environment,
) -> list[list[Evaluation]]:
    """Return, for each subject, every evaluator's evaluation."""
    limit = asyncio.Semaphore(config.limits.concurrency)

    async def scored_by(evaluator: Evaluator) -> list[Evaluation]:
        own = evaluator.own(config)
        flow = evaluate(subjects, evaluator, own, environment.count_for(own, evaluator.model))
        return await run_flow(flow, Answering(environment, own, Place(), limit=limit))

    scored = await asyncio.gather(*map(scored_by, evaluators))
    return [list(evaluations) for evaluations in zip(*scored, strict=True)]


def to_json(cards: Sequence[Scorecard]) -> Any:
    """Return one result, or a list of several."""
    return cards[0].to_json() if len(cards) == 1 else [card.to_json() for card in cards]


HEADER = ("debate", *CRITERIA.values(), OVERALL_TITLE)


def figures(card: Scorecard, missing: str = MISSING) -> list[str]:
    """Return a debate's averages in the order of the table, two decimals."""
    values = [*card.averages["scores"].values(), card.averages["overall_score"]]
    return [missing if value is None else f"{value:.2f}" for value in values]


def to_csv(cards: Sequence[Scorecard], *, header: bool = True) -> str:
    """Return a row a debate; a missing score is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(HEADER)
    writer.writerows([_inert(card.name), *figures(card, "")] for card in cards)
    return out.getvalue()


def _inert(name: str) -> str:
    """Return a name on one line that no spreadsheet takes for a formula."""
    line = " ".join(name.split())
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


def to_markdown(cards: Sequence[Scorecard]) -> str:
    """Return a table with a row a debate."""
    rows = [HEADER, ["---"] * len(HEADER), *([_cell(card.name), *figures(card)] for card in cards)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

"""Results of finished debates that evaluators score, read from debates and from files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pydantic

from moot.importers import parse_transcript
from moot.state.entries import traits_of
from moot.state.errors import InputError, file_error_reason
from moot.state.verdict import PanelVerdict


@dataclass(frozen=True)
class Subject:
    """Debate result to evaluate, with the problem and its solution. Evaluators score it."""

    name: str
    """Name that identifies the debate result in score tables."""
    problem: str
    solution: str
    clarifications: str = ""
    """Questions asked before the debate and the user's replies, as text."""
    requirements: str = ""
    """Requirements that the result does not meet, as text. They come from the debate's judge."""
    models: frozenset[str] = frozenset({""})
    """Names of the models that the debaters use. The empty name `""` stands for a person who debates."""


def subject_of_document(document: Mapping[str, Any], *, name: str = "", problem: str = "") -> Subject:
    """Return the debate result to evaluate, taken from a `moot.debate/1` document.

    Without a solution, the last message of each debater is evaluated.

    Raises:
        InputError: The debate has no messages.
    """
    transcript = document.get("transcript") or []
    verdict = cast(PanelVerdict, document.get("verdict") or {})
    names = {debater["id"]: debater["name"] for debater in (document.get("config") or {}).get("debaters", [])}
    context = [entry["content"] for entry in transcript if traits_of(entry).user_input == "document"]
    answers = [entry for entry in transcript if traits_of(entry).user_input == "answer"]
    messages = [entry for entry in transcript if traits_of(entry).argues]
    last_messages = _last_messages([(entry["speaker"], entry["content"]) for entry in messages], names)
    solution = document.get("solution") or verdict.get("solution_markdown") or last_messages
    if not solution.strip():
        raise InputError(f"debate {name or document.get('name')!r} has no messages to evaluate")
    requirements = [
        f"- {item['text']}{' (major)' * item['major']}" for item in verdict.get("unmet_requirements") or []
    ]
    return Subject(
        name=name or str(document.get("name") or document.get("id") or "debate"),
        problem=problem or "\n\n".join([str(document.get("topic") or ""), *context]),
        solution=solution,
        clarifications="\n".join(f"{entry['speaker']}: {entry['content']}" for entry in answers),
        requirements="\n".join(requirements),
        models=frozenset(str(entry.get("model") or "") for entry in messages),
    )


def _last_messages(messages: Iterable[tuple[str, str]], names: Mapping[str, str]) -> str:
    last_messages = {speaker: text for speaker, text in messages if not names or speaker in names}
    if not last_messages:
        return ""
    parts = [f"## {names.get(speaker, speaker)}\n{text}" for speaker, text in last_messages.items()]
    return "\n\n".join(["The debate has no solution. The last message of each debater:", *parts])


def read_subject(path: Path, *, problem: str = "") -> Subject:
    """Read the debate result that evaluators will score from a debate file or transcript file.

    Raises:
        InputError: The file cannot be read, or has no problem or no result.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read debate {str(path)!r}: {file_error_reason(error)}") from error
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
            messages = [(each.speaker, each.content) for each in imported.messages if each.kind == "speech"]
            solution = imported.solution or _last_messages(messages, names)
            subject = Subject(path.stem, problem or imported.topic, solution)
    if not subject.problem.strip():
        raise InputError(f"{str(path)!r} does not state the problem that was debated: add --problem")
    return subject


class _Clarification(pydantic.BaseModel):
    question: str = ""
    answer: str = "NA"


class _AgentQuestions(pydantic.BaseModel):
    agentName: str = ""
    items: list[_Clarification] = []


class _Solution(pydantic.BaseModel):
    description: str = ""
    tradeoffs: list[str] = []
    recommendations: list[str] = []
    unfulfilledMajorRequirements: list[str] = []


class _DialecticDebate(pydantic.BaseModel):
    """Contents of a debate file written by the program dialectic.

    Only the keys that this module reads are listed.
    """

    problem: str
    rounds: list[object]
    clarifications: list[_AgentQuestions] = []
    finalSolution: _Solution | None = None


def _dialectic_subject(text: str, path: Path, problem: str) -> Subject | None:
    """Read the debate result in a file of the program dialectic.

    Return `None` for any other file.
    """
    try:
        debate = _DialecticDebate.model_validate_json(text)
    except pydantic.ValidationError:
        return None
    solution = debate.finalSolution or _Solution()
    parts = [solution.description.strip()]
    if not parts[0]:
        raise InputError(
            f"the debate in {str(path)!r} is not finished, because finalSolution.description is missing: "
            "finish the debate, and save its file again"
        )
    for heading, items in (("Tradeoffs", solution.tradeoffs), ("Recommendations", solution.recommendations)):
        if items:
            parts.append(f"## {heading}\n" + "\n".join(f"- {item}" for item in items))
    clarifications = [
        f"{group.agentName} asked: {item.question}\nAnswer: {item.answer}"
        for group in debate.clarifications
        for item in group.items
    ]
    return Subject(
        name=path.stem,
        problem=problem or debate.problem,
        solution="\n\n".join(parts),
        clarifications="\n".join(clarifications),
        requirements="\n".join(f"- {item} (major)" for item in solution.unfulfilledMajorRequirements),
    )

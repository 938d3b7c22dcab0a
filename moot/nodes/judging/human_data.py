"""Debates and consultancies that people judged: reads the NYU human debate data.

Source: Michael et al. 2023, *Debate Helps Supervise Unreliable Experts* (arXiv:2311.08702), CC-BY 4.0, one
JSON object a line. In a *debate* two experts argue for one answer each, in a *consultancy* one expert argues
for one answer; the judge, who cannot read the story, spreads a probability over the two after each round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.state.errors import InputError


@dataclass(frozen=True)
class Judgement:
    """One person's final word on one session.

    Attributes:
        judge: pseudonym.
        live: judged while it ran, with questions to the experts; else afterwards, from the transcript.
        distribution: final probability of each of the two answers.
    """

    judge: str
    live: bool
    distribution: tuple[float, float]

    @property
    def choice(self) -> int | None:
        """Index of the answer held likelier, `None` for an even split."""
        first, second = self.distribution
        return None if first == second else int(second > first)


@dataclass(frozen=True)
class Speech:
    """What an expert said.

    Attributes:
        side: index of the answer argued for.
        round: place among the turns, from 0.
    """

    side: int
    speaker: str
    round: int
    text: str


@dataclass(frozen=True)
class Session:
    """One judged debate or consultancy.

    Attributes:
        correct: index of the right answer.
        human: experts are people; else GPT-4.
        debate: two experts; else a consultancy.
        in_paper: used in the paper's analysis.
        judgements: final judgements, the live one first; none where nobody finished.
    """

    name: str
    question: str
    answers: tuple[str, str]
    correct: int
    human: bool
    debate: bool
    in_paper: bool
    speeches: tuple[Speech, ...]
    judgements: tuple[Judgement, ...]

    def probability_right(self, judgement: Judgement) -> float:
        """Return what `judgement` gives the right answer."""
        return judgement.distribution[self.correct]


def read_sessions(path: Path) -> list[Session]:
    """Read the sessions in `path`, in the file's order; blank lines are skipped.

    Raises:
        InputError: the file cannot be read, or a line is not such a session; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    return [_session(line, f"{path}:{at}") for at, line in enumerate(lines, start=1) if line.strip()]


def _session(line: str, where: str) -> Session:
    try:
        raw = json.loads(line)
        return Session(
            name=str(raw["name"]),
            question=str(raw["question"]),
            answers=_two(raw["answers"], str),
            correct=(0, 1)[raw["correct"]],
            human=bool(raw["setting"]["isHuman"]),
            debate=bool(raw["setting"]["isDebate"]),
            in_paper=bool(raw["in_paper"]),
            speeches=tuple(_speech(turn) for turn in raw["turns"] if turn["kind"] == "speech"),
            judgements=tuple(_judgements(raw)),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise InputError(f"{where}: not a human-judged debate ({detail})") from error


def _two(values: Any, kind: type[Any]) -> tuple[Any, Any]:
    first, second = values
    return kind(first), kind(second)


def _speech(turn: Mapping[str, Any]) -> Speech:
    return Speech(
        side=(0, 1)[turn["side"]],
        speaker=str(turn["speaker"]),
        round=int(turn["round"]),
        text=str(turn["text"]),
    )


def _judgements(raw: Mapping[str, Any]) -> Iterable[Judgement]:
    """The live judge's, then the later ones', of those who finished; a judge's last turn counts."""
    live = [turn for turn in raw["turns"] if turn["kind"] == "judge"]
    if live and raw.get("final"):
        yield Judgement(str(live[-1]["speaker"]), live=True, distribution=_two(raw["final"], float))
    later = {turn["speaker"]: turn["dist"] for turn in raw["turns"] if turn["kind"] == "offline"}
    for judge, distribution in later.items():
        yield Judgement(str(judge), live=False, distribution=_two(distribution, float))

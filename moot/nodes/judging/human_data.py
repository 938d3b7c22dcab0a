"""Debates and consultancies that people judged: reads the NYU human debate data.

Source: Michael et al. 2023, *Debate Helps Supervise Unreliable Experts* (arXiv:2311.08702), CC-BY 4.0, one
JSON object a line. In a *debate* two experts argue for one answer each, in a *consultancy* one expert argues
for one answer; the judge, who cannot read the story, spreads a probability over the two after each round.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from moot.state.config.config_mistakes import mistakes_in
from moot.state.errors import InputError

Distribution = tuple[float, float]
"""Probability of each of the two answers."""


@dataclass(frozen=True)
class HumanJudgement:
    """One person's final word on one session."""

    judge: str
    """Pseudonym."""
    live: bool
    """Judged while it ran, with questions to the experts; else afterwards, from the transcript."""
    distribution: Distribution

    @property
    def choice(self) -> int | None:
        """Index of the answer held likelier, `None` for an even split."""
        first, second = self.distribution
        return None if first == second else int(second > first)


class HumanTurn(BaseModel, frozen=True):
    """What an expert said, or what a judge held after a round."""

    kind: Literal["speech", "judge", "offline"]
    """By an expert, by the live judge, or by one who judged afterwards."""
    speaker: str
    side: Literal[0, 1] = 0
    """Of a speech: index of the answer argued for."""
    text: str = ""
    dist: Distribution | None = None
    """Of a judge."""


class Setting(BaseModel, frozen=True):
    """Who argued."""

    isHuman: bool
    """Experts are people; else GPT-4."""
    isDebate: bool
    """Two experts; else a consultancy."""


class Session(BaseModel, frozen=True):
    """One judged debate or consultancy, as the file has it."""

    name: str
    question: str
    answers: tuple[str, str]
    correct: Literal[0, 1]
    """Index of the right answer."""
    setting: Setting
    in_paper: bool
    """Used in the paper's analysis."""
    final: Distribution | None = None
    """Of the live judge who finished."""
    turns: tuple[HumanTurn, ...]

    @property
    def human(self) -> bool:
        """Whether the experts are people."""
        return self.setting.isHuman

    @property
    def debate(self) -> bool:
        """Whether two experts argue."""
        return self.setting.isDebate

    @cached_property
    def speeches(self) -> tuple[HumanTurn, ...]:
        """What the experts said."""
        return tuple(turn for turn in self.turns if turn.kind == "speech")

    @cached_property
    def judgements(self) -> tuple[HumanJudgement, ...]:
        """Of those who finished, the live judge first; of one who judged afterwards the last word counts."""
        live = [turn.speaker for turn in self.turns if turn.kind == "judge"]
        first = [HumanJudgement(live[-1], True, self.final)] if live and self.final else []
        later = {turn.speaker: turn.dist for turn in self.turns if turn.kind == "offline" and turn.dist}
        return (*first, *(HumanJudgement(judge, False, held) for judge, held in later.items()))

    def probability_right(self, judgement: HumanJudgement) -> float:
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
    sessions = []
    for at, line in enumerate(lines, start=1):
        try:
            sessions += [Session.model_validate_json(line)] if line.strip() else []
        except ValidationError as error:
            wrong = mistakes_in(error)[0]
            raise InputError(f"{path}:{at}: not a human-judged debate ({wrong})") from error
    return sessions

"""Judges held against people: how well they find the right answer, and how well they know it.

The data are the NYU human debates, Michael et al. 2023, *Debate Helps Supervise Unreliable Experts*
(arXiv:2311.08702), CC-BY 4.0, one JSON object a line. In a *debate* two experts argue for one answer each, in
a *consultancy* one expert argues for one answer; the judge, who cannot read the story, spreads a probability
over the two after each round.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, log2
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from moot.nodes.judging.agreement import cohen_kappa, rate_of
from moot.state.config.config_mistakes import mistakes_in
from moot.state.errors import InputError
from moot.state.verdict import Rate

PUBLISHED: Mapping[str, float] = {"debate": 0.84, "consultancy": 0.74}
"""Accuracy of human judges with human experts (Michael et al. 2023, abstract)."""
_SMALLEST = 1e-6
"""A probability of 0 for what is true would make the mean log score infinite; it counts as this."""

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


class Bin(TypedDict):
    """Judgements of about the same confidence."""

    low: float
    """Confidence from, inclusive."""
    high: float
    """To, exclusive but for the last bin."""
    n: int
    confidence: float | None
    """Mean stated confidence; `None` where `n` is 0."""
    accuracy: float | None
    """Share that was right; `None` where `n` is 0."""


class Calibration(TypedDict):
    """How good a set of probabilities of the right answer is."""

    accuracy: Rate
    """Right means more than 0.5 on the right answer: an even split is not right, as in the paper."""
    brier: float | None
    """Mean of (1 − p)², p on the right answer: 0 is best, 0.25 is a coin (Brier 1950, per answer)."""
    log_score: float | None
    """Mean of −log₂ p in bits: 0 is best, 1 is a coin."""
    ece: float | None
    """Expected calibration error over the bins (Guo et al. 2017, section 2)."""
    bins: list[Bin]
    """Equal widths of confidence from 0.5 to 1."""


class PanelAgreement(TypedDict):
    """How far a judge's choices are those of the human panels."""

    agreement: Rate
    """Over the sessions where both the judge and the panel's majority chose."""
    kappa: float | None
    undecided: int
    """Sessions left out: the judge or the panel did not decide."""


class Benchmark(TypedDict):
    """A judge measured on human-judged sessions, beside the people who judged them."""

    sessions: int
    """Sessions for which the judge gave a distribution."""
    judge: Calibration
    humans: Calibration
    """The live human judges of the same sessions."""
    panel: PanelAgreement


def calibrate(probabilities: Sequence[float], bins: int = 10) -> Calibration:
    """Score probabilities that were given to the right one of two answers.

    Raises:
        ValueError: a probability is not within 0–1, or `bins` is below 1.
    """
    if bins < 1 or not all(0 <= p <= 1 for p in probabilities):
        raise ValueError("calibration needs probabilities of 0–1 and at least one bin")
    n = len(probabilities)
    members: list[list[float]] = [[] for _ in range(bins)]
    for p in probabilities:
        members[min(int((max(p, 1 - p) - 0.5) * 2 * bins), bins - 1)].append(p)
    table = []
    for at, ps in enumerate(members):
        sure = fsum(max(p, 1 - p) for p in ps)
        # An even split is half right: it is then perfectly calibrated at 0.5.
        right = fsum(0.5 if p == 0.5 else p > 0.5 for p in ps)
        low, high = 0.5 + at / (2 * bins), 0.5 + (at + 1) / (2 * bins)
        table.append(
            Bin(
                low=low,
                high=high,
                n=len(ps),
                confidence=sure / len(ps) if ps else None,
                accuracy=right / len(ps) if ps else None,
            )
        )
    gaps = [
        row["n"] * abs(row["accuracy"] - row["confidence"])
        for row in table
        if row["accuracy"] is not None and row["confidence"] is not None
    ]
    return Calibration(
        accuracy=rate_of(sum(p > 0.5 for p in probabilities), n),
        brier=fsum((1 - p) ** 2 for p in probabilities) / n if n else None,
        log_score=fsum(-log2(max(p, _SMALLEST)) for p in probabilities) / n if n else None,
        ece=fsum(gaps) / n if n else None,
        bins=table,
    )


def human_calibration(sessions: Iterable[Session]) -> Calibration:
    """Score the live human judges of `sessions`."""
    right = [each.probability_right(word) for each in sessions for word in each.judgements if word.live]
    return calibrate(right)


def agreement_with_panel(choices: Mapping[str, int | None], sessions: Iterable[Session]) -> PanelAgreement:
    """Compare a judge's choices with the human majorities."""
    judged = [(choices[s.name], panel_choice(s)) for s in sessions if s.name in choices]
    both = [(mine, theirs) for mine, theirs in judged if mine is not None and theirs is not None]
    return PanelAgreement(
        agreement=rate_of(sum(mine == theirs for mine, theirs in both), len(both)),
        kappa=cohen_kappa([mine for mine, _ in both], [theirs for _, theirs in both]),
        undecided=len(judged) - len(both),
    )


def panel_choice(session: Session) -> int | None:
    """Return the answer that most human judges of `session` hold likelier, `None` where they are even."""
    votes = Counter(j.choice for j in session.judgements if j.choice is not None)
    return None if votes[0] == votes[1] else int(votes[1] > votes[0])


def benchmark(distributions: Mapping[str, Distribution], sessions: Iterable[Session]) -> Benchmark:
    """Measure a judge against the right answers and the people; only sessions with a distribution count."""
    judged = [session for session in sessions if session.name in distributions]
    mine = [HumanJudgement("", live=False, distribution=distributions[session.name]) for session in judged]
    right = [session.probability_right(judgement) for session, judgement in zip(judged, mine, strict=True)]
    chosen = {session.name: judgement.choice for session, judgement in zip(judged, mine, strict=True)}
    return Benchmark(
        sessions=len(judged),
        judge=calibrate(right),
        humans=human_calibration(judged),
        panel=agreement_with_panel(chosen, judged),
    )

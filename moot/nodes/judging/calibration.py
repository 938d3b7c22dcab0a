"""How well judges find the right answer, how well they know it, and how far they agree with people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum, log2
from typing import Literal

from typing_extensions import TypedDict

from moot.nodes.judging.agreement import cohen_kappa, krippendorff_alpha, rate_of
from moot.nodes.judging.human_data import Judgement, Session
from moot.state.verdict import Rate

Judges = Literal["live", "all"]
Unit = Literal["session", "question"]

PUBLISHED: Mapping[str, float] = {"debate": 0.84, "consultancy": 0.74}
"""Accuracy of human judges with human experts (Michael et al. 2023, abstract)."""
_SMALLEST = 1e-6
"""A probability of 0 for what is true would make the mean log score infinite; it counts as this."""


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


class InterJudge(TypedDict):
    """How far judges agree who judged the same."""

    units: int
    """Sessions or questions with at least two choices."""
    agreement: Rate
    """Over all pairs of judges within a unit."""
    unanimous: int
    """Units on which all agree."""
    alpha: float | None
    """Krippendorff's α, nominal."""


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
    table = _bins(probabilities, bins)
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


def human_calibration(sessions: Iterable[Session], judges: Judges = "live", bins: int = 10) -> Calibration:
    """Score the human judges of `sessions`: the live ones, or all with those who judged afterwards."""
    probabilities = [
        session.probability_right(judgement)
        for session in sessions
        for judgement in session.judgements
        if judgement.live or judges == "all"
    ]
    return calibrate(probabilities, bins)


def inter_judge(sessions: Iterable[Session], unit: Unit = "session") -> InterJudge:
    """Compare the choices of human judges on the same session, or on the same question and answers.

    Even splits are no choice. A judge who met a question in several sessions counts once, with the first.
    """
    choices = [c for c in _choices(sessions, unit) if len(c) > 1]
    pairs = [a == b for unit_choices in choices for a, b in combinations(unit_choices, 2)]
    return InterJudge(
        units=len(choices),
        agreement=rate_of(sum(pairs), len(pairs)),
        unanimous=sum(len(set(unit_choices)) == 1 for unit_choices in choices),
        alpha=krippendorff_alpha(choices),
    )


def agreement_with_panel(choices: Mapping[str, int | None], sessions: Iterable[Session]) -> PanelAgreement:
    """Compare a judge's choices with the human majorities.

    Args:
        choices: session name to answer index, `None` for a tie.
        sessions: those without a choice are left out.
    """
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


def benchmark(
    distributions: Mapping[str, tuple[float, float]], sessions: Iterable[Session], bins: int = 10
) -> Benchmark:
    """Measure a judge against the right answers and the people.

    Args:
        distributions: session name to the judge's probability of each answer; a tie is (0.5, 0.5).
        sessions: those without a distribution are left out.
        bins: of the calibration.
    """
    judged = [session for session in sessions if session.name in distributions]
    mine = [Judgement("", live=False, distribution=distributions[session.name]) for session in judged]
    right = [session.probability_right(judgement) for session, judgement in zip(judged, mine, strict=True)]
    chosen = {session.name: judgement.choice for session, judgement in zip(judged, mine, strict=True)}
    return Benchmark(
        sessions=len(judged),
        judge=calibrate(right, bins),
        humans=human_calibration(judged, bins=bins),
        panel=agreement_with_panel(chosen, judged),
    )


def _bins(probabilities: Sequence[float], bins: int) -> list[Bin]:
    members: list[list[float]] = [[] for _ in range(bins)]
    for p in probabilities:
        at = int((max(p, 1 - p) - 0.5) * 2 * bins)
        members[min(at, bins - 1)].append(p)
    return [_bin(0.5 + at / (2 * bins), 0.5 + (at + 1) / (2 * bins), ps) for at, ps in enumerate(members)]


def _bin(low: float, high: float, probabilities: Sequence[float]) -> Bin:
    n = len(probabilities)
    return Bin(
        low=low,
        high=high,
        n=n,
        confidence=fsum(max(p, 1 - p) for p in probabilities) / n if n else None,
        accuracy=fsum(_rightness(p) for p in probabilities) / n if n else None,
    )


def _rightness(p: float) -> float:
    """1 for right, 0 for wrong; half for an even split, which is then perfectly calibrated at 0.5."""
    return 0.5 if p == 0.5 else float(p > 0.5)


def _choices(sessions: Iterable[Session], unit: Unit) -> list[list[int]]:
    """Choices by unit, one a judge; for questions as places among the sorted answers."""
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for session in sessions:
        ordered = sorted(session.answers)
        key = (session.name,) if unit == "session" else (session.story, session.question, *ordered)
        of_unit = found.setdefault(key, {})
        for judgement in session.judgements:
            if judgement.choice is not None:
                answer = session.answers[judgement.choice]
                place = judgement.choice if unit == "session" else ordered.index(answer)
                of_unit.setdefault(judgement.judge, place)
    return [list(of_unit.values()) for of_unit in found.values()]

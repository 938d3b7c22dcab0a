"""How well judges find the right answer, how well they know it, and how far they agree with people."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, log2

from typing_extensions import TypedDict

from moot.nodes.judging.agreement import cohen_kappa, rate_of
from moot.nodes.judging.human_data import Distribution, HumanJudgement, Session
from moot.state.verdict import Rate

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
    table = [_bin(0.5 + at / (2 * bins), 0.5 + (at + 1) / (2 * bins), ps) for at, ps in enumerate(members)]
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


def _bin(low: float, high: float, probabilities: Sequence[float]) -> Bin:
    n = len(probabilities)
    # An even split is half right: it is then perfectly calibrated at 0.5.
    right = fsum(0.5 if p == 0.5 else p > 0.5 for p in probabilities)
    sure = fsum(max(p, 1 - p) for p in probabilities)
    return Bin(low=low, high=high, n=n, confidence=sure / n if n else None, accuracy=right / n if n else None)

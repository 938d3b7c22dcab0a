"""Feedback on decisions from people, and the Brier scores of judges and models.

Brier 1950, *Verification of Forecasts Expressed in Terms of Probability*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from typing_extensions import TypedDict

from moot.debates.stored_debate import Debate
from moot.state.entries import JsonMapping
from moot.state.errors import InputError
from moot.state.verdict import COUNT
from moot.storage.records import OUTCOMES, Feedback, Forecast, Rating


class BrierScore(TypedDict):
    """Brier score for one combination of judge and model, over all debates with feedback."""

    judge: str
    model: str
    decisions: int
    """Number of decisions for which feedback was given."""
    brier: float
    """Mean squared difference between confidence and outcome, from 0 (best) to 1 (worst)."""
    confidence: float
    """Mean stated confidence, from 0 to 100."""
    right: float
    """Percentage of decisions that turned out to be right. The rating `mixed` counts half."""


def give_feedback(debate: Debate, rating: Rating, note: str, at: str) -> Feedback:
    """Store and return a person's feedback on a debate's decision.

    Args:
        debate: the debate.
        rating: how the decision turned out.
        note: remark of the person, or `""`.
        at: time of the feedback, in UTC and ISO 8601 format.

    Raises:
        InputError: the debate has no decision that a model or a vote reached.
    """
    document = debate.document()
    verdict = document["verdict"]
    if not has_decision(document):
        raise InputError(f"debate {debate.name!r} has no decision: finish it, or judge it with `moot judge`")
    feedback = Feedback(debate.id, rating, note, verdict["decision"], tuple(_forecasts(document)), at)
    debate.session.records.follow_ups.rate(feedback)
    return feedback


def has_decision(document: JsonMapping) -> bool:
    """Return True if a model or a vote decided the debate."""
    verdict = document["verdict"]
    decided = verdict and verdict["status"] == "ok" and not verdict.get("placeholder")
    return bool(decided and verdict.get("decision"))


def _forecasts(document: JsonMapping) -> Iterable[Forecast]:
    """Yield the decision and confidence of each judge, or of the vote if there was no judge."""
    verdict = document["verdict"]
    own = [each for each in document["verdicts"] if each.get("judging") == verdict.get("judging")]
    for each in own if verdict["judge"] != COUNT and own else [verdict]:
        if each["status"] == "ok" and not each.get("placeholder") and each["confidence"] is not None:
            yield Forecast(
                judge=each["judge"],
                model=each["model"],
                decision=each["decision"],
                confidence=each["confidence"],
                agrees="options" not in verdict or each["decision"] == verdict["decision"],
            )


def brier_scores(feedback: Sequence[Feedback]) -> list[BrierScore]:
    """Return the Brier score of each combination of judge and model, best first.

    A judge that chose another option than the debate was right where the debate was wrong.
    """
    given: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for each in feedback:
        outcome = OUTCOMES[each.rating]
        for forecast in each.forecasts:
            true = outcome if forecast["agrees"] else 1.0 - outcome
            given.setdefault((forecast["judge"], forecast["model"]), []).append(
                (forecast["confidence"] / 100, true)
            )
    scores = [
        BrierScore(
            judge=judge,
            model=model,
            decisions=len(pairs),
            brier=round(fmean((sure - true) ** 2 for sure, true in pairs), 4),
            confidence=round(100 * fmean(sure for sure, _ in pairs), 1),
            right=round(100 * fmean(true for _, true in pairs), 1),
        )
        for (judge, model), pairs in given.items()
    ]
    return sorted(scores, key=lambda score: (score["brier"], score["judge"], score["model"]))

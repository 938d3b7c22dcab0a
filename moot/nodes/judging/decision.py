"""From a panel's ballots to one outcome: five decision rules, with ties that stay ties.

No rule breaks a tie by name or by the order in which judges answered: `tie` is an outcome, and every rule
gives the same outcome whatever the order of ballots and debaters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import get_args

from typing_extensions import TypedDict

from moot.state.errors import ConfigError, JudgeFailed
from moot.state.verdict import TIE, Dissent, Outcome, Rule

_CLOSE = 1e-9
"""Scores nearer than this are equal: means of the same numbers differ by rounding."""


class Ballot(TypedDict):
    """What one judge says, reduced to what the rules count."""

    judge: str
    """Slug id of the judge."""
    winner: str
    """Id of a debater, `tie` or `synthesis`."""
    scores: dict[str, float]
    """Debater to total score, in one unit for all judges; debaters without a score are missing."""
    approved: list[str]
    """Debaters good enough for this judge, for `approval`."""


def decide(ballots: Sequence[Ballot], rule: Rule = "mean") -> Outcome:
    """Apply `rule` to the `ballots`.

    - `mean`: the highest mean total score.
    - `majority`: the choice of more than half of the judges.
    - `ranked`: Borda count over the judges' rankings by score; equals share the points of their places.
    - `approval`: the debater whom most judges approve of.
    - `unanimous`: the choice of every judge.

    Raises:
        JudgeFailed: there is no ballot.
        ConfigError: there is no such rule.
    """
    if rule not in _RULES:
        raise ConfigError(f"judging.rule: {rule!r} is none of {', '.join(get_args(Rule))}")
    if not ballots:
        raise JudgeFailed("no judge returned a usable verdict, so there is nothing to decide")
    counted = _RULES[rule](ballots)
    return Outcome(
        rule=rule,
        winner=counted["winner"],
        tally=counted["tally"],
        tied=counted["tied"],
        mean_scores=mean_scores(ballots),
        dissent=_dissent(ballots, counted["winner"]),
        judges=len(ballots),
    )


def mean_scores(ballots: Iterable[Ballot]) -> dict[str, float]:
    """Return each debater's mean total over the ballots that score it, in order of ids."""
    given: dict[str, list[float]] = {}
    for ballot in ballots:
        for debater, score in ballot["scores"].items():
            given.setdefault(debater, []).append(score)
    # fsum: the mean must not depend on the order of the ballots.
    return {debater: fsum(given[debater]) / len(given[debater]) for debater in sorted(given)}


def borda_points(ballots: Sequence[Ballot]) -> dict[str, float]:
    """Return Borda points: on each ballot one for every debater ranked below, half for every equal.

    Debaters without a score on a ballot share its last place.
    """
    debaters = sorted({debater for ballot in ballots for debater in ballot["scores"]})
    points = {
        debater: [_places_below(ballot["scores"], debater, debaters) for ballot in ballots]
        for debater in debaters
    }
    return {debater: fsum(points[debater]) for debater in debaters}


class _Counted(TypedDict):
    winner: str
    tally: dict[str, float]
    tied: list[str]


def _places_below(scores: Mapping[str, float], debater: str, debaters: Sequence[str]) -> float:
    mine = scores.get(debater, float("-inf"))
    others = [scores.get(other, float("-inf")) for other in debaters if other != debater]
    return sum(0.5 if _equal(mine, other) else float(mine > other) for other in others)


def _equal(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _CLOSE


def _highest(tally: dict[str, float]) -> _Counted:
    best = max(tally.values(), default=0.0)
    leaders = sorted(name for name, value in tally.items() if _equal(value, best))
    if len(leaders) == 1:
        return _Counted(winner=leaders[0], tally=tally, tied=[])
    return _Counted(winner=TIE, tally=tally, tied=leaders)


def _at_least(ballots: Sequence[Ballot], needed: float) -> _Counted:
    """The choice with `needed` votes; `needed` is more than half, so at most one has them."""
    votes = Counter(ballot["winner"] for ballot in ballots)
    tally = {choice: float(votes[choice]) for choice in sorted(votes)}
    winner = next((choice for choice, n in tally.items() if n >= needed), TIE)
    leaders = [choice for choice, n in tally.items() if n == max(votes.values()) and choice != TIE]
    return _Counted(winner=winner, tally=tally, tied=leaders if winner == TIE and len(leaders) > 1 else [])


def _mean(ballots: Sequence[Ballot]) -> _Counted:
    return _highest(mean_scores(ballots))


def _majority(ballots: Sequence[Ballot]) -> _Counted:
    return _at_least(ballots, len(ballots) // 2 + 1)


def _ranked(ballots: Sequence[Ballot]) -> _Counted:
    return _highest(borda_points(ballots))


def _approval(ballots: Sequence[Ballot]) -> _Counted:
    approvals = Counter(debater for ballot in ballots for debater in set(ballot["approved"]))
    return _highest({debater: float(approvals[debater]) for debater in sorted(approvals)})


def _unanimous(ballots: Sequence[Ballot]) -> _Counted:
    return _at_least(ballots, len(ballots))


def _dissent(ballots: Sequence[Ballot], winner: str) -> list[Dissent]:
    others = [Dissent(judge=b["judge"], winner=b["winner"]) for b in ballots if b["winner"] != winner]
    return sorted(others, key=lambda dissent: (dissent["judge"], dissent["winner"]))


_RULES: Mapping[str, Callable[[Sequence[Ballot]], _Counted]] = {
    "mean": _mean,
    "majority": _majority,
    "ranked": _ranked,
    "approval": _approval,
    "unanimous": _unanimous,
}

"""From a panel's ballots to one outcome: a table of decision rules, with ties that stay ties.

No rule breaks a tie by name or by the order in which judges answered: `tie` is an outcome, and every rule
gives the same outcome whatever the order of ballots and debaters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import NamedTuple

from typing_extensions import TypedDict

from moot.state.errors import ConfigError, JudgeFailed
from moot.state.verdict import SYNTHESIS, TIE, Decision, Dissent, Outcome, Rule, Verdict, tenths

APPROVED = 60.0
"""Total from which a debater counts as approved of, of 100: above the middle of every scale."""
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


class _Tally(NamedTuple):
    """What a rule counted, and who is first."""

    tally: dict[str, float]
    winner: str
    tied: list[str]
    """Who shares the first place, where nobody has it alone."""


class PanelRule(NamedTuple):
    """One way to decide."""

    decides: str
    """By what, in words."""
    counts: str
    """What its tally counts, in words."""
    over: Callable[[Sequence[Ballot]], _Tally]


def decide(ballots: Sequence[Ballot], rule: Rule = "mean") -> Outcome:
    """Apply one of `RULES` to the `ballots`.

    Raises:
        JudgeFailed: there is no ballot.
        ConfigError: there is no such rule.
    """
    if rule not in RULES:
        raise ConfigError(f"judging.rule: {rule!r} is none of {', '.join(RULES)}")
    if not ballots:
        raise JudgeFailed("no judge returned a usable verdict, so there is nothing to decide")
    tally, winner, tied = RULES[rule].over(ballots)
    others = [Dissent(judge=b["judge"], winner=b["winner"]) for b in ballots if b["winner"] != winner]
    return Outcome(
        rule=rule,
        winner=winner,
        tally=tally,
        tied=tied,
        mean_scores=mean_scores(ballots),
        dissent=sorted(others, key=lambda dissent: (dissent["judge"], dissent["winner"])),
        judges=len(ballots),
    )


def ballots_of(verdicts: Iterable[Verdict]) -> list[Ballot]:
    """Return the ballots of the verdicts that did not fail; the judge's winner is approved of in any case.

    A judge whose orders of presentation contradict each other puts nobody ahead.
    """
    ballots = []
    for verdict in verdicts:
        if verdict["status"] != "ok":
            continue
        scores = dict(verdict["totals"])
        if verdict["flip"]["flipped"] and scores:
            scores = dict.fromkeys(scores, sum(scores.values()) / len(scores))
        approved = {debater for debater, total in scores.items() if total >= APPROVED}
        winner = verdict["winner"]
        approved |= {winner} - {TIE, SYNTHESIS}
        ballots.append(
            Ballot(judge=verdict["judge"], winner=winner, scores=scores, approved=sorted(approved))
        )
    return ballots


def winning_side(decision: Decision, verdicts: Sequence[Verdict], sides: Mapping[str, str]) -> str:
    """Return the side that a panel's judgement comes to, by the panel's own rule; `tie` for none."""
    own = [verdict for verdict in verdicts if verdict.get("judging") == decision.get("judging")]
    ballots = ballots_of(verdict_on_sides(verdict, sides) for verdict in own)
    winner = decide(ballots, decision["outcome"]["rule"])["winner"] if ballots else ""
    named = winner or sides.get(decision["winner"], TIE)
    return named if named in sides.values() else TIE


def verdict_on_sides(verdict: Verdict, sides: Mapping[str, str]) -> Verdict:
    """Return a verdict as if it had been given on sides; a side's total is the mean of its members'."""
    named = [sides.get(winner, winner) for winner in verdict["flip"]["winners"]]
    agreed = len(set(named)) == 1
    members = {side: [who for who in verdict["totals"] if sides.get(who) == side] for side in sides.values()}
    flipped = None if verdict["flip"]["flipped"] is None else not agreed
    return {
        **verdict,
        "winner": named[0] if agreed else TIE,
        "totals": {side: fmean(verdict["totals"][who] for who in of) for side, of in members.items() if of},
        "flip": {**verdict["flip"], "winners": named, "flipped": flipped},
    }


def mean_scores(ballots: Iterable[Ballot]) -> dict[str, float]:
    """Return each debater's mean total over the ballots that score it, in order of ids."""
    given: dict[str, list[float]] = {}
    for ballot in ballots:
        for debater, score in ballot["scores"].items():
            given.setdefault(debater, []).append(score)
    # fsum: the mean must not depend on the order of the ballots.
    return {debater: tenths(fsum(given[debater]) / len(given[debater])) for debater in sorted(given)}


def borda_points(ballots: Sequence[Ballot]) -> dict[str, float]:
    """Return Borda points: on each ballot one for every debater ranked below, half for every equal.

    Debaters without a score on a ballot share its last place.
    """

    def points(scores: Mapping[str, float], debater: str) -> float:
        mine = scores.get(debater, float("-inf"))
        others = [scores.get(other, float("-inf")) for other in debaters if other != debater]
        return sum(0.5 if equal_scores(mine, other) else float(mine > other) for other in others)

    debaters = sorted({debater for ballot in ballots for debater in ballot["scores"]})
    return {debater: fsum(points(ballot["scores"], debater) for ballot in ballots) for debater in debaters}


def equal_scores(a: float, b: float) -> bool:
    """Return whether two scores are one but for rounding."""
    return a == b or abs(a - b) <= _CLOSE


def _highest(tally: dict[str, float]) -> _Tally:
    best = max(tally.values(), default=0.0)
    leaders = sorted(name for name, value in tally.items() if equal_scores(value, best))
    return _Tally(tally, leaders[0], []) if len(leaders) == 1 else _Tally(tally, TIE, leaders)


def _votes(choices: Iterable[str]) -> dict[str, float]:
    votes = Counter(choices)
    return {choice: float(votes[choice]) for choice in sorted(votes)}


def _at_least(ballots: Sequence[Ballot], needed: float) -> _Tally:
    """The choice with `needed` votes; `needed` is more than half, so at most one has them."""
    tally = _votes(ballot["winner"] for ballot in ballots)
    winner = next((choice for choice, n in tally.items() if n >= needed), TIE)
    leaders = [choice for choice, n in tally.items() if n == max(tally.values()) and choice != TIE]
    return _Tally(tally, winner, leaders if winner == TIE and len(leaders) > 1 else [])


RULES: Mapping[str, PanelRule] = {
    "mean": PanelRule(
        "highest mean total score", "mean total score", lambda given: _highest(mean_scores(given))
    ),
    "majority": PanelRule(
        "choice of more than half of the judges", "votes", lambda given: _at_least(given, len(given) // 2 + 1)
    ),
    "ranked": PanelRule(
        "Borda count of the judges' rankings by score",
        "Borda points",
        lambda given: _highest(borda_points(given)),
    ),
    "approval": PanelRule(
        f"who most judges approve of: a total of {APPROVED:g} of 100, or their winner",
        "approvals",
        lambda given: _highest(_votes(name for ballot in given for name in set(ballot["approved"]))),
    ),
    "unanimous": PanelRule(
        "choice of every judge, else a tie", "votes", lambda given: _at_least(given, len(given))
    ),
}
"""How a panel may decide; `Rule` is the type of their names."""

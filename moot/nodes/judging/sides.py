"""Who wins among sides: a judge who names one member of a team, then another, has named the team twice."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from moot.nodes.judging.decision import ballots_of, decide
from moot.state.verdict import TIE, Decision, Verdict


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

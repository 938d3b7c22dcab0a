"""Verdicts of a panel, which combine the verdicts of several judges by a rule."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import fsum
from statistics import fmean
from typing import Any, NamedTuple, cast

from typing_extensions import TypedDict

from moot.judging import orders
from moot.judging.response_check import failed_verdict
from moot.judging.verdict_fields import combine
from moot.state import verdict as verdict_types
from moot.state.errors import ConfigError, JudgeFailed

APPROVED = 60.0
"""Minimum total score for approval of a debater, from 0 to 100. The decision rule `approval` uses it."""
_CLOSE = 1e-9
"""Maximum difference between scores that count as equal. It allows for rounding errors."""


class Ballot(TypedDict):
    """One judge's winner and total scores, used as input for decision rules."""

    judge: str
    """Id of the judge who cast the ballot."""
    winner: str
    """Id of the debater whom the judge named as winner, or `tie` or `synthesis`."""
    scores: dict[str, float]
    """Total score of each debater, from 0 to 100, keyed by debater id. Debaters without a score are
    missing."""
    approved: list[str]
    """Ids of the debaters whom the judge approves of under the rule `approval`."""


class _Tally(NamedTuple):
    """Result of a decision rule: the points or votes of each candidate, and the winner."""

    tally: dict[str, float]
    winner: str
    tied: list[str]
    """Ids of the debaters who share first place. Empty if one debater wins."""


class PanelRule(NamedTuple):
    """Rule by which a panel of judges reaches a decision."""

    decides: str
    """Phrase that says what decides the winner, for example "highest mean total score"."""
    counts: str
    """Unit in which the decision rule counts, such as "votes" or "Borda points"."""
    tally: Callable[[Sequence[Ballot]], _Tally]


def decide(ballots: Sequence[Ballot], rule: verdict_types.Rule = "mean") -> verdict_types.RuleResult:
    """Apply a decision rule from `RULES` to the ballots and return the result.

    Raises:
        JudgeFailed: there is no ballot.
        ConfigError: the rule is unknown.
    """
    if rule not in RULES:
        raise ConfigError(f"judge.rule: {rule!r} is not a decision rule: use one of {', '.join(RULES)}")
    if not ballots:
        raise JudgeFailed("no judge returned a usable verdict, so no decision can be made")
    has_scores = any(ballot["scores"] for ballot in ballots)  # judges of a solution give none
    counted_rule = rule if has_scores or rule not in ("mean", "ranked") else "majority"
    tally, winner, tied = RULES[counted_rule].tally(ballots)
    dissents = [
        verdict_types.Dissent(judge=ballot["judge"], winner=ballot["winner"])
        for ballot in ballots
        if ballot["winner"] != winner
    ]
    return verdict_types.RuleResult(
        rule=counted_rule,
        winner=winner,
        tally=tally,
        tied=tied,
        mean_scores=mean_scores(ballots),
        dissent=sorted(dissents, key=lambda dissent: (dissent["judge"], dissent["winner"])),
        judges=len(ballots),
    )


def ballots_of(verdicts: Iterable[verdict_types.Verdict]) -> list[Ballot]:
    """Return one ballot for each verdict that did not fail. Each judge approves of its own winner.

    A judge whose presentation orders contradict each other scores all debaters equally.
    """
    ballots = []
    for verdict in verdicts:
        if verdict["status"] != "ok":
            continue
        scores = dict(verdict["totals"])
        if verdict["flip"]["flipped"] and verdict["winner"] == verdict_types.TIE and scores:
            scores = dict.fromkeys(scores, sum(scores.values()) / len(scores))
        approved = {debater for debater, total in scores.items() if total >= APPROVED}
        winner = verdict["winner"]
        approved |= {winner} - {verdict_types.TIE, verdict_types.SYNTHESIS}
        ballots.append(
            Ballot(judge=verdict["judge"], winner=winner, scores=scores, approved=sorted(approved))
        )
    return ballots


def winning_side(
    decision: verdict_types.PanelVerdict, verdicts: Sequence[verdict_types.Verdict], sides: Mapping[str, str]
) -> str:
    """Return the side that wins under the panel's decision rule, or `tie` if no side wins.

    Several debaters may form one side.
    """
    run_verdicts = [verdict for verdict in verdicts if verdict.get("judging") == decision.get("judging")]
    ballots = ballots_of(verdict_on_sides(verdict, sides) for verdict in run_verdicts)
    winner = decide(ballots, decision["outcome"]["rule"])["winner"] if ballots else ""
    side = winner or sides.get(decision["winner"], verdict_types.TIE)
    return side if side in sides.values() else verdict_types.TIE


def verdict_on_sides(verdict: verdict_types.Verdict, sides: Mapping[str, str]) -> verdict_types.Verdict:
    """Return a verdict on sides instead of single debaters.

    The total of a side is the mean of its members' totals.
    """
    winners = [sides.get(winner, winner) for winner in verdict["flip"]["winners"]]
    has_one_winner = len(set(winners)) == 1
    members = {
        side: [debater for debater in verdict["totals"] if sides.get(debater) == side]
        for side in sides.values()
    }
    flipped = None if verdict["flip"]["flipped"] is None else not has_one_winner
    return {
        **verdict,
        "winner": winners[0] if has_one_winner else sides.get(verdict["winner"], verdict_types.TIE),
        "totals": {
            side: fmean(verdict["totals"][debater] for debater in debaters)
            for side, debaters in members.items()
            if debaters
        },
        "flip": {**verdict["flip"], "winners": winners, "flipped": flipped},
    }


def mean_scores(ballots: Iterable[Ballot]) -> dict[str, float]:
    """Return each debater's mean total score over the ballots that score the debater."""
    scores_by_debater: dict[str, list[float]] = {}
    for ballot in ballots:
        for debater, score in ballot["scores"].items():
            scores_by_debater.setdefault(debater, []).append(score)
    # With fsum, the mean does not depend on the order of the ballots.
    return {
        debater: verdict_types.tenths(fsum(scores_by_debater[debater]) / len(scores_by_debater[debater]))
        for debater in sorted(scores_by_debater)
    }


def borda_points(ballots: Sequence[Ballot]) -> dict[str, float]:
    """Return the Borda points of each debater.

    A ballot gives a debater one point for every debater ranked lower, and half a point for every equal one.

    Debaters without a score share the last place of a ballot.
    """

    def points(scores: Mapping[str, float], debater: str) -> float:
        mine = scores.get(debater, float("-inf"))
        others = [scores.get(other, float("-inf")) for other in debaters if other != debater]
        return sum(0.5 if equal_scores(mine, other) else float(mine > other) for other in others)

    debaters = sorted({debater for ballot in ballots for debater in ballot["scores"]})
    return {debater: fsum(points(ballot["scores"], debater) for ballot in ballots) for debater in debaters}


def equal_scores(a: float, b: float) -> bool:
    """Return True if two scores are equal except for rounding errors."""
    return a == b or abs(a - b) <= _CLOSE


def _highest(tally: dict[str, float]) -> _Tally:
    best = max(tally.values(), default=0.0)
    leaders = sorted(name for name, value in tally.items() if equal_scores(value, best))
    return _Tally(tally, leaders[0], []) if len(leaders) == 1 else _Tally(tally, verdict_types.TIE, leaders)


def _votes(choices: Iterable[str]) -> dict[str, float]:
    votes = Counter(choices)
    return {choice: float(votes[choice]) for choice in sorted(votes)}


def _at_least(ballots: Sequence[Ballot], min_votes: float) -> _Tally:
    """Count the votes, and name a winner only if it has at least `min_votes`.

    If no choice has enough votes, the tally is tied.
    """
    tally = _votes(ballot["winner"] for ballot in ballots)
    winner = next((choice for choice, votes in tally.items() if votes >= min_votes), verdict_types.TIE)
    leaders = [
        choice
        for choice, votes in tally.items()
        if votes == max(tally.values()) and choice != verdict_types.TIE
    ]
    return _Tally(tally, winner, leaders if winner == verdict_types.TIE and len(leaders) > 1 else [])


RULES: Mapping[str, PanelRule] = {
    "mean": PanelRule(
        "highest mean total score", "mean total score", lambda ballots: _highest(mean_scores(ballots))
    ),
    "majority": PanelRule(
        "choice of more than half of the judges",
        "votes",
        lambda ballots: _at_least(ballots, len(ballots) // 2 + 1),
    ),
    "ranked": PanelRule(
        "Borda count of the judges' rankings by score",
        "Borda points",
        lambda ballots: _highest(borda_points(ballots)),
    ),
    "approval": PanelRule(
        f"most approvals; a judge approves of a total score of {APPROVED:g} of 100, and of its own winner",
        "approvals",
        lambda ballots: _highest(_votes(name for ballot in ballots for name in set(ballot["approved"]))),
    ),
    "unanimous": PanelRule(
        "choice of all judges; otherwise a tie", "votes", lambda ballots: _at_least(ballots, len(ballots))
    ),
}
"""All decision rules of a panel, keyed by rule name."""


Cell = tuple[str, str]
"""Score table cell, identified by debater id and criterion id."""


def decision_of(
    verdicts: Sequence[verdict_types.Verdict],
    rule: verdict_types.Rule,
    earlier: Sequence[verdict_types.Verdict] = (),
    quorum: int | None = None,
) -> verdict_types.PanelVerdict:
    """Return the panel's combined verdict.

    The verdict includes statistics on the judges' agreement. The status of the verdict is `failed` if fewer
    than `quorum` judges gave a verdict. `None`: more than half of them are needed.

    The scores are means over all judges. Reasoning, solution and open questions come from the first judge who
    named the winner, or else from the first judge. `speaker` is the id of this judge. Placeholders count only
    if there is no other verdict.
    """
    is_single_judge = len(verdicts) == 1
    ok_verdicts = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    usable = [verdict for verdict in ok_verdicts if not verdict.get("placeholder")] or ok_verdicts
    try:
        needed = min(quorum or len(verdicts) // 2 + 1, len(verdicts))
        if 0 < len(ok_verdicts) < needed:
            judges = f"{len(ok_verdicts)} of {len(verdicts)} judges"
            raise JudgeFailed(f"only {judges} gave a verdict, and {needed} are needed")
        outcome = decide(ballots_of(usable), "majority" if is_single_judge else rule)
    except JudgeFailed as error:
        errors = "; ".join(verdict["error"] for verdict in verdicts if verdict["error"])
        failed = failed_verdict(verdict_types.PANEL, f"{error}: {errors}")
        return as_decision(failed, agreement=panel_report(verdicts, None, earlier))
    report = panel_report(verdicts, outcome, earlier)
    if is_single_judge:
        return as_decision(usable[0], outcome, report)
    agreeing_verdicts = [verdict for verdict in usable if verdict["winner"] == outcome["winner"]]
    speaker_verdict = (agreeing_verdicts or usable)[0]
    notes = [f"{verdict['judge']}: {note}" for verdict in usable for note in verdict["notes"] if note]
    if not agreeing_verdicts:
        notes.insert(0, f"No judge named this outcome. It is the result of the rule {outcome['rule']!r}.")
    combined_verdict: verdict_types.Verdict = {
        **speaker_verdict,
        "dropped_citations": sum(verdict["dropped_citations"] for verdict in usable),
        "dropped_scores": sum(verdict["dropped_scores"] for verdict in usable),
        "clamped_scores": sum(verdict["clamped_scores"] for verdict in usable),
        "judge": verdict_types.PANEL,
        "model": ", ".join(dict.fromkeys(verdict["model"] for verdict in usable)),
        "criteria": list(_criteria(usable).values()),
        "scores": orders.in_tenths(mean_scores_of(usable)),
        "totals": outcome["mean_scores"],
        "winner": outcome["winner"],
        "winner_confidence": None
        if outcome["winner"] == verdict_types.TIE
        or not agreeing_verdicts
        or speaker_verdict.get("winner_confidence") is None
        else float(
            round(sum(verdict["winner_confidence"] or 0.0 for verdict in agreeing_verdicts) / len(usable))
        ),
        "notes": notes,
        # Each judge has its own flip, and `agreement` has the flip rate of all judges.
        "flip": verdict_types.Flip(orders=[], winners=[], flipped=None),
    }
    if counts := [verdict["read"] for verdict in usable if "read" in verdict]:
        combined_verdict["read"] = min(counts, key=lambda read: read["full"])
    for field in verdict_types.VERDICT_FIELDS.values():
        if field.panel not in ("own", "speaker"):
            cast(dict[str, Any], combined_verdict)[field.name] = combine(field, usable, field.panel)
    if deciding_verdicts := [each for each in usable if "options" in each]:
        orders.merge_decisions(combined_verdict, deciding_verdicts)
    decision = as_decision(combined_verdict, outcome, report)
    decision["speaker"] = speaker_verdict["judge"]
    return decision


def as_decision(
    verdict: verdict_types.Verdict,
    outcome: verdict_types.RuleResult | None = None,
    agreement: verdict_types.PanelReport | None = None,
) -> verdict_types.PanelVerdict:
    """Convert a single verdict to the format of a panel's verdict.

    The rule's result and the judges' agreement are added if given.
    """
    decision = cast(verdict_types.PanelVerdict, verdict.copy())
    if outcome:
        decision["outcome"] = outcome
    if agreement:
        decision["agreement"] = agreement
    return decision


def mean_scores_of(verdicts: Sequence[verdict_types.Verdict]) -> orders.ScoreTable:
    """Return the mean of the judges' scores for each debater and criterion.

    Each reason starts with the judge's name. If a judge's two orders named different winners and its verdict
    is a tie, each debater gets the mean of the debaters' scores. Judges may have different rubrics: scores
    are converted to the scale of the first judge whose rubric has the criterion.
    """
    shared_scales = _criteria(verdicts)
    tables = []
    for verdict in verdicts:
        table: orders.ScoreTable = {side: {} for side in verdict["scores"]}
        for key, scale in _criteria([verdict]).items():
            low, high = scale["scale_min"], scale["scale_max"]
            bottom, top = shared_scales[key]["scale_min"], shared_scales[key]["scale_max"]
            has_other_scale = (low, high) != (bottom, top)
            records = {side: scores[key] for side, scores in verdict["scores"].items() if key in scores}
            mean_score = fmean(record["score"] for record in records.values()) if records else None
            for side, record in records.items():
                is_tied = verdict["flip"]["flipped"] and verdict["winner"] == verdict_types.TIE
                score = mean_score if mean_score is not None and is_tied else record["score"]
                score = bottom + (top - bottom) * (score - low) / (high - low) if has_other_scale else score
                reason = f"{verdict['judge']}: {record['reason']}" if record["reason"] else ""
                table[side][key] = {**record, "score": score, "reason": reason}
        tables.append(table)
    return orders.mean_table(tables)


def _criteria(verdicts: Iterable[verdict_types.Verdict]) -> dict[str, verdict_types.CriterionScale]:
    scales: dict[str, verdict_types.CriterionScale] = {}
    for verdict in verdicts:
        for scale in verdict.get("criteria", []):
            scales.setdefault(scale["id"], scale)
    return scales


def panel_report(
    verdicts: Sequence[verdict_types.Verdict],
    outcome: verdict_types.RuleResult | None,
    earlier: Sequence[verdict_types.Verdict] = (),
) -> verdict_types.PanelReport:
    """Return statistics on the agreement of a panel's judges.

    Earlier verdicts count only for flip rates.
    """
    usable = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    has_several = len(usable) > 1
    scores_by_judge: dict[str, dict[Cell, float]] = {verdict["judge"]: {} for verdict in usable}
    for verdict in usable:
        for side, records in verdict["scores"].items():
            scores_by_judge[verdict["judge"]].update(
                {(side, key): record["score"] for key, record in records.items()}
            )
    cells = dict.fromkeys(cell for scores in scores_by_judge.values() for cell in scores)
    pairs = orders.pairwise_kappa(_preferences(scores_by_judge)) if has_several else []
    kappas = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    flips = orders.flip_rate(verdict["flip"]["flipped"] for verdict in usable)
    units = [[scores.get(cell) for scores in scores_by_judge.values()] for cell in cells]
    return verdict_types.PanelReport(
        judges=len(usable),
        failed=len(verdicts) - len(usable),
        alpha=orders.krippendorff_alpha(units, "interval") if has_several else None,
        kappa=fmean(kappas) if kappas else None,
        flip_rate=flips["rate"],
        flips=flips,
        flip_rates=orders.flip_rates([*earlier, *usable]),
        pairs=pairs,
        unanimous=len({verdict["winner"] for verdict in usable}) == 1 if has_several else None,
        mean_scores=outcome["mean_scores"] if outcome else {},
        dissent=outcome["dissent"] if outcome else [],
    )


def _preferences(scores_by_judge: Mapping[str, Mapping[Cell, float]]) -> dict[str, list[orders.Mark | None]]:
    """Compare each judge's scores of two debaters, for each criterion.

    All pairs of debaters are compared. A value is `even` for equal scores, and `None` if a score is missing.
    """

    def ahead(scores: Mapping[Cell, float], one: str, other: str, key: str) -> str | None:
        mine, theirs = scores.get((one, key)), scores.get((other, key))
        if mine is None or theirs is None:
            return None
        return "even" if equal_scores(mine, theirs) else (one if mine > theirs else other)

    sides = sorted({side for scores in scores_by_judge.values() for side, _ in scores})
    criteria = dict.fromkeys(key for scores in scores_by_judge.values() for _, key in scores)
    units = [(one, other, key) for one, other in combinations(sides, 2) for key in criteria]
    return {judge: [ahead(scores, *unit) for unit in units] for judge, scores in scores_by_judge.items()}

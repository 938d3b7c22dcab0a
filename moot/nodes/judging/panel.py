"""A panel: what its rule comes to, the scores of all, the words of one who agrees, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import cast

from moot.nodes.judging.agreement import Mark, flip_rate, krippendorff_alpha, pairwise_kappa
from moot.nodes.judging.decision import ballots_of, decide, equal_scores
from moot.nodes.judging.opinion_check import failed_verdict
from moot.nodes.judging.orders import ScoreTable, flip_rates, in_tenths, mean_table
from moot.state.errors import JudgeFailed
from moot.state.verdict import PANEL, TIE, CriterionScale, Decision, Flip, Outcome, PanelReport, Rule, Verdict

Cell = tuple[str, str]
"""A side and a criterion."""


def decision_of(verdicts: Sequence[Verdict], rule: Rule, earlier: Sequence[Verdict] = ()) -> Decision:
    """Return the decision, with how far the judges agree; `failed` where every judge failed.

    A panel's has the mean scores of its judges, and the words (reasoning, solution, open questions) of the
    first judge whose choice it is, else of the first one: `speaker` says who. A placeholder counts only where
    there is nothing else: then the decision is one too.
    """
    alone = len(verdicts) == 1
    given = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    usable = [verdict for verdict in given if not verdict.get("placeholder")] or given
    try:
        outcome = decide(ballots_of(usable), "majority" if alone else rule)
    except JudgeFailed as error:
        errors = "; ".join(verdict["error"] for verdict in verdicts if verdict["error"])
        failed = failed_verdict(PANEL, f"{error}: {errors}")
        return as_decision(failed, agreement=panel_report(verdicts, None, earlier))
    report = panel_report(verdicts, outcome, earlier)
    if alone:
        return as_decision(usable[0], outcome, report)
    agreeing = [verdict for verdict in usable if verdict["winner"] == outcome["winner"]]
    speaking = (agreeing or usable)[0]
    notes = [f"{verdict['judge']}: {note}" for verdict in usable for note in verdict["notes"] if note]
    if not agreeing:
        notes.insert(0, f"No judge named this outcome: the rule {outcome['rule']!r} came to it.")
    united: Verdict = {
        **speaking,
        "dropped_citations": sum(verdict["dropped_citations"] for verdict in usable),
        "dropped_scores": sum(verdict["dropped_scores"] for verdict in usable),
        "clamped_scores": sum(verdict["clamped_scores"] for verdict in usable),
        "judge": PANEL,
        "model": ", ".join(dict.fromkeys(verdict["model"] for verdict in usable)),
        "criteria": list(_criteria(usable).values()),
        "scores": in_tenths(mean_scores_of(usable)),
        "totals": outcome["mean_scores"],
        "winner": outcome["winner"],
        "confidence": None
        if outcome["winner"] == TIE or not agreeing
        else float(round(sum(verdict["confidence"] or 0.0 for verdict in agreeing) / len(usable))),
        "notes": notes,
        # Each judge has its own; how often the order decided is in `agreement`.
        "flip": Flip(orders=[], winners=[], flipped=None),
    }
    decision = as_decision(united, outcome, report)
    decision["speaker"] = speaking["judge"]
    return decision


def as_decision(
    verdict: Verdict, outcome: Outcome | None = None, agreement: PanelReport | None = None
) -> Decision:
    """Return a verdict as the one that decides, with what it rests on where there is such a thing."""
    decision = cast(Decision, verdict.copy())
    if outcome:
        decision["outcome"] = outcome
    if agreement:
        decision["agreement"] = agreement
    return decision


def mean_scores_of(verdicts: Sequence[Verdict]) -> ScoreTable:
    """Return the mean of what judges gave, with each reason under its judge's name.

    Where a judge's orders of presentation contradict each other, all sides have its mean. Judges may have
    rubrics of their own: a score counts where it stands on the scale that the first of them has.
    """
    shared = _criteria(verdicts)
    tables = []
    for verdict in verdicts:
        table: ScoreTable = {side: {} for side in verdict["scores"]}
        for key, own in _criteria([verdict]).items():
            low, high = own["scale_min"], own["scale_max"]
            bottom, top = shared[key]["scale_min"], shared[key]["scale_max"]
            moved = (low, high) != (bottom, top)
            records = {side: of[key] for side, of in verdict["scores"].items() if key in of}
            level = fmean(record["score"] for record in records.values()) if records else None
            for side, record in records.items():
                score = level if level is not None and verdict["flip"]["flipped"] else record["score"]
                score = bottom + (top - bottom) * (score - low) / (high - low) if moved else score
                reason = f"{verdict['judge']}: {record['reason']}" if record["reason"] else ""
                table[side][key] = {**record, "score": score, "reason": reason}
        tables.append(table)
    return mean_table(tables)


def _criteria(verdicts: Iterable[Verdict]) -> dict[str, CriterionScale]:
    scales: dict[str, CriterionScale] = {}
    for verdict in verdicts:
        for scale in verdict.get("criteria", []):
            scales.setdefault(scale["id"], scale)
    return scales


def panel_report(
    verdicts: Sequence[Verdict], outcome: Outcome | None, earlier: Sequence[Verdict] = ()
) -> PanelReport:
    """Compare the verdicts of a panel; earlier ones count in the flip rates alone."""
    usable = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    several = len(usable) > 1
    given: dict[str, dict[Cell, float]] = {verdict["judge"]: {} for verdict in usable}
    for verdict in usable:
        for side, of in verdict["scores"].items():
            given[verdict["judge"]].update({(side, key): one["score"] for key, one in of.items()})
    cells = dict.fromkeys(cell for scores in given.values() for cell in scores)
    pairs = pairwise_kappa(_preferences(given)) if several else []
    kappas = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    flips = flip_rate(verdict["flip"]["flipped"] for verdict in usable)
    units = [[scores.get(cell) for scores in given.values()] for cell in cells]
    return PanelReport(
        judges=len(usable),
        failed=len(verdicts) - len(usable),
        alpha=krippendorff_alpha(units, "interval") if several else None,
        kappa=fmean(kappas) if kappas else None,
        flip_rate=flips["rate"],
        flips=flips,
        flip_rates=flip_rates([*earlier, *usable]),
        pairs=pairs,
        unanimous=len({verdict["winner"] for verdict in usable}) == 1 if several else None,
        mean_scores=outcome["mean_scores"] if outcome else {},
        dissent=outcome["dissent"] if outcome else [],
    )


def _preferences(given: Mapping[str, Mapping[Cell, float]]) -> dict[str, list[Mark | None]]:
    """Return, by judge, who is ahead of whom on each criterion."""

    def ahead(scores: Mapping[Cell, float], one: str, other: str, key: str) -> str | None:
        mine, theirs = scores.get((one, key)), scores.get((other, key))
        if mine is None or theirs is None:
            return None
        return "even" if equal_scores(mine, theirs) else (one if mine > theirs else other)

    sides = sorted({side for scores in given.values() for side, _ in scores})
    criteria = dict.fromkeys(key for scores in given.values() for _, key in scores)
    units = [(one, other, key) for one, other in combinations(sides, 2) for key in criteria]
    return {judge: [ahead(scores, *unit) for unit in units] for judge, scores in given.items()}

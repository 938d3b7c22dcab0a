"""The decision of a panel: what its rule comes to, the scores of all, and the words of one who agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from moot.nodes.judging.decision import decide
from moot.nodes.judging.opinions import ballots_of, counted_scores, failed_verdict
from moot.nodes.judging.orders import mean_score
from moot.nodes.judging.panel import panel_report
from moot.state.errors import JudgeFailed
from moot.state.verdict import (
    PANEL,
    CriterionScale,
    Decision,
    Flip,
    Outcome,
    PanelReport,
    Rule,
    ScoreRecord,
    Verdict,
)


def decision_of(verdicts: Sequence[Verdict], rule: Rule, earlier: Sequence[Verdict] = ()) -> Decision:
    """Return the decision, with how far the judges agree; `failed` where every judge failed.

    A panel's has the mean scores of its judges, and the words (reasoning, solution, open questions) of the
    first judge whose choice it is, else of the first one: `speaker` says who.

    Args:
        verdicts: one a judge, failed ones too.
        rule: how several become one.
        earlier: verdicts of earlier judgings, for the flip rates.
    """
    alone = len(verdicts) == 1
    try:
        outcome = decide(ballots_of(verdicts), "majority" if alone else rule)
    except JudgeFailed as error:
        errors = "; ".join(verdict["error"] for verdict in verdicts if verdict["error"])
        report = panel_report(verdicts, None, earlier)
        return as_decision(failed_verdict(PANEL, f"{error}: {errors}"), agreement=report)
    usable = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    report = panel_report(verdicts, outcome, earlier)
    if alone:
        return as_decision(usable[0], outcome, report)
    agreeing = [verdict for verdict in usable if verdict["winner"] == outcome["winner"]]
    speaking = (agreeing or usable)[0]
    decision = as_decision(_panel_verdict(usable, agreeing, speaking, outcome), outcome, report)
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


def _panel_verdict(
    usable: Sequence[Verdict], agreeing: Sequence[Verdict], speaking: Verdict, outcome: Outcome
) -> Verdict:
    criteria = _criteria(usable)
    return {
        **speaking,
        "dropped_citations": sum(verdict["dropped_citations"] for verdict in usable),
        "dropped_scores": sum(verdict["dropped_scores"] for verdict in usable),
        "clamped_scores": sum(verdict["clamped_scores"] for verdict in usable),
        "judge": PANEL,
        "model": ", ".join(dict.fromkeys(verdict["model"] for verdict in usable)),
        "criteria": list(criteria.values()),
        "scores": _scores(usable, criteria),
        "totals": outcome["mean_scores"],
        "winner": outcome["winner"],
        "confidence": sum(verdict["confidence"] for verdict in agreeing) / len(usable),
        "notes": _notes(usable, outcome, named=bool(agreeing)),
        # Each judge has its own; how often the order decided is in `agreement`.
        "flip": Flip(orders=[], winners=[], flipped=None),
    }


def _criteria(usable: Sequence[Verdict]) -> dict[str, CriterionScale]:
    """Return all criteria by id; judges may have rubrics of their own."""
    scales: dict[str, CriterionScale] = {}
    for verdict in usable:
        for scale in verdict.get("criteria", []):
            scales.setdefault(scale["id"], scale)
    return scales


def _scores(
    usable: Sequence[Verdict], criteria: Mapping[str, CriterionScale]
) -> dict[str, dict[str, ScoreRecord]]:
    """Return mean scores by debater and criterion, over the judges who gave one."""
    given: dict[str, dict[str, list[ScoreRecord]]] = {}
    for verdict in usable:
        own = _criteria([verdict])
        for debater, records in counted_scores(verdict).items():
            for key, record in records.items():
                score = _on_scale(record["score"], own[key], criteria[key])
                told = {**record, "score": score, "reason": _told(verdict["judge"], record["reason"])}
                given.setdefault(debater, {}).setdefault(key, []).append(told)  # type: ignore[arg-type]
    return {
        debater: {key: mean_score(records) for key, records in by_criterion.items()}
        for debater, by_criterion in given.items()
    }


def _on_scale(score: float, own: CriterionScale, shared: CriterionScale) -> float:
    """Return a score where it stands on the scale that the panel's table has for its criterion."""
    (low, high), (bottom, top) = ((each["scale_min"], each["scale_max"]) for each in (own, shared))
    return score if (low, high) == (bottom, top) else bottom + (top - bottom) * (score - low) / (high - low)


def _notes(usable: Sequence[Verdict], outcome: Outcome, *, named: bool) -> list[str]:
    notes = [_told(verdict["judge"], note) for verdict in usable for note in verdict["notes"]]
    if not named:
        notes.insert(0, f"No judge named this outcome: the rule {outcome['rule']!r} came to it.")
    return notes


def _told(judge: str, text: str) -> str:
    return f"{judge}: {text}" if text else ""

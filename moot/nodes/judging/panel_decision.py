"""The decision of a panel: what its rule comes to, the scores of all, and the words of one who agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moot.nodes.judging.decision import Outcome, Rule, decide
from moot.nodes.judging.opinions import (
    Flip,
    ScoreRecord,
    Verdict,
    ballots_of,
    counted_scores,
    failed_verdict,
)
from moot.nodes.judging.orders import mean_score
from moot.nodes.judging.panel import panel_report
from moot.nodes.judging.rubrics import CriterionScale
from moot.state.errors import JudgeFailed

PANEL = "panel"
"""Who a decision is by, where several judges sat."""

_SUMMED = ("dropped_citations", "dropped_scores", "clamped_scores")


def decision_of(verdicts: Sequence[Verdict], rule: Rule, earlier: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the decision, a `Verdict` with `outcome` and `agreement`; `failed` where every judge failed.

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
        return {**failed_verdict(PANEL, f"{error}: {errors}"), "outcome": {}, "agreement": report}
    usable = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    decided: Mapping[str, Any] = usable[0] if alone else _panel_verdict(usable, outcome)
    return {**decided, "outcome": outcome, "agreement": panel_report(verdicts, outcome, earlier)}


def _panel_verdict(usable: Sequence[Verdict], outcome: Outcome) -> dict[str, Any]:
    agreeing = [verdict for verdict in usable if verdict["winner"] == outcome["winner"]]
    speaking = agreeing[0] if agreeing else usable[0]
    criteria = _criteria(usable)
    return {
        **speaking,
        **{key: sum(verdict[key] for verdict in usable) for key in _SUMMED},  # type: ignore[literal-required]
        "judge": PANEL,
        "speaker": speaking["judge"],
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

"""How far a panel agrees: α over its scores, κ of every two judges, flip rates, mean and dissent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from moot.nodes.judging.agreement import Rating, flip_rate, krippendorff_alpha, pairwise_kappa
from moot.nodes.judging.orders import flip_rates
from moot.state.verdict import Outcome, PanelReport, Verdict

_CLOSE = 1e-9


def panel_report(
    verdicts: Sequence[Verdict], outcome: Outcome | None, earlier: Sequence[Verdict] = ()
) -> PanelReport:
    """Compare the verdicts of a panel.

    Args:
        verdicts: one a judge, failed ones too.
        outcome: what the panel decided, `None` where it could not.
        earlier: verdicts on the same debate from before, which count in the flip rates by judge.
    """
    usable = [verdict for verdict in verdicts if verdict["status"] == "ok"]
    pairs = pairwise_kappa(_preferences(usable)) if len(usable) > 1 else []
    kappas = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    flips = flip_rate(verdict["flip"]["flipped"] for verdict in usable)
    return PanelReport(
        judges=len(usable),
        failed=len(verdicts) - len(usable),
        alpha=krippendorff_alpha(_scores(usable), "interval") if len(usable) > 1 else None,
        kappa=fmean(kappas) if kappas else None,
        flip_rate=flips["rate"],
        flips=flips,
        flip_rates=flip_rates([*earlier, *usable]) or {},
        pairs=pairs,
        unanimous=len({v["winner"] for v in usable}) == 1 if len(usable) > 1 else None,
        mean_scores=outcome["mean_scores"] if outcome else {},
        dissent=outcome["dissent"] if outcome else [],
    )


def _scores(verdicts: Sequence[Verdict]) -> list[list[Rating | None]]:
    """Return one row for each debater and criterion, one column a judge."""
    cells = dict.fromkeys(
        (debater, criterion)
        for v in verdicts
        for debater, records in v["scores"].items()
        for criterion in records
    )
    return [[_score(v, debater, criterion) for v in verdicts] for debater, criterion in cells]


def _score(verdict: Verdict, debater: str, criterion: str) -> float | None:
    record = verdict["scores"].get(debater, {}).get(criterion)
    return record["score"] if record else None


def _preferences(verdicts: Sequence[Verdict]) -> Mapping[str, list[Rating | None]]:
    """Return, by judge, who is ahead of whom on each criterion."""
    debaters = sorted({debater for v in verdicts for debater in v["scores"]})
    criteria = dict.fromkeys(c for v in verdicts for records in v["scores"].values() for c in records)
    units = [(one, other, c) for one, other in combinations(debaters, 2) for c in criteria]
    return {
        verdict["judge"]: [_ahead(verdict, one, other, c) for one, other, c in units] for verdict in verdicts
    }


def _ahead(verdict: Verdict, one: str, other: str, criterion: str) -> str | None:
    mine, theirs = _score(verdict, one, criterion), _score(verdict, other, criterion)
    if mine is None or theirs is None:
        return None
    return "even" if abs(mine - theirs) <= _CLOSE else (one if mine > theirs else other)

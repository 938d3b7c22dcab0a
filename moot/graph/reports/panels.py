"""The panel behind a decision, beside those of other judgings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moot.graph.reports.cast import People
from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_number
from moot.graph.reports.verdict_view import VerdictView, read_verdict
from moot.nodes.judging.rubrics import Rubric

Raw = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """Several judges side by side."""

    verdicts: tuple[VerdictView, ...]
    """Those that the decision was made of."""
    earlier: tuple[VerdictView, ...]
    """Those of earlier judgings, the oldest first."""
    later: tuple[VerdictView, ...]
    """Those of later judgings: all failed, else the decision were theirs."""
    alpha: float | None
    flip_rate: float | None
    others: tuple[tuple[str, str], ...]
    """Further figures of agreement, as (name, value)."""


@dataclass(frozen=True)
class _Judgings:
    own: Sequence[Raw]
    earlier: Sequence[Raw]
    later: Sequence[Raw]


def read_panel(document: Raw, people: People, rubrics: dict[str, Rubric]) -> Panel:
    """Build the view of all judges' verdicts and their agreement."""
    agreement = as_dict(document.get("agreement"))
    judgings = _judgings(as_dicts(document.get("verdicts")), as_dict(document.get("verdict")), agreement)

    def views(raws: Sequence[Raw]) -> tuple[VerdictView, ...]:
        read = (read_verdict(raw, people, rubrics) for raw in raws)
        return tuple(view for view in read if view is not None)

    return Panel(
        verdicts=views(judgings.own),
        earlier=views(judgings.earlier),
        later=views(judgings.later),
        alpha=as_number(agreement.get("alpha")),
        flip_rate=as_number(agreement.get("flip_rate")),
        others=tuple(_others(agreement)),
    )


def _judgings(verdicts: Sequence[Raw], decision: Raw, agreement: Raw) -> _Judgings:
    """Tell by their numbers which verdicts the decision was made of.

    A decision from before there were numbers was made of the last verdicts that have none.
    """
    number = as_count(decision.get("judging"))
    if number:
        numbered = [(as_count(raw.get("judging")), raw) for raw in verdicts]
        return _Judgings(
            own=[raw for its, raw in numbered if its == number],
            earlier=[raw for its, raw in numbered if its < number],
            later=[raw for its, raw in numbered if its > number],
        )
    later = [raw for raw in verdicts if as_count(raw.get("judging"))] if decision else []
    old = [raw for raw in verdicts if raw not in later]
    sat = as_count(agreement.get("judges")) + as_count(agreement.get("failed"))
    first = max(0, len(old) - sat) if sat else 0
    return _Judgings(own=old[first:], earlier=old[:first], later=later)


def _others(agreement: Raw) -> list[tuple[str, str]]:
    kappa, failed = as_number(agreement.get("kappa")), as_count(agreement.get("failed"))
    unanimous = agreement.get("unanimous")
    return [
        *([("Mean of the judges’ pairwise κ", f"{kappa:.2f}")] if kappa is not None else []),
        *([("Unanimous", "yes" if unanimous else "no")] if isinstance(unanimous, bool) else []),
        *([("Judges who failed", str(failed))] if failed else []),
    ]

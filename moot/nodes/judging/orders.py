"""Presentation orders: every judge judges twice, once in reversed order, and only what holds in both counts.

Judges, models above all, favour what they read first or last (Wang et al. 2023, *Large Language Models are
not Fair Evaluators*; Zheng et al. 2023, *Judging LLM-as-a-Judge*, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from statistics import fmean
from types import MappingProxyType
from typing import TypeVar

from moot.nodes.judging.agreement import flip_rate
from moot.nodes.judging.opinion_check import cap_confidence
from moot.nodes.judging.opinions import reasons_each
from moot.nodes.text.terms import same_statement
from moot.state.reducers import add_up
from moot.state.verdict import TIE, Case, Flip, Rate, Reason, ScoreRecord, Unmet, Verdict, tenths

Stated = TypeVar("Stated", Reason, Unmet)
ScoreTable = dict[str, dict[str, ScoreRecord]]
"""Scores by side and criterion."""


def presentation_orders(debaters: Sequence[str], *, swap: bool = True) -> list[list[str]]:
    """Return the orders to judge in: as given and reversed; one only where there is nothing to swap."""
    order = list(debaters)
    return [order, order[::-1]] if swap and len(order) > 1 else [order]


def reconcile(
    first: Verdict, second: Verdict, *, names: Mapping[str, str] = MappingProxyType({}), capped: bool = False
) -> Verdict:
    """Unite the verdicts of one judge from two presentation orders.

    Args:
        first: as it is.
        second: in the other order.
        names: display names by debater.
        capped: whether an unmet major requirement caps the confidence.

    Returns:
        - Both name the same winner: that winner, with mean scores and confidence; a tie has none.
        - They differ in any way (`tie` against a winner too): a tie, `flip.flipped` true, both reasonings.
        - One failed: the other, `flip.flipped` `None`, with a note that one order alone was judged.
        - Both failed: a failed verdict with both errors.

        Usage, dropped citations and the other counts are sums in any case.
    """
    both = (first, second)
    judged = [verdict for verdict in both if verdict["status"] == "ok"]
    winners = [verdict["winner"] for verdict in judged]
    flipped = winners[0] != winners[1] if len(judged) == 2 else None
    verdict: Verdict = {
        **(judged or both)[0],
        "dropped_citations": first["dropped_citations"] + second["dropped_citations"],
        "dropped_scores": first["dropped_scores"] + second["dropped_scores"],
        "clamped_scores": first["clamped_scores"] + second["clamped_scores"],
        "notes": _union(first["notes"], second["notes"]),
        "lengths": {**second["lengths"], **first["lengths"]},
        "usage": add_up(first["usage"], [second["usage"]]),
        "flip": Flip(orders=[first["order"], second["order"]], winners=winners, flipped=flipped),
    }
    if any(each.get("placeholder") for each in judged):
        verdict["placeholder"] = True
    errors = _union([first["error"], second["error"]])
    if not judged:
        return {**verdict, "error": "; ".join(errors)}
    if len(judged) == 1:
        note = f"Judged in one order alone; the other failed: {errors[-1]}"
        return {**verdict, "notes": _union(verdict["notes"], [note])}
    totals = [each["totals"] for each in both]
    verdict["scores"] = in_tenths(mean_table(each["scores"] for each in both))
    verdict["totals"] = {
        side: tenths(fmean(given[side] for given in totals if side in given))
        for side in totals[0] | totals[1]
    }
    if cases := _both_cases(first, second):
        verdict["cases"] = cases
    verdict["unmet_requirements"] = _unmet_once([*first["unmet_requirements"], *second["unmet_requirements"]])
    given = [each["confidence"] for each in both if each["confidence"] is not None]
    # How sure a judge was of two contrary winners says nothing about how sure the tie is.
    verdict["confidence"] = float(round(fmean(given))) if given and not flipped else None
    if capped:
        cap_confidence(verdict)
    verdict["open_questions"] = _union(first["open_questions"], second["open_questions"])
    verdict["tradeoffs"] = _union(first["tradeoffs"], second["tradeoffs"])
    verdict["recommendations"] = _union(first["recommendations"], second["recommendations"])
    verdict["solution_markdown"] = first["solution_markdown"] or second["solution_markdown"]
    if flipped:
        verdict["winner"] = TIE
        passes = []
        for each in both:
            *order, winner = (names.get(who, who) for who in (*each["order"], each["winner"]))
            passes.append(f"Presented as {', '.join(order)}: {winner}.\n\n{each['reasoning']}")
        verdict["reasoning"] = "\n\n".join(passes)
        note = "The winner changed with the order of presentation: a tie."
        verdict["notes"] = _union(verdict["notes"], [note])
    return verdict


def in_tenths(table: ScoreTable) -> ScoreTable:
    """Return a table as it is stored."""
    return {
        side: {key: {**record, "score": tenths(record["score"])} for key, record in records.items()}
        for side, records in table.items()
    }


def _both_cases(first: Verdict, second: Verdict) -> dict[str, Case]:
    """Return each side's reasons of both passes, the best of each in turn, as many as a pass may give."""
    one, other, none = first.get("cases", {}), second.get("cases", {}), Case(pros=[], cons=[])
    most = reasons_each(len(first["order"]))

    def unite(known: Reason, again: Reason) -> None:
        known["citations"] = _union(known["citations"], again["citations"])

    def in_turn(mine: Sequence[Reason], theirs: Sequence[Reason]) -> list[Reason]:
        every = filter(None, chain.from_iterable(zip_longest(mine, theirs)))
        return _stated_once(every, unite)[:most]

    pairs = {side: (one.get(side, none), other.get(side, none)) for side in (*one, *other)}
    return {
        side: Case(pros=in_turn(mine["pros"], theirs["pros"]), cons=in_turn(mine["cons"], theirs["cons"]))
        for side, (mine, theirs) in pairs.items()
    }


def _unmet_once(unmet: Iterable[Unmet]) -> list[Unmet]:
    """Return each requirement once, in the longer of its wordings; major where one order found it so."""

    def unite(known: Unmet, again: Unmet) -> None:
        known["text"] = max(known["text"], again["text"], key=len)
        known["major"] |= again["major"]

    return _stated_once(unmet, unite)


def _stated_once(given: Iterable[Stated], unite: Callable[[Stated, Stated], None]) -> list[Stated]:
    """Return copies of what says nothing said before it; `unite` takes what does into the first."""
    once: list[Stated] = []
    for each in given:
        alike = next((known for known in once if same_statement(known["text"], each["text"])), None)
        if alike is None:
            once.append(each.copy())
        else:
            unite(alike, each)
    return once


def flip_rates(verdicts: Iterable[Verdict]) -> dict[str, Rate]:
    """Return how often each judge's winner changed with the order, over the verdicts judged in two orders."""
    flips: dict[str, list[bool | None]] = {}
    for verdict in verdicts:
        flips.setdefault(verdict["judge"], []).append(verdict["flip"]["flipped"])
    return {judge: flip_rate(of_judge) for judge, of_judge in sorted(flips.items())}


def mean_table(tables: Iterable[Mapping[str, Mapping[str, ScoreRecord]]]) -> ScoreTable:
    """Return the means of several tables, over those that have a score, with all reasons and citations."""
    given: dict[str, dict[str, list[ScoreRecord]]] = {}
    for table in tables:
        for side, records in table.items():
            of_side = given.setdefault(side, {})
            for criterion, record in records.items():
                of_side.setdefault(criterion, []).append(record)
    return {
        side: {
            criterion: ScoreRecord(
                score=sum(record["score"] for record in records) / len(records),
                reason="\n".join(_union([record["reason"] for record in records])),
                citations=_union(*(record["citations"] for record in records)),
            )
            for criterion, records in of_side.items()
        }
        for side, of_side in given.items()
    }


def _union(*lists: Iterable[str]) -> list[str]:
    """The non-empty texts of all `lists`, each once, in order."""
    return list(dict.fromkeys(text for texts in lists for text in texts if text))

"""Presentation orders, in which each judge sees the debaters twice, the second time reversed.

Judges, above all models, favour what they read first or last (Wang et al. 2023, *Large Language Models are
not Fair Evaluators*; Zheng et al. 2023, *Judging LLM-as-a-Judge*, section 3.3).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from math import isnan, sqrt
from statistics import NormalDist, fmean
from types import MappingProxyType
from typing import Any, Literal, cast

from moot.judging.response_check import cap_confidence, clear_confidence
from moot.judging.verdict_fields import combine
from moot.state import verdict as verdict_types
from moot.state.reducers import add_totals

Mark = str | int | float
Unit = Sequence[Mark | None]
Level = Literal["nominal", "ordinal", "interval"]


def rate_of(k: int, n: int) -> verdict_types.Rate:
    """Return `k / n` with its 95 % Wilson interval. `k` outside of 0–`n` is a `ValueError`."""
    if not 0 <= k <= n:
        raise ValueError(f"k ({k!r}) must be between 0 and n ({n!r})")
    if n == 0:
        return verdict_types.Rate(k=0, n=0, rate=None, low=0.0, high=1.0)
    z = NormalDist().inv_cdf(0.975)
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At 0 and 1, rounding must not move the rate out of its interval.
    return verdict_types.Rate(
        k=k, n=n, rate=p, low=min(p, max(0.0, centre - half)), high=max(p, min(1.0, centre + half))
    )


def flip_rate(flips: Iterable[bool | None]) -> verdict_types.Rate:
    """Return how often the reversed order changed the winner. Single orders (`None`) do not count."""
    known_flips = [flip for flip in flips if flip is not None]
    return rate_of(sum(known_flips), len(known_flips))


def krippendorff_alpha(units: Iterable[Unit], level: Level = "nominal") -> float | None:
    """Return Krippendorff's α, a measure of the agreement between raters.

    The definition is that of Krippendorff (2011), *Computing Krippendorff's Alpha-Reliability*.

    The tests compare it with the package `krippendorff`, whose GPL licence prevents a dependency.

    Args:
        units: rows of ratings. Units with fewer than two ratings do not count.
        level: `nominal` compares for equality. `ordinal` and `interval` need numbers.

    Returns:
        1 for full agreement, 0 for chance, below 0 for systematic disagreement. `None` if no unit has two
        ratings, or all ratings are equal.
    """
    unit_counts = [Counter(marks) for marks in map(_marks, units) if len(marks) > 1]
    totals = sum(unit_counts, Counter[Mark]())
    values = sorted(totals)
    if len(values) < 2:
        return None
    if level == "ordinal":  # ranks count all lower ratings and half of the equal ones
        ranks = accumulate(totals[value] for value in values)
        places = {value: rank - totals[value] / 2 for value, rank in zip(values, ranks, strict=True)}
    elif level == "interval":
        places = {value: float(value) for value in values}
    distances = {
        (one, other): 1.0 if level == "nominal" else (places[other] - places[one]) ** 2
        for one, other in combinations(values, 2)
    }

    def disagreement(marks: Counter[Mark]) -> float:
        pairs = combinations(sorted(marks), 2)
        return 2 * sum(distances[one, other] * marks[one] * marks[other] for one, other in pairs)

    observed = sum(disagreement(marks) / (marks.total() - 1) for marks in unit_counts)
    return 1 - (totals.total() - 1) * observed / disagreement(totals)


def cohen_kappa(first: Unit, second: Unit) -> float | None:
    """Return Cohen's κ, a measure of the agreement between two judges.

    Cohen's κ (Cohen 1960) corrects for agreement by chance.

    Returns:
        `None` if they share no unit, or if chance alone explains full agreement.

    Raises:
        ValueError: the two have different lengths.
    """
    pairs = _mark_pairs(first, second)
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(a == b for a, b in pairs)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    by_chance = sum(left[value] * right[value] for value in left)
    # Integers until the last division keep the check for equal ratings exact.
    return None if by_chance == n * n else (observed * n - by_chance) / (n * n - by_chance)


def pairwise_kappa(ratings: Mapping[str, Unit]) -> list[verdict_types.PairAgreement]:
    """Return Cohen's κ for each pair of judges.

    Cohen's κ measures the agreement between two judges.
    """
    agreements = []
    for first, second in combinations(sorted(ratings), 2):
        pairs = _mark_pairs(ratings[first], ratings[second])
        agreement = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
        kappa = cohen_kappa(ratings[first], ratings[second])
        agreements.append(
            verdict_types.PairAgreement(
                first=first, second=second, n=len(pairs), agreement=agreement, kappa=kappa
            )
        )
    return agreements


def _marks(unit: Unit) -> list[Mark]:
    return [
        rating for rating in unit if rating is not None and not (isinstance(rating, float) and isnan(rating))
    ]


def _mark_pairs(first: Unit, second: Unit) -> list[tuple[Mark, Mark]]:
    pairs = [_marks(pair) for pair in zip(first, second, strict=True)]
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


ScoreTable = dict[str, dict[str, verdict_types.ScoreRecord]]
"""Scores and reasons, keyed by debater id and then by criterion id."""


def presentation_orders(debaters: Sequence[str], *, swap: bool = True) -> list[list[str]]:
    """Return the debaters in order and reversed, or a single debater's only order."""
    order = list(debaters)
    return [order, order[::-1]] if swap and len(order) > 1 else [order]


def reconcile(
    first: verdict_types.Verdict,
    second: verdict_types.Verdict,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    capped: bool = False,
) -> verdict_types.Verdict:
    """Combine a judge's verdicts for both orders of the debaters.

    With `capped`, an unmet major requirement caps the confidence.

    Returns:
        - If both name the same debater, or neither names one: the first verdict's winner, with mean scores
          and confidence.
        - If they differ, but one debater has the highest total in both orders and no order names another
          debater: that debater. `flip.flipped` is true, and a note says what changed.
        - If they differ in another way: a tie with both reasonings. `flip.flipped` is true.
        - If one failed: the other, with `flip.flipped` `None` and a note.
        - If both failed: a failed verdict with both errors.

        Usage and counts, such as dropped citations, are sums in each case.
    """
    both = (first, second)
    usable = [verdict for verdict in both if verdict["status"] == "ok"]
    winners = [verdict["winner"] for verdict in usable]
    flipped = _debater_of(winners[0]) != _debater_of(winners[1]) if len(usable) == 2 else None
    notes = _notes_by_order(both, names) if len(usable) == 2 else _union(first["notes"], second["notes"])
    verdict: verdict_types.Verdict = {
        **(usable or both)[0],
        "dropped_citations": first["dropped_citations"] + second["dropped_citations"],
        "dropped_scores": first["dropped_scores"] + second["dropped_scores"],
        "clamped_scores": first["clamped_scores"] + second["clamped_scores"],
        "notes": notes,
        "lengths": {**second["lengths"], **first["lengths"]},
        "usage": add_totals(first["usage"], [second["usage"]]),
        "flip": verdict_types.Flip(
            orders=[first["order"], second["order"]], winners=winners, flipped=flipped
        ),
    }
    if any(each.get("placeholder") for each in usable):
        verdict["placeholder"] = True
    errors = _union([first["error"], second["error"]])
    if not usable:
        return {**verdict, "error": "; ".join(errors)}
    if len(usable) == 1:
        if "options" in verdict and not verdict["decision"]:
            verdict["decision"] = verdict_types.UNDECIDED
        note = f"Judged in one order only. The other order failed: {errors[-1]}"
        return {**verdict, "notes": _union(verdict["notes"], [note])}
    totals = [each["totals"] for each in both]
    verdict["scores"] = in_tenths(mean_table(each["scores"] for each in both))
    verdict["totals"] = {
        side: verdict_types.tenths(fmean(scores[side] for scores in totals if side in scores))
        for side in totals[0] | totals[1]
    }
    for field in verdict_types.VERDICT_FIELDS.values():
        if field.orders != "own":
            cast(dict[str, Any], verdict)[field.name] = combine(field, both, field.orders)
    if deciding_verdicts := [each for each in both if "options" in each and each["decision"]]:
        merge_decisions(verdict, deciding_verdicts)
    confidence = combine(verdict_types.VERDICT_FIELDS["winner_confidence"], both, "mean")
    verdict["winner_confidence"] = None if flipped else confidence
    if capped:
        cap_confidence(verdict)
    if flipped:
        _merge_flipped(verdict, both, names)
    return verdict


def _merge_flipped(
    verdict: verdict_types.Verdict, both: Sequence[verdict_types.Verdict], names: Mapping[str, str]
) -> None:
    """Combine two verdicts of a judge that name different winners.

    The two verdicts differ in the order of the debaters. The new winner is the debater with the highest total
    in both orders, or a tie. Reasoning and notes say what each order led to.
    """
    leader = _leader_of_both(both)
    verdict["winner"] = leader or verdict_types.TIE
    # The confidence in two different winners means nothing for a tie.
    clear_confidence(verdict)
    reasonings, changes = [], []
    for judgement in both:
        order, winner = _order_text(judgement, names), _winner_text(judgement["winner"], names)
        reasonings.append(f"Presented as {order}: {winner}.\n\n{judgement['reasoning']}")
        changes.append(f"{winner} in the order {order}")
    verdict["reasoning"] = "\n\n".join(reasonings)
    outcome = f"{_winner_text(leader, names)} has the highest total in both orders." if leader else "A tie."
    notes = [f"The winner changed with the order of presentation: {'; '.join(changes)}. {outcome}"]
    second = both[1]
    if "options" not in verdict and second["decision"] and second["decision"] != verdict["decision"]:
        notes.append(f"In the order {_order_text(second, names)} the decision was: {second['decision']}")
    verdict["notes"] = _union(verdict["notes"], notes)


def merge_decisions(verdict: verdict_types.Verdict, verdicts: Sequence[verdict_types.Verdict]) -> None:
    """Set the decision to the option that most verdicts chose.

    In a tie, the decision is `undecided`. The confidence is the sum of the confidences of the verdicts that
    choose the option, divided by the number of all verdicts. A verdict for another option therefore counts as
    no confidence.
    """
    votes = Counter(each["decision"] for each in verdicts)
    ranked = votes.most_common(2)
    is_tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    decision = verdict_types.UNDECIDED if is_tied else ranked[0][0]
    ratings = [each["confidence"] for each in verdicts if each["decision"] == decision]
    confidences = [each for each in ratings if each is not None]
    verdict["decision"] = decision
    if len(verdicts) > 1:
        # A confidence that no judge stated is unknown, and not 0.
        has_confidence = bool(confidences) and decision != verdict_types.UNDECIDED
        verdict["confidence"] = float(round(sum(confidences) / len(verdicts))) if has_confidence else None
    else:
        verdict["confidence"] = verdicts[0]["confidence"]
    if len(votes) > 1:
        shares = ", ".join(f"{option} ({number} of {len(verdicts)})" for option, number in votes.items())
        verdict["notes"] = [*verdict["notes"], f"The judgements chose different options: {shares}."]


def _leader_of_both(both: Sequence[verdict_types.Verdict]) -> str:
    """Return the debater whom the judge ranks first in both presentation orders.

    This debater has the highest total score in both verdicts, and neither verdict names another winner.
    Return `""` if there is no such debater.
    """
    leaders = set()
    for judgement in both:
        ranked = sorted(judgement["totals"].values(), reverse=True)
        if len(ranked) < 2 or ranked[0] == ranked[1]:
            return ""
        leaders.add(max(judgement["totals"], key=lambda side: judgement["totals"][side]))
    winners = {_debater_of(each["winner"]) for each in both} - {""}
    return leaders.pop() if len(leaders) == 1 and winners <= leaders else ""


def _debater_of(winner: str) -> str:
    """Return the id of the winning debater, or `""` for a tie or a synthesis."""
    return "" if winner in verdict_types.NO_WINNER else winner


def _notes_by_order(both: Sequence[verdict_types.Verdict], names: Mapping[str, str]) -> list[str]:
    """Merge the notes of a judge's verdicts for both orders of the debaters.

    A note that applies to only one order names this order.
    """
    first, second = both
    shared = [note for note in first["notes"] if note in second["notes"]]
    order_notes = [
        f"In the order {_order_text(each, names)}: {note}"
        for each in both
        for note in each["notes"]
        if note not in shared
    ]
    return _union(shared, order_notes)


def _order_text(verdict: verdict_types.Verdict, names: Mapping[str, str]) -> str:
    return ", ".join(names.get(debater, debater) for debater in verdict["order"])


def _winner_text(winner: str, names: Mapping[str, str]) -> str:
    return verdict_types.NO_WINNER.get(winner, "") or names.get(winner, winner)


def in_tenths(table: ScoreTable) -> ScoreTable:
    """Return a copy of a score table with scores rounded to one decimal place."""
    return {
        side: {
            key: {**record, "score": verdict_types.tenths(record["score"])} for key, record in records.items()
        }
        for side, records in table.items()
    }


def flip_rates(verdicts: Iterable[verdict_types.Verdict]) -> dict[str, verdict_types.Rate]:
    """Return how often each judge's winner changed with the order of the debaters."""
    flips: dict[str, list[bool | None]] = {}
    for verdict in verdicts:
        flips.setdefault(verdict["judge"], []).append(verdict["flip"]["flipped"])
    return {judge: flip_rate(of_judge) for judge, of_judge in sorted(flips.items())}


def mean_table(tables: Iterable[Mapping[str, Mapping[str, verdict_types.ScoreRecord]]]) -> ScoreTable:
    """Return a table with the mean scores of several tables.

    All reasons and citations are kept. Missing scores do not count.
    """
    records_by_side: dict[str, dict[str, list[verdict_types.ScoreRecord]]] = {}
    for table in tables:
        for side, records in table.items():
            side_records = records_by_side.setdefault(side, {})
            for criterion, record in records.items():
                side_records.setdefault(criterion, []).append(record)
    return {
        side: {
            criterion: verdict_types.ScoreRecord(
                score=sum(record["score"] for record in records) / len(records),
                reason="\n".join(_union([record["reason"] for record in records])),
                citations=_union(*(record["citations"] for record in records)),
            )
            for criterion, records in side_records.items()
        }
        for side, side_records in records_by_side.items()
    }


def _union(*lists: Iterable[str]) -> list[str]:
    """Merge lists of texts, without empty texts and duplicates."""
    return list(dict.fromkeys(text for texts in lists for text in texts if text))

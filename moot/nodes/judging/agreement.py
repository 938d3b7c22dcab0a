"""How far judges agree: Krippendorff's α, Cohen's κ, and rates with Wilson intervals.

Ratings come as *units*: one row a debate (or question), one column a judge, `None` where there is none.
A coefficient that is undefined (nothing to compare, or no variation) is `None`, never a made-up 0 or 1.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from math import isnan, sqrt
from statistics import NormalDist
from typing import Literal

from moot.state.verdict import PairAgreement, Rate

Mark = str | int | float
Unit = Sequence[Mark | None]
Level = Literal["nominal", "ordinal", "interval"]


def rate_of(k: int, n: int) -> Rate:
    """Return `k / n` with its 95 % score interval (Wilson 1927, *Probable inference*).

    Raises:
        ValueError: `k` is not within 0–`n`.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k!r} of {n!r} is not a proportion")
    if n == 0:
        return Rate(k=0, n=0, rate=None, low=0.0, high=1.0)
    z = NormalDist().inv_cdf(0.975)
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Rounding must not push the observed rate out of its own interval at 0 and 1.
    return Rate(k=k, n=n, rate=p, low=min(p, max(0.0, centre - half)), high=max(p, min(1.0, centre + half)))


def flip_rate(flips: Iterable[bool | None]) -> Rate:
    """Return the share of `True` among the known `flips`; `None` (judged once only) is left out."""
    known = [flip for flip in flips if flip is not None]
    return rate_of(sum(known), len(known))


def krippendorff_alpha(units: Iterable[Unit], level: Level = "nominal") -> float | None:
    """Return Krippendorff's α over `units` (Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*).

    The package `krippendorff`, against which the tests hold this, is under the GPL, which ours is not.

    Args:
        units: one row of ratings a unit; units with fewer than two ratings do not count.
        level: `nominal` compares for equality; `ordinal` and `interval` need numbers.

    Returns:
        1 for full agreement, 0 for chance, below 0 for systematic disagreement; `None` where no unit has two
        ratings or all ratings are the same value.
    """
    rated = [Counter(given) for given in map(_marks, units) if len(given) > 1]
    totals = sum(rated, Counter[Mark]())
    values = sorted(totals)
    if len(values) < 2:
        return None
    if level == "ordinal":  # by rank: the marks up to one's own, half of its own
        ranks = accumulate(totals[value] for value in values)
        places = {value: rank - totals[value] / 2 for value, rank in zip(values, ranks, strict=True)}
    elif level == "interval":
        places = {value: float(value) for value in values}
    far = {
        (one, other): 1.0 if level == "nominal" else (places[other] - places[one]) ** 2
        for one, other in combinations(values, 2)
    }

    def disagreement(marks: Counter[Mark]) -> float:
        pairs = combinations(sorted(marks), 2)
        return 2 * sum(far[one, other] * marks[one] * marks[other] for one, other in pairs)

    observed = sum(disagreement(marks) / (marks.total() - 1) for marks in rated)
    return 1 - (totals.total() - 1) * observed / disagreement(totals)


def cohen_kappa(first: Unit, second: Unit) -> float | None:
    """Return Cohen's κ of two judges over the units that both rated (Cohen 1960).

    Returns:
        `None` where they share no unit, or where chance alone explains full agreement.

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
    # Whole numbers up to the last division, so that "no variation" is exact.
    return None if by_chance == n * n else (observed * n - by_chance) / (n * n - by_chance)


def pairwise_kappa(ratings: Mapping[str, Unit]) -> list[PairAgreement]:
    """Return the agreement of every two judges; `ratings` has one row a judge, aligned by unit."""
    found = []
    for first, second in combinations(sorted(ratings), 2):
        pairs = _mark_pairs(ratings[first], ratings[second])
        alike = sum(a == b for a, b in pairs) / len(pairs) if pairs else None
        kappa = cohen_kappa(ratings[first], ratings[second])
        found.append(PairAgreement(first=first, second=second, n=len(pairs), agreement=alike, kappa=kappa))
    return found


def _marks(unit: Unit) -> list[Mark]:
    return [
        rating for rating in unit if rating is not None and not (isinstance(rating, float) and isnan(rating))
    ]


def _mark_pairs(first: Unit, second: Unit) -> list[tuple[Mark, Mark]]:
    both = [_marks(pair) for pair in zip(first, second, strict=True)]
    return [(pair[0], pair[1]) for pair in both if len(pair) == 2]

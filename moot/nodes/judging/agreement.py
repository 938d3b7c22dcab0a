"""How far judges agree: Krippendorff's α, Cohen's and Fleiss' κ, and rates with Wilson intervals.

Ratings come as *units*: one row a debate (or question), one column a judge, `None` where there is none.
A coefficient that is undefined (nothing to compare, or no variation) is `None`, never a made-up 0 or 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import isnan, sqrt
from statistics import NormalDist
from typing import Literal

from moot.state.verdict import PairAgreement, Rate

Rating = str | int | float
Unit = Sequence[Rating | None]
Level = Literal["nominal", "ordinal", "interval"]
_Distance = Callable[[int, int], float]


def rate_of(k: int, n: int, confidence: float = 0.95) -> Rate:
    """Return `k / n` with its score interval (Wilson 1927, *Probable inference*).

    Raises:
        ValueError: `k` is not within 0–`n`.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k!r} of {n!r} is not a proportion")
    if n == 0:
        return Rate(k=0, n=0, rate=None, low=0.0, high=1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Rounding must not push the observed rate out of its own interval at 0 and 1.
    return Rate(k=k, n=n, rate=p, low=min(p, max(0.0, centre - half)), high=max(p, min(1.0, centre + half)))


def flip_rate(flips: Iterable[bool | None], confidence: float = 0.95) -> Rate:
    """Return the share of `True` among the known `flips`; `None` (judged once only) is left out."""
    known = [flip for flip in flips if flip is not None]
    return rate_of(sum(known), len(known), confidence)


def krippendorff_alpha(units: Iterable[Unit], level: Level = "nominal") -> float | None:
    """Return Krippendorff's α over `units` (Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*).

    Args:
        units: one row of ratings a unit; units with fewer than two ratings do not count.
        level: `nominal` compares for equality; `ordinal` and `interval` need numbers.

    Returns:
        1 for full agreement, 0 for chance, below 0 for systematic disagreement; `None` where no unit has two
        ratings or all ratings are the same value.
    """
    tables = [Counter(rated) for rated in map(_given, units) if len(rated) > 1]
    totals: Counter[Rating] = sum(tables, Counter())
    values = sorted(totals, key=lambda value: (isinstance(value, str), value))
    if len(values) < 2:
        return None
    distance = _distance(level, values, [totals[value] for value in values])
    observed = sum(_disagreement(table, values, distance) / (table.total() - 1) for table in tables)
    expected = _disagreement(totals, values, distance) / (totals.total() - 1)
    return 1 - observed / expected if expected else None


def cohen_kappa(first: Unit, second: Unit) -> float | None:
    """Return Cohen's κ of two judges over the units that both rated (Cohen 1960).

    Returns:
        `None` where they share no unit, or where chance alone explains full agreement.

    Raises:
        ValueError: the two have different lengths.
    """
    pairs = _shared(first, second)
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
    return [_pair(first, second, ratings) for first, second in combinations(sorted(ratings), 2)]


def fleiss_kappa(units: Sequence[Unit]) -> float | None:
    """Return Fleiss' κ (Fleiss 1971); every unit needs the same number of ratings, at least two.

    Returns:
        `None` without units, or where all ratings are the same value.

    Raises:
        ValueError: units differ in how many ratings they have, or have fewer than two.
    """
    tables = [Counter(_given(unit)) for unit in units]
    sizes = {table.total() for table in tables}
    if not tables:
        return None
    if len(sizes) > 1 or min(sizes) < 2:
        raise ValueError(
            f"Fleiss' kappa needs the same number of ratings (2 or more) a unit, not {sorted(sizes)}"
        )
    raters, total = sizes.pop(), sum(tables, Counter())
    if len(total) < 2:
        return None
    alike = sum(n * (n - 1) for table in tables for n in table.values())
    observed = alike / (len(tables) * raters * (raters - 1))
    by_chance = sum((n / total.total()) ** 2 for n in total.values())
    return (observed - by_chance) / (1 - by_chance)


def _pair(first: str, second: str, ratings: Mapping[str, Unit]) -> PairAgreement:
    pairs = _shared(ratings[first], ratings[second])
    return PairAgreement(
        first=first,
        second=second,
        n=len(pairs),
        agreement=sum(a == b for a, b in pairs) / len(pairs) if pairs else None,
        kappa=cohen_kappa(ratings[first], ratings[second]),
    )


def _given(unit: Unit) -> list[Rating]:
    return [
        rating for rating in unit if rating is not None and not (isinstance(rating, float) and isnan(rating))
    ]


def _shared(first: Unit, second: Unit) -> list[tuple[Rating, Rating]]:
    both = [_given(pair) for pair in zip(first, second, strict=True)]
    return [(pair[0], pair[1]) for pair in both if len(pair) == 2]


def _disagreement(table: Counter[Rating], values: Sequence[Rating], distance: _Distance) -> float:
    """Sum of squared distances over all ordered pairs of the ratings in `table`."""
    present = [(at, table[value]) for at, value in enumerate(values) if table[value]]
    return 2 * sum(n * m * distance(i, j) for (i, n), (j, m) in combinations(present, 2))


def _distance(level: Level, values: Sequence[Rating], counts: Sequence[int]) -> _Distance:
    """Squared distance between the values at two positions, the lower first."""
    if level == "nominal":
        return lambda i, j: 1.0
    numbers = [float(value) for value in values]
    if level == "interval":
        return lambda i, j: (numbers[i] - numbers[j]) ** 2
    below = [sum(counts[:at]) + counts[at] / 2 for at in range(len(counts))]
    return lambda i, j: (below[j] - below[i]) ** 2

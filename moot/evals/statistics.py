"""Statistics of an evaluation, such as intervals, paired tests and ratings, computed by scipy and choix.

Both packages are part of the extra `eval` and are imported on first use. An interval is a 95 % interval.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from moot.state.plugins import require_extra

Array = npt.NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 4_000
"""Number of bootstrap resamples. With this number, the quantiles of 2.5 % vary by about a tenth of the
interval's width from seed to seed, and a report of ten arms takes a second."""
PERMUTATIONS = 9_999
SEED = 20_190_516
"""Random seed for bootstrap resampling and permutation tests. With a fixed seed, the report is the same
each time."""
BINS = 10
"""Number of equal-width confidence bins used to compute the calibration error."""
PRIOR = 0.1
"""Regularisation strength of Bradley–Terry ratings (`alpha` in choix). It keeps the rating of an arm that won
or lost every time finite."""
RATING_RESAMPLES = 300
ELO_MEAN, ELO_SCALE = 1000.0, 400.0 / log(10)


def _scipy_stats() -> Any:
    with require_extra("eval", "an evaluation's report"):
        from scipy import stats
    return stats


def check_installed() -> None:
    """Raise an error if the packages of the optional extra `eval` are not installed.

    Raises:
        ConfigError: A package is missing. The message says what to install.
    """
    _scipy_stats()
    with require_extra("eval", "an evaluation's report"):
        import choix  # noqa: F401


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float
    method: Literal["wilson", "bootstrap", "newcombe", "none"]


def proportion_interval(successes: int, trials: int) -> Interval:
    """Return the Wilson score interval (Wilson 1927) of a proportion, or 0 to 1 if there are no trials."""
    if not trials:
        return Interval(0.0, 1.0, "none")
    found = _scipy_stats().binomtest(successes, trials).proportion_ci(LEVEL, method="wilson")
    return Interval(float(found.low), float(found.high), "wilson")


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the percentile bootstrap interval (Efron 1979) of a mean over items."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if len(values) < 2 or low == high:
        return Interval(low, high, "none")
    found = _scipy_stats().bootstrap(
        (np.asarray(values),),
        np.mean,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        batch=max(1, 2_000_000 // len(values)),
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    low, high = map(float, found.confidence_interval)
    return Interval(low, high, "bootstrap")


@dataclass(frozen=True)
class PairedDifference:
    """Difference between the scores of two configurations on the items that both configurations answered."""

    items: int
    difference: float
    """Mean score of the first evaluated configuration minus the mean score of the second."""
    interval: Interval
    p_value: float
    test: Literal["exact McNemar", "paired permutation"]
    wins: int
    """Number of items on which the first evaluated configuration scored higher than the second."""
    losses: int

    @property
    def shown(self) -> bool:
        """True if p-value and confidence interval both show a difference between two configurations."""
        outside = self.interval.low > 0 or self.interval.high < 0
        return self.p_value < 1 - LEVEL and outside and self.interval.method != "none"


def paired_difference(first: Sequence[float], second: Sequence[float]) -> PairedDifference:
    """Compare two configurations by their scores on the same items, given in the same order.

    For scores of 0 and 1: exact McNemar test (McNemar 1947, two-sided binomial), and Newcombe's interval
    (Newcombe 1998, *Improved confidence intervals for the difference between binomial proportions based on
    paired data*, method 10). For graded scores: paired permutation test and paired bootstrap.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    difference = one - other
    wins, losses, items = int((difference > 0).sum()), int((difference < 0).sum()), len(difference)
    if not items:
        return PairedDifference(0, 0.0, Interval(-1.0, 1.0, "none"), 1.0, "exact McNemar", 0, 0)
    mean = float(difference.mean())
    if set(np.unique(np.concatenate([one, other])).tolist()) <= {0.0, 1.0}:
        p_value = mcnemar_p(wins, losses)
        interval = newcombe_interval(int((one * other).sum()), wins, losses, items)
        return PairedDifference(items, mean, interval, p_value, "exact McNemar", wins, losses)
    p_value = 1.0
    if wins or losses:
        found = _scipy_stats().permutation_test(
            (one, other),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=PERMUTATIONS,
            batch=max(1, 2_000_000 // items),
            rng=np.random.default_rng(SEED),
        )
        p_value = float(found.pvalue)
    interval = mean_interval(difference.tolist())
    return PairedDifference(items, mean, interval, p_value, "paired permutation", wins, losses)


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the p-value of the exact McNemar test for two counts of discordant pairs."""
    if not wins + losses:
        return 1.0
    return float(_scipy_stats().binomtest(wins, wins + losses).pvalue)


def newcombe_interval(both: int, wins: int, losses: int, items: int) -> Interval:
    """Return Newcombe's interval for a difference of paired proportions, based on Wilson intervals.

    Args:
        both: Number of items that both arms have right.
        wins: Number of items that only the first arm has right.
        losses: Number of items that only the second arm has right.
        items: Number of all items.
    """
    first, second = both + wins, both + losses
    one, other = proportion_interval(first, items), proportion_interval(second, items)
    p_one, p_other = first / items, second / items
    neither = items - both - wins - losses
    margins = first * (items - first) * second * (items - second)
    determinant = float(both * neither - wins * losses)
    if determinant > 0:  # the continuity correction of method 10
        determinant = max(determinant - items / 2, 0)
    phi = determinant / sqrt(margins) if margins else 0.0

    def margin(below: float, above: float) -> float:
        return sqrt(max(0.0, below**2 - 2 * phi * below * above + above**2))

    low = p_one - p_other - margin(p_one - one.low, other.high - p_other)
    high = p_one - p_other + margin(one.high - p_one, p_other - other.low)
    return Interval(max(-1.0, low), min(1.0, high), "newcombe")


def brier_score(confidences: Sequence[float], correct: Sequence[float]) -> float | None:
    """Return the Brier score (Brier 1950) of confidences from 0 to 1, or `None` for an empty list."""
    if not confidences:
        return None
    return float(np.mean((np.asarray(confidences) - np.asarray(correct)) ** 2))


def calibration_error(confidences: Sequence[float], correct: Sequence[float]) -> float | None:
    """Return the expected calibration error in ten bins (Guo et al., 2017), or `None` for an empty list."""
    if not confidences:
        return None
    stated, right = np.asarray(confidences, dtype=float), np.asarray(correct, dtype=float)
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = [abs(right[bins == each].sum() - stated[bins == each].sum()) for each in np.unique(bins)]
    return float(sum(gaps) / len(stated))


@dataclass(frozen=True)
class CalibrationBin:
    """A group of answers with similar stated confidence."""

    stated: float
    """Mean stated confidence, in percent."""
    measured: float
    """Measured accuracy of the answers in this group, in percent."""
    answers: int


def calibration_bins(stated: Sequence[float], correct: Sequence[float]) -> list[CalibrationBin]:
    """Return the measured accuracy for each level of stated confidence in percent, lowest first.

    Histogram binning with Laplace's correction (Zadrozny and Elkan 2001, *Obtaining calibrated probability
    estimates from decision trees and naive Bayesian classifiers*), in the bins of `calibration_error`. The
    correction keeps a bin with few answers near 50 %. Bins without answers are left out.
    """
    confidences, right = np.asarray(stated, dtype=float), np.asarray(correct, dtype=float)
    bins = np.minimum((confidences / 100 * BINS).astype(int), BINS - 1)
    found = [(confidences[bins == each], right[bins == each]) for each in np.unique(bins)]
    return [
        CalibrationBin(
            float(confidence.mean()), float(100 * (values.sum() + 1) / (len(values) + 2)), len(values)
        )
        for confidence, values in found
    ]


@dataclass(frozen=True)
class Rating:
    """Bradley–Terry rating on the Elo scale, with a mean of 1,000 over all rated configurations."""

    rating: float
    low: float
    high: float


def ratings(
    names: Sequence[str], results: Mapping[str, Sequence[tuple[str, str, float]]]
) -> dict[str, Rating]:
    """Return the configurations' Bradley–Terry ratings (1952), with bootstrap intervals.

    Args:
        names: Names of the arms.
        results: For each item, its comparisons: two arms, and the first one's score from 0 to 1. Items are
            what is resampled, because comparisons on the same item are not independent.
    """
    with require_extra("eval", "an evaluation's report"):
        import choix
    index = {name: number for number, name in enumerate(names)}
    tables = np.zeros((len(results), len(names), len(names)))
    for table, comparisons in zip(tables, results.values(), strict=True):
        for first, second, score in comparisons:
            table[index[first], index[second]] += score
            table[index[second], index[first]] += 1 - score
    if not len(tables):
        return {}

    def strengths(table: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns of deprecated calls inside choix
            found = choix.ilsr_pairwise_dense(table, alpha=PRIOR)
        return ELO_MEAN + ELO_SCALE * (np.asarray(found) - np.mean(found))

    point = strengths(tables.sum(axis=0))
    random = np.random.default_rng(SEED)
    picks = random.integers(0, len(tables), (RATING_RESAMPLES, len(tables)))
    resampled = np.stack([strengths(tables[pick].sum(axis=0)) for pick in picks])
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return {
        name: Rating(float(point[at]), float(min(low[at], point[at])), float(max(high[at], point[at])))
        for name, at in index.items()
    }

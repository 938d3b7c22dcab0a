"""Statistics of evaluations: coverage of intervals, calibration, ratings, and shown differences."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from moot.plugins.evals.statistics import (
    brier_score,
    calibration_bins,
    calibration_error,
    mcnemar_p,
    mean_interval,
    newcombe_interval,
    paired_difference,
    proportion_interval,
    ratings,
)


def test_intervals_and_p_values_match_known_values() -> None:
    newcombe = newcombe_interval(36, 12, 2, 50)  # an example of Newcombe 1998
    assert (newcombe.low, newcombe.high) == pytest.approx((0.0569, 0.3404), abs=1e-4)
    wilson = proportion_interval(81, 263)  # Wilson's interval in Newcombe 1998
    assert (wilson.low, wilson.high) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert mcnemar_p(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar_p(0, 0) == 1


def test_brier_score_and_calibration_error_of_known_answers() -> None:
    assert brier_score([1.0, 0.5], [1, 0]) == pytest.approx(0.125)
    assert calibration_error([0.95, 0.95, 0.15], [1, 0, 0]) == pytest.approx((0.9 + 0.15) / 3)
    assert brier_score([], []) is None
    assert calibration_error([], []) is None


def test_calibration_bins_give_the_accuracy_per_confidence_level() -> None:
    stated = [90.0] * 8 + [100.0] * 2 + [55.0] * 3
    right = [1.0] * 4 + [0.0] * 6 + [1.0, 1.0, 0.0]
    high, low = (4 + 1) / (10 + 2), (2 + 1) / (3 + 2)
    bins = calibration_bins(stated, right)
    assert [(each.confidence, each.answers) for each in bins] == [(55, 3), (92, 10)]
    assert [each.measured for each in bins] == pytest.approx([100 * low, 100 * high])
    assert calibration_bins([], []) == []


def test_equal_arms_and_few_items_show_no_difference() -> None:
    same = paired_difference([1, 0, 1], [1, 0, 1])
    assert (same.difference, same.shown, same.p_value) == (0, False, 1)
    assert same.interval.low < 0 < same.interval.high
    assert not paired_difference([1, 1, 1], [0, 0, 0]).shown
    assert not paired_difference([1, 1, 0.5], [0, 0.5, 0]).shown
    assert not paired_difference([], []).shown


def test_large_difference_is_shown_for_binary_and_graded_scores() -> None:
    first, second = [1.0] * 30 + [0.0] * 10, [0.0] * 25 + [1.0] * 5 + [0.0] * 10
    assert paired_difference(first, second).shown
    graded = paired_difference([each / 2 + 0.5 for each in first], second)
    assert graded.test == "paired permutation"
    assert graded.shown


def test_ratings_follow_the_results_and_stay_finite() -> None:
    results = {str(n): [("a", "b", 1.0), ("b", "c", 1.0 if n else 0.5)] for n in range(20)}
    estimates = ratings(["a", "b", "c"], results)
    assert estimates["a"].rating > estimates["b"].rating > estimates["c"].rating
    assert sum(each.rating for each in estimates.values()) == pytest.approx(3000)
    assert all(each.low <= each.rating <= each.high < 1e5 for each in estimates.values())


def coverage_of_newcombe(p: tuple[float, float, float, float], items: int) -> float:
    """Return the exact coverage of Newcombe's interval, summed over all possible tables."""
    from scipy import stats

    table = stats.multinomial(items, p)
    covered, truth = 0.0, p[1] - p[2]
    for both in range(items + 1):
        for wins in range(items + 1 - both):
            for losses in range(items + 1 - both - wins):
                chance = table.pmf([both, wins, losses, items - both - wins - losses])
                if chance > 1e-9:
                    interval = newcombe_interval(both, wins, losses, items)
                    covered += chance * (interval.low <= truth <= interval.high)
    return float(covered)


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_their_theory_predicts() -> None:
    random, sets = np.random.default_rng(1), 10_000
    # Wilson: the exact coverage at this rate and size follows from the binomial distribution.
    from scipy import stats

    items, rate = 100, 0.7
    inside = [
        proportion_interval(k, items).low <= rate <= proportion_interval(k, items).high
        for k in range(items + 1)
    ]
    expected = float(sum(stats.binom(items, rate).pmf(k) * each for k, each in enumerate(inside)))
    assert 0.93 < expected < 0.97
    observed = np.mean([inside[k] for k in random.binomial(items, rate, sets)])
    assert abs(observed - expected) <= 3 * sqrt(expected * (1 - expected) / sets)
    # Newcombe, for correlated arms.
    table, items = (0.5, 0.2, 0.1, 0.2), 40
    expected = coverage_of_newcombe(table, items)
    assert 0.93 < expected < 0.97
    tables = random.multinomial(items, table, sets)
    intervals = [newcombe_interval(int(each[0]), int(each[1]), int(each[2]), items) for each in tables]
    observed = np.mean([each.low <= 0.1 <= each.high for each in intervals])
    assert abs(observed - expected) <= 3 * sqrt(expected * (1 - expected) / sets)


@pytest.mark.slow
def test_bootstrap_interval_covers_the_mean_in_95_percent_of_samples() -> None:
    random, sets, items = np.random.default_rng(2), 2_000, 400
    covered = 0
    for _ in range(sets):
        interval = mean_interval(random.choice([0.0, 0.5, 1.0], items, p=[0.2, 0.3, 0.5]).tolist())
        covered += interval.low <= 0.65 <= interval.high
    assert abs(covered / sets - 0.95) <= 3 * sqrt(0.95 * 0.05 / sets)


@pytest.mark.parametrize("sets", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_difference_of_zero_is_shown_in_at_most_5_percent_of_samples(sets: int) -> None:
    random = np.random.default_rng(3)
    drawn = random.multinomial(200, (0.5, 0.15, 0.15, 0.2), sets)
    shown = 0
    for both, wins, losses, neither in drawn.tolist():
        first = [1.0] * (both + wins) + [0.0] * (losses + neither)
        second = [1.0] * both + [0.0] * wins + [1.0] * losses + [0.0] * neither
        shown += paired_difference(first, second).shown
    assert shown / sets <= 0.05

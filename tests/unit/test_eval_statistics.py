"""Statistics of evaluations: what the intervals cover, and what counts as shown."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from moot.evals.statistics import (
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


def test_known_intervals_and_tests() -> None:
    found = newcombe_interval(36, 12, 2, 50)  # an example of Newcombe 1998
    assert (found.low, found.high) == pytest.approx((0.0569, 0.3404), abs=1e-4)
    wilson = proportion_interval(81, 263)  # Wilson's interval in Newcombe 1998
    assert (wilson.low, wilson.high) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert mcnemar_p(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar_p(0, 0) == 1


def test_confidence_is_scored_against_what_was_right() -> None:
    assert brier_score([1.0, 0.5], [1, 0]) == pytest.approx(0.125)
    assert calibration_error([0.95, 0.95, 0.15], [1, 0, 0]) == pytest.approx((0.9 + 0.15) / 3)
    assert brier_score([], []) is None
    assert calibration_error([], []) is None


def test_calibration_gives_the_accuracy_of_each_level_of_confidence() -> None:
    stated = [90.0] * 8 + [100.0] * 2 + [55.0] * 3
    right = [1.0] * 4 + [0.0] * 6 + [1.0, 1.0, 0.0]
    high, low = (4 + 1) / (10 + 2), (2 + 1) / (3 + 2)
    found = calibration_bins(stated, right)
    assert [(each.confidence, each.answers) for each in found] == [(55, 3), (92, 10)]
    assert [each.measured for each in found] == pytest.approx([100 * low, 100 * high])
    assert calibration_bins([], []) == []


def test_equal_arms_and_few_items_show_nothing() -> None:
    same = paired_difference([1, 0, 1], [1, 0, 1])
    assert (same.difference, same.shown, same.p_value) == (0, False, 1)
    assert same.interval.low < 0 < same.interval.high
    assert not paired_difference([1, 1, 1], [0, 0, 0]).shown
    assert not paired_difference([1, 1, 0.5], [0, 0.5, 0]).shown
    assert not paired_difference([], []).shown


def test_a_large_difference_is_shown_for_right_and_wrong_and_for_grades() -> None:
    first, second = [1.0] * 30 + [0.0] * 10, [0.0] * 25 + [1.0] * 5 + [0.0] * 10
    assert paired_difference(first, second).shown
    graded = paired_difference([each / 2 + 0.5 for each in first], second)
    assert graded.test == "paired permutation"
    assert graded.shown


def test_ratings_follow_the_results_and_stay_finite() -> None:
    results = {str(n): [("a", "b", 1.0), ("b", "c", 1.0 if n else 0.5)] for n in range(20)}
    found = ratings(["a", "b", "c"], results)
    assert found["a"].rating > found["b"].rating > found["c"].rating
    assert sum(each.rating for each in found.values()) == pytest.approx(3000)
    assert all(each.low <= each.rating <= each.high < 1e5 for each in found.values())


def coverage_of_newcombe(p: tuple[float, float, float, float], items: int) -> float:
    """Return the exact coverage of the interval, by going through all possible tables."""
    from scipy import stats

    table = stats.multinomial(items, p)
    covered, truth = 0.0, p[1] - p[2]
    for both in range(items + 1):
        for wins in range(items + 1 - both):
            for losses in range(items + 1 - both - wins):
                chance = table.pmf([both, wins, losses, items - both - wins - losses])
                if chance > 1e-9:
                    found = newcombe_interval(both, wins, losses, items)
                    covered += chance * (found.low <= truth <= found.high)
    return float(covered)


@pytest.mark.slow
def test_over_10_000_sets_the_intervals_cover_the_truth_as_their_method_promises() -> None:
    random, sets = np.random.default_rng(1), 10_000
    # Wilson: the exact coverage at this rate and size follows from the binomial distribution.
    from scipy import stats

    items, rate = 100, 0.7
    inside = [
        proportion_interval(k, items).low <= rate <= proportion_interval(k, items).high
        for k in range(items + 1)
    ]
    promised = float(sum(stats.binom(items, rate).pmf(k) * each for k, each in enumerate(inside)))
    assert 0.93 < promised < 0.97
    seen = np.mean([inside[k] for k in random.binomial(items, rate, sets)])
    assert abs(seen - promised) <= 3 * sqrt(promised * (1 - promised) / sets)
    # Newcombe, for correlated arms.
    table, items = (0.5, 0.2, 0.1, 0.2), 40
    promised = coverage_of_newcombe(table, items)
    assert 0.93 < promised < 0.97
    drawn = random.multinomial(items, table, sets)
    found = [newcombe_interval(int(each[0]), int(each[1]), int(each[2]), items) for each in drawn]
    seen = np.mean([each.low <= 0.1 <= each.high for each in found])
    assert abs(seen - promised) <= 3 * sqrt(promised * (1 - promised) / sets)


@pytest.mark.slow
def test_over_2_000_sets_the_bootstrap_covers_the_mean_of_graded_scores() -> None:
    random, sets, items = np.random.default_rng(2), 2_000, 400
    seen = 0
    for _ in range(sets):
        found = mean_interval(random.choice([0.0, 0.5, 1.0], items, p=[0.2, 0.3, 0.5]).tolist())
        seen += found.low <= 0.65 <= found.high
    assert abs(seen / sets - 0.95) <= 3 * sqrt(0.95 * 0.05 / sets)


@pytest.mark.parametrize("sets", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_difference_of_zero_is_not_shown_in_95_percent(sets: int) -> None:
    random = np.random.default_rng(3)
    drawn = random.multinomial(200, (0.5, 0.15, 0.15, 0.2), sets)
    shown = 0
    for both, wins, losses, neither in drawn.tolist():
        first = [1.0] * (both + wins) + [0.0] * (losses + neither)
        second = [1.0] * both + [0.0] * wins + [1.0] * losses + [0.0] * neither
        shown += paired_difference(first, second).shown
    assert shown / sets <= 0.05

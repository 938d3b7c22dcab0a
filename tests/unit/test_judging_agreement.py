"""Agreement coefficients against independent implementations."""

from __future__ import annotations

from itertools import permutations
from math import isclose, sqrt

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from moot.judging.orders import (
    Level,
    cohen_kappa,
    flip_rate,
    krippendorff_alpha,
    pairwise_kappa,
    rate_of,
)

Table = list[list[int | None]]
tables: st.SearchStrategy[Table] = st.integers(2, 5).flatmap(
    lambda judges: st.lists(
        st.lists(st.none() | st.integers(1, 4), min_size=judges, max_size=judges), min_size=1, max_size=12
    )
)


def package_alpha(units: Table, level: Level) -> float | None:
    """Return the α of the `krippendorff` package, or `None` where it is undefined."""
    pairable = [unit for unit in units if sum(value is not None for value in unit) > 1]
    if len({value for unit in pairable for value in unit if value is not None}) < 2:
        return None
    data = np.array([[np.nan if value is None else value for value in unit] for unit in units]).T
    return float(krippendorff.alpha(reliability_data=data, level_of_measurement=level))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@settings(deadline=None)
@given(units=tables)
def test_alpha_matches_the_krippendorff_package(level: Level, units: Table) -> None:
    mine, theirs = krippendorff_alpha(units, level), package_alpha(units, level)
    assert (mine is None) == (theirs is None)
    if mine is not None and theirs is not None:
        assert isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)


@settings(deadline=None)
@given(units=tables)
def test_nominal_alpha_matches_its_definition_by_pairs(units: Table) -> None:
    values_by_unit = [[v for v in unit if v is not None] for unit in units]
    pairable = [unit for unit in values_by_unit if len(unit) > 1]
    pool = [v for unit in pairable for v in unit]
    expected = [a != b for a, b in permutations(pool, 2)]
    alpha = krippendorff_alpha(units)
    if not any(expected):
        assert alpha is None
        return
    observed = sum(
        sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in pairable
    ) / len(pool)
    assert alpha is not None
    assert isclose(alpha, 1 - observed / (sum(expected) / len(expected)), abs_tol=1e-9)


def test_alpha_matches_krippendorffs_published_example() -> None:
    # Krippendorff 2011, section C: four observers, twelve units, missing values.
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [list(unit) for unit in zip(*rows, strict=True)]
    alphas = [krippendorff_alpha(units, level) for level in ("nominal", "ordinal", "interval")]
    assert [round(alpha or 0, 3) for alpha in alphas] == [0.743, 0.815, 0.849]


def test_alpha_takes_names_and_ignores_nan() -> None:
    assert krippendorff_alpha([["ada", "ada"], ["bo", "bo"], ["ada", float("nan")]]) == 1


def test_alpha_without_variation_or_pairs_is_undefined() -> None:
    assert krippendorff_alpha([["ada", "ada"], ["ada", "ada"]]) is None
    assert krippendorff_alpha([["ada", None], [None, "bo"]]) is None
    assert krippendorff_alpha([]) is None


pairs = st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3)), max_size=20)


@settings(deadline=None)
@given(pairs=pairs)
def test_cohens_kappa_matches_the_confusion_matrix(pairs: list[tuple[int | None, int | None]]) -> None:
    matrix = np.zeros((4, 4))
    for a, b in pairs:
        if a is not None and b is not None:
            matrix[a, b] += 1
    kappa = cohen_kappa([a for a, _ in pairs], [b for _, b in pairs])
    if not matrix.sum():
        assert kappa is None
        return
    shares = matrix / matrix.sum()
    random_order = float(shares.sum(axis=1) @ shares.sum(axis=0))
    if isclose(random_order, 1):
        assert kappa is None
    else:
        assert kappa is not None
        assert isclose(kappa, (np.trace(shares) - random_order) / (1 - random_order), abs_tol=1e-9)


def test_cohens_kappa_matches_a_textbook_table() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no.
    cells = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    kappa = cohen_kappa([a for a, _ in cells], [b for _, b in cells])
    assert kappa == pytest.approx(0.4)


def test_kappa_refuses_lists_of_different_lengths() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        cohen_kappa([1, 2], [1])


def test_pairwise_kappa_compares_every_two_judges_once() -> None:
    rows = pairwise_kappa({"c": ["x", "y"], "a": ["x", "y"], "b": ["x", None]})
    assert [(row["first"], row["second"], row["n"]) for row in rows] == [
        ("a", "b", 1),
        ("a", "c", 2),
        ("b", "c", 1),
    ]
    assert (rows[1]["agreement"], rows[1]["kappa"]) == (1, 1)


@settings(deadline=None)
@given(n=st.integers(1, 300), data=st.data())
def test_the_wilson_interval_solves_the_score_equation(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    rate = rate_of(k, n)
    assert 0 <= rate["low"] <= k / n <= rate["high"] <= 1
    for end in (rate["low"], rate["high"]):
        if 1e-9 < end < 1 - 1e-9:
            assert abs(k / n - end) / sqrt(end * (1 - end) / n) == pytest.approx(1.959964, abs=1e-4)


def test_wilson_interval_matches_a_known_case() -> None:
    rate = rate_of(7, 10)
    assert (round(rate["low"], 4), round(rate["high"], 4)) == (0.3968, 0.8922)


def test_rate_of_no_trials_is_undefined() -> None:
    assert rate_of(0, 0) == {"k": 0, "n": 0, "rate": None, "low": 0, "high": 1}


def test_an_impossible_proportion_is_refused() -> None:
    with pytest.raises(ValueError, match=r"k \(3\) must be between 0 and n \(2\)"):
        rate_of(3, 2)


def test_flip_rate_excludes_items_judged_once() -> None:
    assert flip_rate([True, False, None, True])["k"] == 2
    assert flip_rate([True, False, None, True])["n"] == 3

"""Bradley–Terry ratings."""

from __future__ import annotations

from math import exp, isfinite, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.nodes.judging.ratings import Match, bradley_terry, strengths, win_matrix

matches: st.SearchStrategy[list[Match]] = st.lists(
    st.permutations("abcd").flatmap(
        lambda names: st.builds(
            Match, first=st.just(names[0]), second=st.just(names[1]), score=st.sampled_from([0.0, 0.5, 1.0])
        )
    ),
    min_size=1,
    max_size=25,
)


def gradient(wins: list[list[float]], logs: np.ndarray, prior: float) -> list[float]:
    """Slope of the penalised log-likelihood: observed minus expected wins, the prior included."""
    slopes = []
    for i, row in enumerate(wins):
        expected = sum(
            (row[j] + wins[j][i]) / (1 + exp(logs[j] - logs[i])) for j in range(len(wins)) if j != i
        )
        slopes.append(sum(row) + prior - expected - 2 * prior / (1 + exp(-logs[i])))
    return slopes


def newton(wins: list[list[float]], prior: float) -> np.ndarray:
    """Maximise the same likelihood by damped Newton steps, sharing nothing with the MM algorithm."""
    n = len(wins)
    logs = np.zeros(n)
    for _ in range(200):
        hessian = np.zeros((n, n))
        for i in range(n):
            p = 1 / (1 + exp(-logs[i]))
            hessian[i, i] -= 2 * prior * p * (1 - p)
            for j in range(n):
                if i != j:
                    q = 1 / (1 + exp(logs[j] - logs[i]))
                    weight = (wins[i][j] + wins[j][i]) * q * (1 - q)
                    hessian[i, i] -= weight
                    hessian[i, j] += weight
        step = np.linalg.solve(hessian, np.array(gradient(wins, logs, prior)))
        logs = logs - step / max(1.0, float(np.abs(step).max()))
    return logs


@settings(max_examples=40, deadline=None)
@given(played=matches, prior=st.sampled_from([0.1, 0.5, 2.0]))
def test_mm_finds_the_maximum_that_newton_finds(played: list[Match], prior: float) -> None:
    table = win_matrix(played)
    theirs = newton(table["wins"], prior)
    mine = strengths(np.array(table["wins"]), prior)
    assert mine == pytest.approx(theirs - theirs.mean(), abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(played=matches)
def test_ratings_do_not_depend_on_order_or_side(played: list[Match]) -> None:
    mirrored = [Match(match.second, match.first, 1 - match.score) for match in reversed(played)]
    ours, theirs = (
        {row["player"]: row["rating"] for row in bradley_terry(each, samples=0)}
        for each in (played, mirrored)
    )
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_the_undefeated_stay_finite_and_ahead() -> None:
    table = bradley_terry([Match("ada", "bo", 1)] * 30, samples=200)
    assert [row["player"] for row in table] == ["ada", "bo"]
    assert all(isfinite(row[end]) for row in table for end in ("low", "rating", "high"))


def test_ratings_centre_on_a_thousand() -> None:
    table = bradley_terry([Match("ada", "bo", 1), Match("bo", "cy", 0.5)], samples=0)
    assert sum(row["rating"] for row in table) / 3 == pytest.approx(1000)


def test_ten_to_one_is_four_hundred_points() -> None:
    played = [Match("ada", "bo", 1)] * 10_000 + [Match("ada", "bo", 0)] * 1_000
    table = bradley_terry(played, samples=0)
    assert table[0]["rating"] - table[1]["rating"] == pytest.approx(400, abs=1)


def test_ties_count_half_for_each() -> None:
    table = win_matrix([Match("ada", "bo", 0.5), Match("bo", "ada", 0)], players=["cy"])
    assert table == {"players": ["ada", "bo", "cy"], "wins": [[0, 1.5, 0], [0.5, 0, 0], [0, 0, 0]]}


def test_one_without_a_match_is_average() -> None:
    table = bradley_terry([Match("ada", "bo", 0.5)], players=["cy"], samples=50)
    assert {row["player"]: (round(row["rating"]), row["games"]) for row in table}["cy"] == (1000, 0)


def test_intervals_are_the_same_for_the_same_seed_and_hold_the_rating() -> None:
    played = [Match("ada", "bo", score) for score in (1, 1, 1, 0, 0.5, 1, 0)] * 5
    first, second = (bradley_terry(played, samples=300, rng=np.random.default_rng(7)) for _ in range(2))
    assert first == second
    assert all(row["low"] < row["rating"] < row["high"] for row in first)


def test_more_debates_narrow_the_intervals() -> None:
    few = [Match("ada", "bo", score) for score in (1, 1, 0)] * 4
    widths = [
        row["high"] - row["low"] for played in (few, few * 16) for row in bradley_terry(played, samples=400)
    ]
    assert widths[2] < widths[0] / 2


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    truth = 1000 + 400 / log(10) * log(2) / 2
    covered = 0
    for _ in range(30):
        scores = rng.random(80) < 2 / 3
        table = bradley_terry([Match("ada", "bo", float(won)) for won in scores], samples=100, rng=rng)
        ada = next(row for row in table if row["player"] == "ada")
        covered += ada["low"] <= truth <= ada["high"]
    assert covered >= 25


def test_nobody_makes_an_empty_table() -> None:
    assert bradley_terry([]) == []


@pytest.mark.parametrize(
    ("first", "second", "score"), [("ada", "ada", 1), ("ada", "bo", 1.5), ("ada", "bo", float("nan"))]
)
def test_an_impossible_match_is_refused(first: str, second: str, score: float) -> None:
    with pytest.raises(ValueError, match="two players"):
        Match(first, second, score)


def test_without_a_prior_there_are_no_strengths() -> None:
    with pytest.raises(ValueError, match="prior"):
        strengths(np.zeros((2, 2)), prior=0)

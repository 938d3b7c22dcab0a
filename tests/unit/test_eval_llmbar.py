"""Figures that Moot computes from the published judgements of LLMBar equal the published figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation import DATA, judge_report, published_figures, published_runs

RUNS = published_runs(DATA)


@pytest.mark.skipif(not RUNS, reason="LLMBar is not here: set MOOT_LLMBAR")
@pytest.mark.parametrize("name", RUNS)
def test_recorded_judgements_give_the_published_figures(name: str) -> None:
    row, published = judge_report(DATA, name), published_figures(DATA, name)
    assert {figure: row[figure] for figure in published} == pytest.approx(published, abs=1e-9)


@pytest.mark.skipif(not RUNS, reason="LLMBar is not here: set MOOT_LLMBAR")
def test_gpt_4_without_rules_reaches_93_5_percent_accuracy() -> None:
    row = judge_report(DATA, "natural_gpt4_Vanilla_NoRules")
    assert (row["accuracy"], row["order_agreement"]) == pytest.approx((0.935, 0.97))
    assert round(row["kappa_orders"], 3) == round(row["kappa_as_published"], 3) == 0.939


def test_a_subset_with_replies_that_name_no_winner_is_read(tmp_path: Path) -> None:
    winners = [("1", "1"), ("2", "2"), ("1", None), (None, "2"), ("1", "2"), ("2", "2")]
    rows: list[dict[str, Any]] = [
        {
            "input": f"Task {number}",
            "output_1": "x",
            "output_2": "y",
            "label": 2,
            "results": [
                ["an auxiliary reply", "stop"],
                {f"swap = {swap}": {"winner": each} for swap, each in zip((False, True), pair, strict=True)},
            ],
        }
        for number, pair in enumerate(winners)
    ]
    (tmp_path / "Neighbor_chatgpt_Metrics.result.json").write_text(json.dumps(rows))
    stats = {
        "correct_False": "2 / 6 = 33.33333333333333%",
        "correct_True": "4 / 6 = 66.66666666666666%",
        "correct_average": "50.0%",
        "correct_both": "2 / 6 = 33.33333333333333%",
        "equal": "3 / 6 = 50.0%",
        "kappa_agreement": (4 / 6 - 1 / 2) / (1 - 1 / 2),  # `None` counts as "2": 1,2,1,2,1,2 and 1,2,2,2,2,2
    }
    (tmp_path / "Neighbor_chatgpt_Metrics.stats.json").write_text(json.dumps(stats))
    (name,) = published_runs(tmp_path)
    row, published = judge_report(tmp_path, name), published_figures(tmp_path, name)
    assert {figure: row[figure] for figure in published} == pytest.approx(published)
    assert row["kappa_orders"] != pytest.approx(row["kappa_as_published"])

"""Published judgements of LLMBar give the published figures."""

from __future__ import annotations

import pytest

from benchmarks.evaluation import DATA, PROMPTS, judge_report, published_figures


@pytest.mark.skipif(not DATA.is_dir(), reason="LLMBar is not here: set MOOT_LLMBAR")
@pytest.mark.parametrize("prompt", PROMPTS)
def test_recorded_judgements_give_the_published_figures(prompt: str) -> None:
    row, published = judge_report(DATA, prompt), published_figures(DATA, prompt)
    assert {name: row[name] for name in published} == pytest.approx(published, abs=1e-9)
    if prompt == "Vanilla_NoRules":
        assert row["accuracy"] == pytest.approx(0.935)
        assert row["order_agreement"] == pytest.approx(0.97)
        assert round(row["kappa_orders"], 3) == 0.939

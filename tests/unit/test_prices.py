from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moot.cli.group import app_of
from moot.config.model_settings import ModelSettings
from moot.models.registry import Models
from moot.state.entries import EntryUsage

USED: EntryUsage = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000, "cached_tokens": 500_000}


def test_configured_price_overrides_the_list_and_local_models_have_none() -> None:
    listed = Models().cost_usd("gpt-4o-mini", USED)
    assert listed == pytest.approx(0.5 * 0.15 + 0.5 * 0.075 + 0.6)
    own = ModelSettings(input_usd_per_million=1, output_usd_per_million=2, cached_usd_per_million=0)
    assert Models({"gpt-4o-mini": own}).cost_usd("gpt-4o-mini", USED) == pytest.approx(2.5)
    local = ModelSettings(base_url="http://localhost:11434/v1")
    assert Models({"gpt-4o-mini": local}).cost_usd("gpt-4o-mini", USED) is None
    assert Models({"llama3": local}).names_without_price(["llama3", "offline"]) == ["llama3"]


@pytest.mark.slow
def test_the_plan_shows_the_cost_and_the_source_of_the_prices(tmp_path: Path) -> None:
    words = ["Trams?", "--protocol", "dialogue", "--model", "gpt-4o-mini", "--judge-model", "gpt-4o"]
    done = CliRunner().invoke(app_of("plan"), words)
    assert "lists of genai-prices" in done.stdout
    cost = json.loads(CliRunner().invoke(app_of("plan"), [*words, "--json"]).stdout)
    assert 0 < cost["usd_at_least"] < cost["usd"] < cost["usd_at_most"]
    nobody = CliRunner().invoke(app_of("plan"), ["Trams?", "--model", "llama3"])
    assert "unknown: no price is known for llama3" in nobody.stdout


def test_the_plan_says_in_which_file_and_line_to_set_an_unknown_price(tmp_path: Path) -> None:
    line = '"llama3": {input_usd_per_million: PRICE, output_usd_per_million: PRICE}'
    nobody = " ".join(CliRunner().invoke(app_of("plan"), ["Trams?", "--model", "llama3"]).stdout.split())
    assert f"in a file such as moot.yaml, and add --config moot.yaml: models: {line}" in nobody
    file = tmp_path / "own.yaml"
    file.write_text("model: llama3\n")
    words = ["Trams?", "--config", str(file)]
    advised = " ".join(CliRunner().invoke(app_of("plan"), words).stdout.split())
    assert "own.yaml" in advised
    assert f"models: {line}" in advised
    file.write_text(f"model: llama3\nmodels:\n  {line.replace('PRICE', '1.5')}\n")
    assert "unknown" not in CliRunner().invoke(app_of("plan"), words).stdout

"""Bad input from Python: the same errors as on the command line, and nothing is stored."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, build_graph, open_debates
from moot.cli.inputs import run_config
from moot.cli.show_parts import cost_text
from moot.config.boundary import Permissions
from moot.config.config_files import make_config
from moot.debates.config_checks import check_config, warnings_about
from moot.runtime.environment import Environment
from moot.state.errors import ConfigError, InputError
from tests.support.fakes import FakeModel

PRICES = {"input_usd_per_million": 1, "output_usd_per_million": 0}


@pytest.mark.parametrize("name", ["", "  ", "a" * 500, "a\nb", "a\x1b[2J", 5], ids=repr)
def test_unusable_debate_name_is_rejected_and_nothing_is_stored(tmp_path: Path, name: Any) -> None:
    with open_debates(str(tmp_path / "moot.sqlite"), environment=FakeModel().environment()) as debates:
        with pytest.raises(InputError, match="not a valid name"):
            debates.start("Why?", name=name)
        assert debates.rows() == []
        debate = debates.start("Why?")
        with pytest.raises(InputError, match="not a valid name"):
            debate.fork(name=name)


def test_topic_that_is_not_text_is_rejected(tmp_path: Path) -> None:
    topic: Any = 5
    with (
        open_debates(str(tmp_path / "moot.sqlite"), environment=FakeModel().environment()) as debates,
        pytest.raises(InputError, match="the topic 5 is not text"),
    ):
        debates.start(topic)
    with pytest.raises(InputError, match="the topic 5 is not text"):
        build_graph(environment=FakeModel().environment()).invoke({"topic": topic})


def test_misspelt_setting_is_explained_by_every_entry_point() -> None:
    mistaken: Any = {"trns": 1}
    message = "unknown key 'trns': did you mean 'turns'"
    with pytest.raises(ConfigError, match=message):
        DebateConfig(**mistaken)
    with pytest.raises(ConfigError, match=message):
        make_config(mistaken)
    with pytest.raises(ConfigError, match=message):
        build_graph(environment=FakeModel().environment()).invoke({"topic": "Why?"}, context=mistaken)


def test_cost_limit_requires_the_price_of_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    data: dict[str, Any] = {"model": "dear", "judge": {"model": "judge"}, "limits": {"cost_usd": 1}}
    with pytest.raises(ConfigError, match="for 'judge'"):
        check_config(
            Permissions.of_operator(make_config({**data, "models": {"dear": PRICES}})), Environment()
        )
    priced = {**data, "models": {"dear": PRICES, "judge": PRICES}}
    for usable in (priced, {"limits": {"cost_usd": 1}}):  # offline is free
        check_config(Permissions.of_operator(make_config(usable)), Environment())


def test_settings_of_an_unused_model_cause_a_warning() -> None:
    (warning,) = warnings_about(make_config({"models": {"oflline": {}, "offline": {}}}))
    assert "models.oflline" in warning
    assert "'offline'" in warning


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ({}, []),
        ({"keep_recent": 10, "summarize_every": 10}, []),
        ({"keep_recent": 10, "summarize_every": 50}, ["memory.summarize_every: 60 messages"]),
        ({"keep_recent": 50}, ["memory.keep_recent: 50 messages of 150 words exceed the"]),
    ],
    ids=["defaults", "settings that fit", "summarize_every", "keep_recent"],
)
def test_window_larger_than_its_token_budget_causes_a_warning(
    memory: dict[str, Any], expected: list[str]
) -> None:
    warnings = warnings_about(make_config({"memory": memory}))
    assert [warning[: len(start)] for warning, start in zip(warnings, expected, strict=True)] == expected


def test_summary_that_no_prompt_shows_causes_a_warning() -> None:
    memory = {"summarizer": "llm"}
    (warning,) = warnings_about(make_config({"protocol": "dialogue", "memory": memory}))
    assert "no prompt of 'dialogue' shows a summary" in warning
    assert not warnings_about(make_config({"protocol": "round-robin", "memory": memory}))


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({}, "cost unknown: no prices are configured"),
        ({"dear": PRICES}, "US$ 0.5000, without judge: no prices are configured"),
        ({"dear": PRICES, "judge": PRICES}, "US$ 0.5000"),
    ],
    ids=["none", "some", "all"],
)
def test_cost_text_names_models_without_prices(models: dict[str, Any], expected: str) -> None:
    config = make_config({"model": "dear", "judge": {"model": "judge"}, "models": models})
    assert cost_text({"config": config.to_json(), "usage": {"cost_usd": 0.5}}) == expected


def test_topic_too_long_for_a_prompt_causes_a_warning_before_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_config(None, {}, topic="word " * 3000)
    assert not capsys.readouterr().err
    run_config(None, {}, topic="word " * 6000)
    (warning,) = capsys.readouterr().err.splitlines()
    assert "6,001 tokens" in warning
    assert "4,000" in warning


@pytest.mark.parametrize("value", ["json:Missing", "nowhere.at_all:Thing", "json:JSONDecodeError"])
def test_broken_protocol_plugin_is_rejected_by_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("broken", value, "moot.protocols")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(ConfigError, match=f"protocol: cannot create the plug-in 'broken' \\({value}\\)"):
        make_config({"protocol": "broken"})

"""Arbitrary values anywhere in a configuration: they are accepted or refused with a clear error."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from moot.debates.dry_run import estimate
from moot.state.config import DebateConfig
from moot.state.config.config_files import load_config, make_config
from moot.state.errors import ConfigError, MootError
from tests.support.json_values import json_values, places, with_value_at

WHOLE = DebateConfig.model_validate(
    {
        "protocol": "council",
        "topic": "Which queue?",
        "debaters": [{"name": "Ada", "role": "architect"}, {"name": "Ben", "stance": "no", "model": "m"}],
        "judge": {"panel": [{"id": "one"}, {"id": "two"}], "rule": "mean"},
        "models": {"m": {"timeout_s": 30, "concurrency": 2, "system_role": False}},
        "limits": {"concurrency": 3},
    }
).to_json()
PLACES = places(WHOLE)[1:]


@contextmanager
def refused_with_words(error: type[MootError]) -> Iterator[None]:
    try:
        yield
    except error as refused:
        if not str(refused).strip():
            raise AssertionError("refused without a word") from refused


@settings(max_examples=250, deadline=None)
@example([(("judge", "panel", 1, "rubric"), {"": math.inf})])
@given(bad_value=st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=3))
def test_whatever_stands_anywhere_a_configuration_is_one_or_refused_with_words(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    given_data = with_value_at(copy.deepcopy(WHOLE), bad_value)
    with refused_with_words(ConfigError):
        config = make_config(given_data)
        assert make_config(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(bad_value=st.lists(st.tuples(st.sampled_from(PLACES), json_values), min_size=1, max_size=2))
def test_what_is_a_configuration_can_be_planned_or_is_refused_with_words(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    given_data = with_value_at(copy.deepcopy(WHOLE), bad_value)
    with refused_with_words(MootError):  # a protocol or a tokeniser that is not there
        estimate(make_config(given_data))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("suffix", ["yaml", "json", "toml"])
@given(text=st.text(max_size=40) | json_values.map(json.dumps))
def test_whatever_a_file_holds_it_is_a_mapping_or_refused_with_words(
    tmp_path: Path, suffix: str, text: str
) -> None:
    path = tmp_path / f"c.{suffix}"
    path.write_text(text, encoding="utf-8")
    with refused_with_words(ConfigError):
        assert isinstance(load_config(path), dict)

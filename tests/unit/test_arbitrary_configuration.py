"""Arbitrary values anywhere in a configuration are accepted or refused with a clear error."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from moot.config import DebateConfig
from moot.config.config_files import load_config, make_config
from moot.debates.dry_run import estimate
from moot.state.errors import ConfigError, MootError
from tests.support.json_values import json_paths, json_values, replace_values

FULL_CONFIG = DebateConfig.model_validate(
    {
        "protocol": "council",
        "topic": "Which queue?",
        "debaters": [{"name": "Ada", "role": "architect"}, {"name": "Ben", "stance": "no", "model": "m"}],
        "judge": {"panel": [{"id": "one"}, {"id": "two"}], "rule": "mean"},
        "models": {"m": {"timeout_s": 30, "concurrency": 2, "system_role": False}},
        "limits": {"concurrency": 3},
    }
).to_json()
PATHS = json_paths(FULL_CONFIG)[1:]


@contextmanager
def success_or_message(error: type[MootError]) -> Iterator[None]:
    try:
        yield
    except error as refused:
        if not str(refused).strip():
            raise AssertionError("refused without a word") from refused


@settings(max_examples=250, deadline=None)
@example([(("judge", "panel", 1, "rubric"), {"": math.inf})])
@given(bad_value=st.lists(st.tuples(st.sampled_from(PATHS), json_values), min_size=1, max_size=3))
def test_arbitrary_values_are_accepted_or_refused_with_a_message(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    data = replace_values(copy.deepcopy(FULL_CONFIG), bad_value)
    with success_or_message(ConfigError):
        config = make_config(data)
        assert make_config(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(bad_value=st.lists(st.tuples(st.sampled_from(PATHS), json_values), min_size=1, max_size=2))
def test_arbitrary_configuration_is_estimated_or_refused_with_a_message(
    bad_value: list[tuple[tuple[Any, ...], Any]],
) -> None:
    data = replace_values(copy.deepcopy(FULL_CONFIG), bad_value)
    with success_or_message(MootError):  # for example: an unknown protocol or tokeniser
        estimate(make_config(data))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("suffix", ["yaml", "json", "toml"])
@given(text=st.text(max_size=40) | json_values.map(json.dumps))
def test_arbitrary_file_is_read_as_a_mapping_or_refused_with_a_message(
    tmp_path: Path, suffix: str, text: str
) -> None:
    path = tmp_path / f"c.{suffix}"
    path.write_text(text, encoding="utf-8")
    with success_or_message(ConfigError):
        assert isinstance(load_config(path), dict)

"""Settings for all tests: an isolated environment, time limits, and Hypothesis with a fixed seed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from moot.calls.concurrency import stop

settings.register_profile(
    "moot", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("moot")


QUICK_TIMEOUT_S = 180
"""Limit of a test that takes a few seconds, sixty times that. A lock or event that nobody sets fails soon."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests that are neither slow nor heavy a shorter time limit than pyproject.toml does."""
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        if not markers & {"slow", "heavy", "timeout"} and config.getoption("timeout") is None:
            item.add_marker(pytest.mark.timeout(QUICK_TIMEOUT_S))


@pytest.fixture(autouse=True)
def _isolated_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the developer's settings, and put the default database into the test's folder."""
    for variable in list(os.environ):
        hidden = variable.startswith(("MOOT_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_"))
        if hidden and not variable.startswith("MOOT_REQUIRE_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "default.sqlite"))
    monkeypatch.setenv("MOOT_MODEL", "offline")  # a command refuses to run without a model


@pytest.fixture(autouse=True, scope="session")
def _equal_prompts() -> Iterator[None]:
    """Let equal debates send equal prompts, in the fixtures of modules too."""
    with pytest.MonkeyPatch.context() as patch:
        # The delimiter of quoted text follows from the topic alone.
        patch.setattr("moot.runtime.environment.token_hex", lambda length: "")
        # Prompts do not depend on whether the extra `moot[semantic]` is installed.
        patch.setattr("moot.retrieval.static_vectors.PACKAGE", "moot_without_word_vectors")
        yield


@pytest.fixture(autouse=True)
def _no_stop_request() -> Iterator[None]:
    """Reset the number of stop requests, which is a global of the process."""
    stop.times = 0
    yield
    stop.times = 0

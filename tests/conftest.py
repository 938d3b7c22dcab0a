"""Every test runs on its own: no settings of the developer, no network, no deadline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from moot.calls.effects import stop

settings.register_profile(
    "moot", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("moot")


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the developer's settings and keep the default database in the test's own folder."""
    for variable in list(os.environ):
        ours = variable.startswith(("MOOT_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_"))
        if ours and not variable.startswith("MOOT_REQUIRE_"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("MOOT_DB", str(tmp_path / "default.sqlite"))


@pytest.fixture(autouse=True)
def _unstopped() -> Iterator[None]:
    """Let nobody's request to stop outlive its test: the count of them is the process's."""
    stop.times = 0
    yield
    stop.times = 0

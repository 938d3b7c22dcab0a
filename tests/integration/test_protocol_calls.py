"""Calls that protocols make before a step, with scripted and offline models."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.effects import ModelCall, Reply
from moot.state.config.config_files import make_config
from tests.support.fakes import FakeModel, answer


@pytest.mark.parametrize("protocol", ["moderated", "dialogue"])
def test_a_failed_call_that_decides_a_step_is_recorded(tmp_path: Path, protocol: str) -> None:
    def fails(call: ModelCall) -> Reply:
        asked = call.schema.__name__ if call.schema else ""
        return Reply(error="down") if asked in ("Nomination", "Aspects") else answer(call)

    config = make_config(
        {"protocol": protocol, "turns": 3, "openings": "sequential", "judge": {"enabled": False}}
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(fails).environment()) as debates:
        document = debates.start("Trams or buses?", config).run()
    assert document["status"] == "done"
    told = [error for error in document["errors"] if error["error"] == "decided without a model: down"]
    assert {error["node"] for error in told} == {"plan"}
    assert len(told) == (3 if protocol == "moderated" else 1)

"""Calls that protocols make before a step, with scripted and offline models."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.config_files import make_config
from tests.support.fakes import FakeModel, fake_reply


@pytest.mark.parametrize("protocol", ["moderated", "dialogue"])
def test_failed_planning_call_is_recorded_as_an_error(tmp_path: Path, protocol: str) -> None:
    def fails(call: ModelCall) -> Reply:
        schema = call.schema.__name__ if call.schema else ""
        return Reply(error="down") if schema in ("Nomination", "Aspects") else fake_reply(call)

    config = make_config(
        {"protocol": protocol, "turns": 3, "openings": "sequential", "judge": {"enabled": False}}
    )
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(fails).environment()) as debates:
        document = debates.start("Trams or buses?", config).run()
    assert document["status"] == "done"
    errors = [error for error in document["errors"] if error["error"] == "decided without a model: down"]
    assert {error["node"] for error in errors} == {"plan"}
    assert len(errors) == (3 if protocol == "moderated" else 1)

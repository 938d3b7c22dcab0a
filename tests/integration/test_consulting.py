"""What protocols ask models before a step, and what the built-in model says when it is asked alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.graph.api import open_debates
from moot.nodes.calls import ModelCall, Reply
from moot.state.config.config_files import make_config
from tests.support.fakes import FakeModel, answer


@pytest.mark.parametrize("protocol", ["moderated", "dialogue"])
def test_a_failed_call_that_decides_a_step_is_recorded(tmp_path: Path, protocol: str) -> None:
    def fails(call: ModelCall) -> Reply:
        asked = call.schema.__name__ if call.schema else ""
        return Reply(error="down") if asked in ("Nomination", "Aspects") else answer(call)

    config = make_config({"protocol": protocol, "turns": 3, "judge": {"enabled": False}})
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(fails).environment()) as debates:
        document = debates.start("Trams or buses?", config).run()
    assert document["status"] == "done"
    told = [error for error in document["errors"] if error["error"] == "decided by rule: down"]
    assert {error["node"] for error in told} == {"plan"}
    assert len(told) == (3 if protocol == "moderated" else 1)


def test_the_offline_models_answers_can_be_counted(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        document = debates.start("Is water wet?", make_config({"protocol": "vote", "seed": 1})).run()
    answers = [entry["content"] for entry in document["transcript"] if entry["kind"] != "topic"]
    assert all("\nAnswer: " in text for text in answers)
    assert document["verdict"]["outcome"]["tally"]
    assert document["solution"] in answers

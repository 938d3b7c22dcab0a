"""Every example runs with the offline model, and does what it is there to show."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from moot.graph.api import open_debates
from moot.graph.debate import build_graph
from moot.nodes.calls import Reply
from moot.nodes.driving.environment import Environment
from moot.nodes.protocols.protocol_table import PROTOCOLS
from moot.state.config import DebateConfig
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, answer
from tests.support.moot_command import Moot

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


def _run(moot: Moot, name: str, *words: object) -> Any:
    done = moot("run", "--config", EXAMPLES / name, "--json", "--quiet", *words)
    assert done.code == 0, done.err
    assert done.json["status"] == "done"
    return done.json


def _kinds(document: Any) -> set[str]:
    return {entry["kind"] for entry in document["transcript"]}


def test_the_design_kata_ends_in_a_solution(moot: Moot) -> None:
    document = _run(moot, "design_kata.yaml")
    assert {"proposal", "critique", "refinement", "tool_result"} <= _kinds(document)
    assert document["solution"]


def test_the_policy_debate_is_judged_by_a_panel(moot: Moot) -> None:
    document = _run(moot, "policy_debate.yaml")
    assert {verdict["judge"] for verdict in document["verdicts"]} == {"economist", "mayor", "rider"}


def test_the_persona_dialogue_opens_and_closes(moot: Moot) -> None:
    document = _run(moot, "persona_dialogue.yaml")
    phases = [entry["phase"] for entry in document["transcript"] if entry["speaker"] != "user"]
    assert phases[0].startswith("opening")
    assert phases[-1].startswith("closing")


def test_the_long_form_lives_in_summaries_within_its_budget(moot: Moot) -> None:
    document = _run(moot, "long_form.yaml")
    assert len(document["summaries"]) >= 3
    assert all(receipt["total_tokens"] <= 2000 for receipt in document["receipts"])


def test_people_in_the_loop_are_answered_from_the_file(moot: Moot) -> None:
    answers = EXAMPLES / "human_in_the_loop.answers.yaml"
    document = _run(moot, "human_in_the_loop.yaml", "--answers", answers)
    said = [entry["content"] for entry in document["transcript"] if entry["speaker"] == "robin"]
    assert said == yaml.safe_load(answers.read_text())["Robin"]
    assert {"question", "answer"} <= _kinds(document)


@pytest.fixture
def duels(monkeypatch: pytest.MonkeyPatch) -> DebateConfig:
    monkeypatch.setattr("moot.nodes.protocols.protocol_table.PROTOCOLS", dict(PROTOCOLS))
    runpy.run_path(str(EXAMPLES / "own_protocol.py"))
    return DebateConfig.model_validate(
        {"protocol": "duels", "debaters": [{"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]}
    )


def test_a_protocol_of_ones_own_is_40_lines_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moot.nodes.protocols.protocol_table.PROTOCOLS", dict(PROTOCOLS))
    lines = (EXAMPLES / "own_protocol.py").read_text().partition('"""\n\nfrom')[2].splitlines()
    assert len(lines) <= 43
    runpy.run_path(str(EXAMPLES / "own_protocol.py"), run_name="__main__")
    assert capsys.readouterr().out.strip() in {"ada", "bo", "cy", "tie", "synthesis"}


def test_a_protocol_of_ones_own_resumes_and_is_drawn(duels: DebateConfig, tmp_path: Path) -> None:
    def dying(number: int) -> Any:
        def reply(call: Any) -> Reply:
            if len(model.calls) == number:
                raise RuntimeError("killed")
            return answer(call)

        model = FakeModel(reply)
        return model

    whole, cut = FakeModel(), dying(7)
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        expected = debates.start("T?", duels).run()
    with open_debates(str(tmp_path / "cut.sqlite"), environment=cut.environment()) as debates:
        debate = debates.start("T?", duels)
        with pytest.raises(RuntimeError):
            debate.run()
    with open_debates(str(tmp_path / "cut.sqlite"), environment=FakeModel().environment()) as debates:
        resumed = debates.get(debate.id).run()
    assert resumed["transcript"] == expected["transcript"]
    assert [entry["phase"] for entry in expected["transcript"]].count("duel") == 12
    assert "turn" in build_graph(environment=Environment()).get_graph().draw_mermaid()


def test_another_protocols_name_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.nodes.protocols.protocol import Protocol
    from moot.nodes.protocols.protocol_table import register

    class Impostor(Protocol):
        name = "council"

    with pytest.raises(ConfigError, match="council"):
        register(Impostor())

"""Every example runs with the offline model and shows its feature."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from moot.api import open_debates
from moot.calls.model_calls import Reply
from moot.cli.commands.config import template
from moot.config import DebateConfig, ProtocolSettings
from moot.config.config_files import make_config
from moot.debates.dry_run import with_plan
from moot.graph.json_schemas import config_schema
from moot.protocols.registry import PROTOCOLS
from moot.state.errors import ConfigError
from tests.support.fakes import FakeModel, fake_reply
from tests.support.moot_command import Moot
from tests.support.openai_answers import ask_question
from tests.support.openai_server import OpenAIServer

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


def _run(moot: Moot, name: str, *words: object, **variables: Any) -> Any:
    done = moot("run", "--config", EXAMPLES / name, "--json", "--quiet", *words, **variables)
    assert done.code == 0, done.err
    assert done.json["status"] == "done"
    return done.json


def _kinds(document: Any) -> set[str]:
    return {entry["kind"] for entry in document["transcript"]}


def test_design_kata_ends_with_a_placeholder_verdict(moot: Moot) -> None:
    document = _run(moot, "design_kata.yaml")
    assert {"proposal", "critique", "refinement", "tool_result"} <= _kinds(document)
    assert document["verdict"]["placeholder"]  # no model judged, so there is no solution
    assert document["solution"] == ""


def test_policy_debate_is_judged_by_a_panel(moot: Moot) -> None:
    document = _run(moot, "policy_debate.yaml")
    assert {verdict["judge"] for verdict in document["verdicts"]} == {"economist", "mayor", "rider"}


def test_persona_dialogue_starts_with_openings_and_ends_with_closings(moot: Moot) -> None:
    document = _run(moot, "persona_dialogue.yaml")
    phases = [entry["phase"] for entry in document["transcript"] if entry["speaker"] != "user"]
    openings = [phase.startswith("opening") for phase in phases]
    closings = [phase.startswith("closing") for phase in phases]
    assert openings == sorted(openings, reverse=True)
    assert closings == sorted(closings)
    assert sum(openings) == sum(closings) == len(document["config"]["debaters"])


def test_long_form_debate_is_summarized_within_its_budget(moot: Moot) -> None:
    document = _run(moot, "long_form.yaml")
    covered = [summary["covers_through_seq"] for summary in document["summaries"]]
    assert len(covered) >= 3
    assert covered == sorted({*covered})
    assert len(document["receipts"]) == 60
    assert all(1000 < receipt["total_tokens"] <= 2000 for receipt in document["receipts"][-20:])
    assert all(receipt["total_tokens"] <= 2000 for receipt in document["receipts"])


def test_human_in_the_loop_replies_come_from_the_answers_file(moot: Moot) -> None:
    answers = EXAMPLES / "human_in_the_loop.answers.yaml"
    with OpenAIServer(ask_question) as server:  # the offline model asks nothing
        model = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        words = ("--answers", answers, "--model", "test-model")
        document = _run(moot, "human_in_the_loop.yaml", *words, **model)
    messages = [entry["content"] for entry in document["transcript"] if entry["speaker"] == "robin"]
    assert messages == yaml.safe_load(answers.read_text())["Robin"]
    assert {"question", "answer"} <= _kinds(document)


@pytest.fixture
def duels(monkeypatch: pytest.MonkeyPatch) -> DebateConfig:
    monkeypatch.setattr("moot.protocols.registry.PROTOCOLS", dict(PROTOCOLS))
    runpy.run_path(str(EXAMPLES / "own_protocol.py"))
    return DebateConfig(protocol="duels")


def test_custom_protocol_example_runs_and_has_at_most_50_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moot.protocols.registry.PROTOCOLS", dict(PROTOCOLS))
    lines = (EXAMPLES / "own_protocol.py").read_text().partition('"""\n\nfrom')[2].splitlines()
    assert len([line for line in lines if line]) <= 50
    runpy.run_path(str(EXAMPLES / "own_protocol.py"), run_name="__main__")
    assert capsys.readouterr().out.strip() in {"ada", "bo", "cy", "tie", "synthesis"}


def test_custom_protocol_resumes_to_the_same_transcript(duels: DebateConfig, tmp_path: Path) -> None:
    def failing_model(number: int) -> Any:
        def reply(call: Any) -> Reply:
            if len(model.calls) == number:
                raise RuntimeError("killed")
            return fake_reply(call)

        model = FakeModel(reply)
        return model

    whole, cut = FakeModel(), failing_model(7)
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


@pytest.fixture
def installed_duels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that provides the protocol `duels` through an entry point."""
    source = (EXAMPLES / "own_protocol.py").read_text().replace("register(Duels())\n", "")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "duelling.py").write_text(source)
    info = tmp_path / "site" / "duelling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: duelling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[moot.protocols]\nduels = duelling:Duels\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr("moot.protocols.registry.PROTOCOLS", dict(PROTOCOLS))
    monkeypatch.delitem(sys.modules, "duelling", raising=False)


@pytest.mark.usefixtures("installed_duels")
def test_settings_of_an_installed_protocol_are_known_to_every_other_protocol() -> None:
    config = make_config({"protocol": "council", "duels": {"messages": 1, "words": 30}})
    assert config.to_json()["duels"] == {"messages": 1, "words": 30}


@pytest.mark.usefixtures("installed_duels")
def test_installed_protocol_provides_rules_prompts_settings_and_debaters(tmp_path: Path) -> None:
    config = make_config({"protocol": "duels", "duels": {"messages": 1, "words": 30}})
    assert [debater.id for debater in config.debaters] == ["ada", "bo", "cy"]
    model = FakeModel()
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        document = debates.start("Trams or buses?", config).run()
    assert with_plan(document)["planned"]["calls"] == len(model.calls)
    assert document["config"]["duels"] == {"messages": 1, "words": 30}
    messages = [entry for entry in document["transcript"] if entry["kind"] == "speech"]
    assert [entry["phase"] for entry in messages] == ["duel"] * 6 + ["closing"] * 3
    second, third = ("\n".join(m["content"] for m in call.messages) for call in model.calls[1:3])
    assert "You duel with Ada. Answer its strongest point" in second
    assert messages[0]["content"] in second
    assert messages[0]["content"] not in third


@pytest.mark.usefixtures("installed_duels")
def test_settings_of_an_installed_protocol_are_validated_and_documented() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("unknown key 'duels.messagez': did you mean 'duels.messages'?")
    ):
        make_config({"protocol": "duels", "duels": {"messagez": 1}})
    with pytest.raises(ConfigError, match=r"duels\.words: Input should be a valid integer"):
        make_config({"duels": {"words": "many"}})
    assert "\nduels:\n  # Messages of each side in a duel.\n  messages: 2\n" in template()
    assert Draft202012Validator(config_schema()).is_valid({"duels": {"messages": 3}})
    assert not Draft202012Validator(config_schema()).is_valid({"duels": {"messagez": 3}})
    assert "duels" not in make_config({"duels": {"messages": 2}}).to_json()
    assert make_config({"duels": {"messages": 3}}).to_json()["duels"]["messages"] == 3


def test_config_keeps_changed_sections_of_other_protocols() -> None:
    config = make_config({"protocol": "council", "vote": {"answers": 5}, "moderator": {"temperature": 0.9}})
    kept = config.to_json()
    assert kept["moderator"]["temperature"] == 0.9
    assert kept["termination"]["type"] == "convergence"
    assert not kept.keys() & {"vote", "dialogue"}
    assert make_config(kept) == config


@pytest.mark.parametrize(
    "key", ["vote", "turns"], ids=["section of another protocol", "setting of every debate"]
)
def test_protocol_cannot_reuse_the_key_of_a_config_section(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.protocols.base import Protocol
    from moot.protocols.registry import register

    monkeypatch.setattr("moot.protocols.registry.PROTOCOLS", dict(PROTOCOLS))
    own = type("Own", (ProtocolSettings,), {"key": key, "__module__": __name__})
    with pytest.raises(ConfigError, match=key):
        register(type("Taker", (Protocol,), {"name": "taker", "settings": own})())


def test_protocol_cannot_reuse_the_name_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from moot.protocols.base import Protocol
    from moot.protocols.registry import register

    class Impostor(Protocol):
        name = "council"

    with pytest.raises(ConfigError, match="council"):
        register(Impostor())

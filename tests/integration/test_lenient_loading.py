"""Stored debates load with any configuration. Only a run needs its protocol and plug-ins."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.api import Debate, open_debates
from moot.cli.group import app_of
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.config.debate_config import read_stored, runnable_config
from moot.plugins.web.debate_host import DebateHost, DebateReader
from moot.protocols.registry import PROTOCOLS
from moot.state.errors import ConfigError

OWN_PROTOCOL = Path(__file__).parents[2] / "examples" / "own_protocol.py"
TABLE = "moot.protocols.registry.PROTOCOLS"
CONFIG_CHANGES = {
    "unknown section": lambda config: {**config, "weather": {"rain": True}},
    "unknown field": lambda config: {**config, "memory": {**config["memory"], "mood": "good"}},
    "removed summariser": lambda config: {**config, "memory": {**config["memory"], "summarizer": "gone"}},
}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with two debates: one of a missing protocol, one of a built-in protocol."""
    path = str(tmp_path / "duels.sqlite")
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as installed:
        installed.setattr(TABLE, dict(PROTOCOLS))
        runpy.run_path(str(OWN_PROTOCOL))
        with open_debates(path) as debates:
            debates.start("Is a hot dog a sandwich?", DebateConfig(protocol="duels"), name="duel").run()
            debates.start("Is a hot dog a taco?", DebateConfig(turns=2), name="plain").run()
    assert "duels" not in PROTOCOLS
    return path


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["list"], "hot dog"),
        (["search", "hot dog"], "a taco"),
        (["show", "duel"], "hot dog"),
        (["show", "duel", "--json"], '"duels"'),
        (["report", "duel", "--format", "md", "-o", "duel.md"], ""),
        (["report", "duel", "--format", "json", "-o", "duel.json"], ""),
        (["audit", "duel"], "ledger"),
        (["delete", "duel", "--yes"], ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_commands_show_and_delete_a_debate_of_a_missing_protocol(
    command: list[str], shown: str, database: str
) -> None:
    done = CliRunner().invoke(app_of(command[0]), [*command[1:], "--db", database], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert shown in done.output


def test_search_includes_debates_of_a_missing_protocol(database: str) -> None:
    done = CliRunner().invoke(app_of("search"), ["hot dog", "--db", database, "--json"])
    debates = {each["debate"] for each in json.loads(done.stdout)}
    assert len(debates) == 2


def test_a_new_run_names_the_missing_protocol(database: str) -> None:
    with open_debates(database) as debates:
        debate = debates.get("duel")
        with pytest.raises(ConfigError, match=r"'duels' is not installed here.*register"):
            debate.run(turns=1)
        with pytest.raises(ConfigError, match="unknown protocol 'duels'"):
            debate.judge(dry_run=True)
        assert not debate.can_go_on()
        page = DebateReader(DebateHost(debates, DebateConfig()))
        assert page.overview(debate)["topic"] == "Is a hot dog a sandwich?"


def _store(debate: Debate, config: object) -> None:
    with debate.session.writing() as held:
        held.update({"config": config})


@pytest.mark.parametrize("change", CONFIG_CHANGES.values(), ids=CONFIG_CHANGES)
def test_a_stored_configuration_with_unknown_values_is_read(
    change: Callable[[dict[str, Any]], dict[str, Any]], database: str
) -> None:
    with open_debates(database) as debates:
        debate = debates.get("plain")
        before = debate.config()
        config = change(debate.state().values["config"])
        _store(debate, config)
        assert debate.state().values["config"] == config
        assert debate.document()["config"] == config
        shown = debate.config()
        assert shown.names() == before.names()
        assert shown.protocol == before.protocol
    for command in (
        ["show", "plain"],
        ["report", "plain", "--format", "md", "-o", "x.md"],
        ["search", "the"],
    ):
        done = CliRunner().invoke(
            app_of(command[0]), [*command[1:], "--db", database], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output


def test_unknown_keys_of_a_stored_configuration_are_ignored() -> None:
    termination = {"type": "convergence", "threshold": 0.5}
    config = make_config({"protocol": "council", "termination": termination}).to_json()
    unknown = {**config, "weather": 1, "limits": {**config["limits"], "rain": True}}
    assert runnable_config({"config": unknown}).to_json() == config


@pytest.mark.parametrize(
    ("junk", "key"),
    [
        ({"debaters": 7}, "debaters"),
        ({"limits": {"total_tokens": "many"}}, r"limits\.total_tokens"),
        ({"dialogue": 7}, "dialogue"),
        ({"order": ["nobody"]}, "order"),
    ],
    ids=str,
)
def test_an_invalid_stored_value_is_refused_with_its_key(junk: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        read_stored({**make_config({"turns": 2}).to_json(), **junk})


def test_a_debate_with_an_invalid_stored_value_can_be_listed_and_deleted(database: str) -> None:
    with open_debates(database) as debates:
        debate = debates.get("plain")
        _store(debate, {**debate.state().values["config"], "limits": {"total_tokens": "many"}})
    for command in (["list"], ["delete", "plain", "--yes"]):
        done = CliRunner().invoke(
            app_of(command[0]), [*command[1:], "--db", database], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output

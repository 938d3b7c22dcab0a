"""Moot's own plug-ins: found by entry point, loaded when needed, and clear about what is missing."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.cli.group import _root, shipped_commands
from moot.importers import parse_transcript
from moot.plugins import postgres
from moot.state import settings
from moot.state.errors import ConfigError
from moot.storage.servers import server_of

PARTS = {"batch", "compare", "eval", "import", "jobs", "mcp", "serve", "studio", "worker"}


def _use_only(points: dict[str, EntryPoint], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("moot.importers", "moot.storage.servers"):
        monkeypatch.setattr(f"{module}.plugin_entry_points", lambda group: points)


def test_commands_of_the_own_plugins_are_shipped() -> None:
    assert shipped_commands().keys() >= PARTS


@pytest.mark.parametrize(
    ("words", "blocked", "extra"),
    [
        (["serve"], "starlette", "serve"),
        (["mcp"], "mcp", "mcp"),
        (["studio"], "langgraph_api", "studio"),
        (["jobs", "list", "--db", "postgresql://127.0.0.1:1/moot"], "procrastinate", "queue"),
        (["list", "--db", "postgresql://127.0.0.1:1/moot"], "psycopg", "postgres"),
    ],
    ids=["serve", "mcp", "studio", "queue", "postgres"],
)
def test_command_without_its_packages_says_what_to_install(
    words: list[str], blocked: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("postgres", "postgres_saver", "work_queue"):  # an earlier test may have imported them
        monkeypatch.delitem(sys.modules, f"moot.plugins.postgres.{name}", raising=False)
        monkeypatch.delattr(postgres, name, raising=False)
    monkeypatch.setitem(sys.modules, blocked, None)  # Python then says that the package is not installed
    done: Any = CliRunner().invoke(_root, words, prog_name="moot")
    assert isinstance(done.exception, ConfigError)
    assert done.exception.exit_code == 2
    assert f"install 'moot[{extra}]'" in str(done.exception)


def test_database_of_an_unknown_scheme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_only({}, monkeypatch)
    with pytest.raises(ConfigError, match="stores debates in a postgresql:// database"):
        server_of("postgresql://db/moot")


def test_transcript_without_its_plugin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_only({}, monkeypatch)
    with pytest.raises(ConfigError, match="reads transcripts"):
        parse_transcript("Ada: Yes.")


def test_own_plugin_is_preferred_over_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (EntryPoint("eval", value, "moot.commands") for value in ("moot.plugins.x:f", "acme.x:f"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [own, other])
    assert settings.plugin_entry_points("moot.commands")["eval"] == own

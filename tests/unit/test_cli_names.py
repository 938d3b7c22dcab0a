"""The first word after `moot`: a command, a question, or another program's name for a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.api import DebateConfig, open_debates
from moot.cli.group import _root, all_commands, find_command, is_question, shipped_commands
from moot.state.errors import InputError

SHORT: dict[str, Any] = {"turns": 1, "judge": {"enabled": False}}


def moot(*words: str) -> Any:
    return CliRunner().invoke(_root, list(words), prog_name="moot")


@pytest.mark.parametrize("name", shipped_commands())
def test_command_index_matches_the_loaded_commands(name: str) -> None:
    indexed = find_command(name)
    assert indexed is not None
    function, declared = indexed.load()
    assert (declared.name, declared.panel, declared.examples) == (name, indexed.panel, indexed.examples)
    assert (function.__doc__ or "").splitlines()[0] == indexed.help


def test_commands_are_sorted_by_panel_and_name() -> None:
    rows = [(each.panel, each.name) for each in all_commands().values()]
    panels = list(dict.fromkeys(panel for panel, _ in rows))
    assert rows == sorted(rows, key=lambda row: (panels.index(row[0]), row[1]))
    assert panels[0] == "Run debates"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rm", "delete"), ("ls", "list"), ("export", "report"), ("resum", "resume"), ("debate", "run")],
    ids=str,
)
def test_unknown_command_suggests_the_nearest_command(typed: str, meant: str) -> None:
    done = moot(typed, "x")
    assert isinstance(done.exception, InputError)
    assert f"Did you mean '{meant}'?" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "question"),
    [("Should we?", True), ("Tabs or spaces", True), ("why?", True), ("run", False), ("--db", False)],
    ids=str,
)
def test_is_question_distinguishes_questions_from_commands(words: str, question: bool) -> None:
    assert is_question(words) is question


def test_question_without_a_command_runs_a_debate(tmp_path: Path) -> None:
    db = str(tmp_path / "d.sqlite")
    done = moot("Tabs or spaces?", "--turns", "1", "--no-judge", "--json", "--db", db)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["topic"] == "Tabs or spaces?"


def test_latest_is_the_most_recently_active_debate(tmp_path: Path) -> None:
    db = str(tmp_path / "d.sqlite")
    with open_debates(db) as debates:
        for name in ("one", "two"):
            debates.start("Tabs?", DebateConfig(**SHORT), name=name).run()
        with pytest.raises(InputError, match=r"'latest' is reserved for the most recently"):
            debates.start("Tabs?", DebateConfig(**SHORT), name="latest")
    assert json.loads(moot("show", "latest", "--json", "--db", db).stdout)["name"] == "two"
    assert moot("show", "latest", "--db", str(tmp_path / "none.sqlite")).exception

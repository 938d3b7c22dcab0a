"""`moot list`, `search`, `rename`, `delete`, `say`, `import` and `show --follow`, in this process."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moot.graph.api import DebateConfig, open_debates
from moot.graph.cli.group import app_of
from moot.graph.cli.screen.output import wrap_for_terminal
from moot.nodes.models.recorded import recording_config
from moot.state.errors import DebateExists, DebateNotFound, InputError
from moot.state.event_loop import rest, stop

SPEECHES = (
    "Ann: Trams are cheap.\nBob: Trams are slow.\nPhil: And the clock says time.\nAnn: Not in the rain.\n"
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("list") / "d.sqlite")
    with open_debates(path) as debates:
        debates.start(None, DebateConfig(**recording_config("monolith")), name="monolith").run()
        short = DebateConfig.model_validate({"turns": 1, "judge": {"enabled": False}})
        debates.start("Ships?", short, name="cup-ada-vs-ben-1-0123456789").run()
        debates.start("Trams?", short, name="trams")
    return path


def moot(name: str, *words: str, stdin: str = "") -> Any:
    done = CliRunner().invoke(app_of(name), list(words), input=stdin)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_list_has_winner_and_model_and_folds_the_matches_of_tournaments(db: str) -> None:
    said = moot("list", "--db", db)
    line = next(line for line in said.stdout.splitlines() if line.startswith("monolith"))
    assert "Ben Okafor" in line
    assert "recorded:monolith"[:12] in line
    assert "-vs-" not in said.stdout
    assert "folded: 1 match of tournaments" in said.stderr
    assert "-vs-" in moot("list", "--matches", "--db", db).stdout
    rows = json.loads(moot("list", "--status", "done", "--limit", "9", "--json", "--db", db).stdout)
    assert {row["status"] for row in rows} == {"done"}
    assert [
        row["name"] for row in json.loads(moot("list", "--grep", "OKAFOR", "--json", "--db", db).stdout)
    ] == ["monolith"]


def test_a_search_goes_through_all_debates(db: str) -> None:
    said = moot("search", "freeze", "rotation", "--db", db)
    assert "monolith · m0000" in said.stdout
    found = json.loads(moot("search", "hiring", "--json", "--limit", "1", "--db", db).stdout)
    assert "hiring" in found[0]["text"]
    assert "nobody said that" in moot("search", "no such words", "--db", db).stderr


def test_a_debate_is_renamed_found_by_both_names_and_several_are_deleted(tmp_path: Path) -> None:
    path = str(tmp_path / "d.sqlite")
    with open_debates(path) as debates:
        ids = {name: debates.start("Trams?", name=name).id for name in ("one", "two", "three")}
    moot("rename", "one", "first", "--db", path)
    with open_debates(path) as debates:
        assert debates.get("first").id == debates.get("one").id == ids["one"]
    with pytest.raises(DebateExists, match="is, or was, called 'one'"):
        moot("rename", "two", "one", "--db", path)
    with pytest.raises(DebateNotFound):
        moot("delete", "first", "four", "--yes", "--db", path)
    gone = json.loads(moot("delete", "first", "two", "--yes", "--json", "--db", path).stdout)
    assert [each["name"] for each in gone] == ["first", "two"]
    assert [row["name"] for row in json.loads(moot("list", "--json", "--db", path).stdout)] == ["three"]


def test_a_name_that_is_nearly_a_debaters_is_asked_about(db: str) -> None:
    with pytest.raises(InputError, match="is 'Ben Okafor' meant"):
        moot("say", "monolith", "Wait.", "--as", "Ben Okafr", "--db", db)
    moot("say", "trams", "Wait.", "--as", "Zoe", "--db", db)


@pytest.mark.parametrize(("words", "argue"), [((), 3), (("--moderator", "phil"), 2)])
def test_who_moderates_an_imported_debate_is_told_and_not_scored(
    tmp_path: Path, words: tuple[str, ...], argue: int
) -> None:
    file, path = tmp_path / "trams.txt", str(tmp_path / "d.sqlite")
    file.write_text(SPEECHES)
    said = moot("import", str(file), "--id", "t", "--db", path, *words)
    with open_debates(path) as debates:
        assert len(debates.get("t").config().debaters) == argue
    assert ("--moderator NAME" in said.stderr) is not bool(words)
    with pytest.raises(InputError, match="nobody speaks by that name; there are Ann, Bob, Phil"):
        moot("import", str(file), "--moderator", "Zoe", "--db", path)


def test_following_a_debate_that_nobody_runs_shows_it_and_ends(db: str) -> None:
    said = moot("show", "monolith", "--follow", "--db", db).stdout
    assert said.index("Ada Lindqvist") < said.index("Ben Okafor wins")


def test_no_word_breaks_on_a_narrow_terminal_and_a_command_stays_a_line(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "20")
    command = "  go on: moot resume a-debate --turns 6"
    wrapped = wrap_for_terminal(
        f"Antidisestablishmentarianism is long, and so is this.\n{command}", Terminal()
    )
    assert wrapped.split("\n") == [
        "Antidisestablishmentarianism",
        "is long, and so is",
        "this.",
        command,
    ]
    monkeypatch.setattr("moot.graph.cli.commands.listing.columns", lambda: 40)
    assert "done · Ben Okafor · recorded:monolith" in moot("list", "--db", db).stdout


def test_a_wait_ends_once_a_person_asks_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "times", 1)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(rest(60))

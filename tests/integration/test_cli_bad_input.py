"""Bad input: a clear message, the right exit code, and nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.moot_command import Moot


@dataclass(frozen=True)
class Case:
    """A command with an error, and what it must print."""

    id: str
    arguments: tuple[str, ...]
    message: str
    file: str = ""
    """The content of the configuration file."""
    name: str = "c.yaml"
    """The name of the configuration file."""
    code: int = 2


RUN_WITH_CONFIG = ("run", "Topic?", "--config", "c.yaml")
CASES = [
    Case("empty topic", ("run", ""), "topic is empty"),
    Case("blank topic", ("run", " \n"), "topic is empty"),
    Case("empty topic on stdin", ("run", "-"), "topic is empty"),
    Case("no topic", ("run",), "no topic"),
    Case("missing topic file", ("run", "@nowhere.txt"), "nowhere.txt"),
    Case("folder as topic file", ("run", "@."), "cannot read"),
    Case("blank topic in the configuration", ("run", "--config", "c.yaml"), "topic is empty", "topic: ' '"),
    Case("debaters not a list", RUN_WITH_CONFIG, "debaters: give a list, with each item", "debaters: Ada"),
    Case(
        "debaters as plain names",
        RUN_WITH_CONFIG,
        "debaters.0: give keys and values: `- {name",
        "debaters: [Ada]",
    ),
    Case("section as a word", RUN_WITH_CONFIG, "memory: give keys and values", "memory: large"),
    Case(
        "duplicate key in YAML",
        RUN_WITH_CONFIG,
        "these keys occur more than once: 'turns'",
        "turns: 3\nturns: 5",
    ),
    Case(
        "duplicate nested key",
        RUN_WITH_CONFIG,
        "these keys occur more than once: 'total'",
        "memory: {budget: {total: 1, total: 2}}",
    ),
    Case(
        "duplicate key in JSON",
        ("run", "T?", "--config", "c.json"),
        "these keys occur more than once: 'turns'",
        '{"turns": 3, "turns": 5}',
        "c.json",
    ),
    Case(
        "cost limit without prices",
        ("run", "T?", "--config", "c.yaml", "--model", "m"),
        "prices",
        "limits: {cost_usd: 1}\nmodels: {m: {base_url: 'http://127.0.0.1:9', input_usd_per_million: 1}}",
    ),
    Case("no debaters", RUN_WITH_CONFIG, "the list has no debaters", "debaters: []"),
    Case("duplicate ids", ("run", "T?", "-d", "Ada", "-d", "ada"), "duplicate debater ids ['ada']"),
    Case("debater without a name", ("run", "T?", "-d", ":engineer"), "NAME[:ROLE[:STANCE]]"),
    Case("negative turns", ("run", "T?", "--turns", "-3"), "--turns"),
    Case("zero turns", ("run", "T?", "--turns", "0"), "--turns"),
    Case("negative turns in the configuration", RUN_WITH_CONFIG, "turns", "turns: -3"),
    Case("temperature too high", ("run", "T?", "--temperature", "3"), "--temperature"),
    Case("unknown key", RUN_WITH_CONFIG, "unknown key 'tuns': did you mean 'turns'?", "tuns: 3"),
    Case(
        "unknown nested key",
        RUN_WITH_CONFIG,
        "did you mean 'memory.budget.total'?",
        "memory: {budget: {totl: 1}}",
    ),
    Case("malformed YAML", RUN_WITH_CONFIG, "malformed", "turns: [1,"),
    Case("number of 100,000 digits", RUN_WITH_CONFIG, "malformed", f"seed: {'1' * 100_000}"),
    Case("name of 300 characters", ("run", "T?", "-m", "offline", "--context", "n" * 300), "name too long"),
    Case("YAML list instead of a mapping", RUN_WITH_CONFIG, "must be a mapping of keys to values", "- 1"),
    Case("missing configuration file", ("run", "T?", "--config", "missing.yaml"), "missing.yaml"),
    Case(
        "file of an unknown type", ("run", "T?", "--config", "c.ini"), ".yaml, .toml or .json", "a=1", "c.ini"
    ),
    Case("budget too small", RUN_WITH_CONFIG, "memory.budget.total", "memory: {budget: {total: 50}}"),
    Case(
        "budget smaller than its parts",
        RUN_WITH_CONFIG,
        "memory.budget",
        "memory: {budget: {total: 900, system: 800}}",
    ),
    Case("URL as model name", ("run", "T?", "--model", "http://localhost:1"), "OPENAI_BASE_URL"),
    Case("model without an API key", ("run", "T?", "--model", "gpt-4o"), "OPENAI_API_KEY"),
    Case("unknown protocol", ("run", "T?", "--protocol", "duel"), "duel"),
    Case("unknown summariser", ("run", "T?", "--summarizer", "magic"), "magic"),
    Case("missing rubric", ("run", "T?", "--rubric", "mine.yaml"), "mine.yaml"),
    Case("output of an unknown type", ("run", "T?", "-o", "out.pdf"), "out.pdf"),
    Case("output in a missing folder", ("run", "T?", "-o", "no/out.md"), "no/out.md"),
    Case("missing context file", ("run", "T?", "--context", "no.md"), "no.md"),
    Case("empty name", ("run", "T?", "--id", ""), "--id"),
    Case("unprintable name", ("run", "T?", "--id", "a\x1b[2J"), "printable"),
    Case("unknown option", ("run", "T?", "--tunrs", "3"), "--tunrs"),
    Case("resume a missing debate", ("resume", "nobody"), "no debate", code=4),
    Case("show a missing debate", ("show", "nobody"), "no debate", code=4),
    Case("report a missing debate", ("report", "nobody", "--json"), "no debate", code=4),
    Case("delete a missing debate", ("delete", "nobody", "--yes"), "no debate", code=4),
    Case("fork a missing debate", ("fork", "nobody"), "no debate", code=4),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_is_explained_and_writes_nothing(tmp_path: Path, case: Case) -> None:
    moot = Moot(tmp_path)
    if case.file:
        (tmp_path / case.name).write_text(case.file)
    before = sorted(tmp_path.rglob("*"))
    done = moot(*case.arguments)
    assert done.code == case.code, done.err
    assert case.message in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err
    assert done.out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("url", ["mysql://x/y", " ", "."], ids=["unknown scheme", "blank", "folder"])
def test_invalid_database_urls_are_refused(tmp_path: Path, url: str) -> None:
    done = Moot(tmp_path)("run", "T?", "--db", url)
    assert done.code == 2, done.err
    assert "database" in done.err
    assert sorted(tmp_path.rglob("*")) == []


def test_a_non_database_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    moot.db.write_text("this is a diary, not a database\n" * 100)
    for words in (("run", "T?"), ("list",), ("show", "x")):
        done = moot(*words)
        assert done.code == 2, done.err
        assert "cannot open database" in done.err
    assert moot.db.read_text().startswith("this is a diary")


def test_failed_commands_leave_an_existing_database_unchanged(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("run", "T?", "--turns", "1", "--no-judge", "--id", "one", "-q").code == 0
    before = moot("list", "--json").out
    assert moot("run", "T?", "--id", "one").code == 2
    assert moot("run", "").code == 2
    assert moot("fork", "one", "--after", "77").code == 2
    assert moot("resume", "one", "--turns", "-1").code == 2
    assert moot("list", "--json").out == before


def test_list_does_not_create_a_database(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("list", "--json").json == []
    assert not moot.db.exists()


@pytest.mark.parametrize("size", [8_192, 150_000])
def test_a_limit_for_the_size_of_files_is_named(tmp_path: Path, size: int) -> None:
    """A database that reached `ulimit -f` is not called read-only or broken."""
    words = ("run", "Tabs?", "--turns", "2", "--model", "offline", "--quiet")
    process = Moot(tmp_path).start(*words, disk_bytes=size)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, f"files may have {size // 1024} KiB here: raise `ulimit -f`" in errors) == (
        3,
        True,
    )

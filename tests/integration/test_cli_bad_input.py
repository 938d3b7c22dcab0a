"""Bad input: a clear message, the right exit code, and nothing written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.moot_command import Moot


@dataclass(frozen=True)
class Case:
    """One mistake."""

    id: str
    words: tuple[str, ...]
    says: str
    file: str = ""
    """Content of the configuration file."""
    name: str = "c.yaml"
    """The configuration file."""
    code: int = 2


CONFIGURED = ("run", "Topic?", "--config", "c.yaml")
CASES = [
    Case("empty topic", ("run", ""), "topic is empty"),
    Case("blank topic", ("run", " \n"), "topic is empty"),
    Case("empty topic on stdin", ("run", "-"), "topic is empty"),
    Case("no topic", ("run",), "no topic"),
    Case("topic file that is not there", ("run", "@nowhere.txt"), "nowhere.txt"),
    Case("topic file that is a folder", ("run", "@."), "cannot read"),
    Case("blank topic in the file", ("run", "--config", "c.yaml"), "topic is empty", "topic: ' '"),
    Case("a debater that is no list", CONFIGURED, "debaters: give a list, with each item", "debaters: Ada"),
    Case(
        "debaters that are names", CONFIGURED, "debaters.0: give keys and values: `- {name", "debaters: [Ada]"
    ),
    Case("section that is a word", CONFIGURED, "memory: give keys and values", "memory: large"),
    Case(
        "key given twice in YAML",
        CONFIGURED,
        "these keys occur more than once: 'turns'",
        "turns: 3\nturns: 5",
    ),
    Case(
        "inner key given twice",
        CONFIGURED,
        "these keys occur more than once: 'total'",
        "memory: {budget: {total: 1, total: 2}}",
    ),
    Case(
        "key given twice in JSON",
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
    Case("0 debaters", CONFIGURED, "the list has no debaters", "debaters: []"),
    Case("duplicate ids", ("run", "T?", "-d", "Ada", "-d", "ada"), "duplicate debater ids ['ada']"),
    Case("debater without a name", ("run", "T?", "-d", ":engineer"), "NAME[:ROLE[:STANCE]]"),
    Case("negative turns", ("run", "T?", "--turns", "-3"), "--turns"),
    Case("no turns", ("run", "T?", "--turns", "0"), "--turns"),
    Case("negative turns in the file", CONFIGURED, "turns", "turns: -3"),
    Case("temperature that is too high", ("run", "T?", "--temperature", "3"), "--temperature"),
    Case("unknown key", CONFIGURED, "unknown key 'tuns': did you mean 'turns'?", "tuns: 3"),
    Case(
        "unknown nested key", CONFIGURED, "did you mean 'memory.budget.total'?", "memory: {budget: {totl: 1}}"
    ),
    Case("malformed YAML", CONFIGURED, "malformed", "turns: [1,"),
    Case("YAML that is no mapping", CONFIGURED, "must be a mapping of keys to values", "- 1"),
    Case("unreadable file", ("run", "T?", "--config", "missing.yaml"), "missing.yaml"),
    Case(
        "file of an unknown type", ("run", "T?", "--config", "c.ini"), ".yaml, .toml or .json", "a=1", "c.ini"
    ),
    Case("budget too small", CONFIGURED, "memory.budget.total", "memory: {budget: {total: 50}}"),
    Case(
        "budget smaller than its parts",
        CONFIGURED,
        "memory.budget",
        "memory: {budget: {total: 900, system: 800}}",
    ),
    Case("a model that is an address", ("run", "T?", "--model", "http://localhost:1"), "OPENAI_BASE_URL"),
    Case("a model without a key", ("run", "T?", "--model", "gpt-4o"), "OPENAI_API_KEY"),
    Case("unknown protocol", ("run", "T?", "--protocol", "duel"), "duel"),
    Case("unknown summariser", ("run", "T?", "--summarizer", "magic"), "magic"),
    Case("rubric that is not there", ("run", "T?", "--rubric", "mine.yaml"), "mine.yaml"),
    Case("output of an unknown type", ("run", "T?", "-o", "out.pdf"), "out.pdf"),
    Case("output in no folder", ("run", "T?", "-o", "no/out.md"), "no/out.md"),
    Case("context that is not there", ("run", "T?", "--context", "no.md"), "no.md"),
    Case("empty name", ("run", "T?", "--id", ""), "--id"),
    Case("name that does not print", ("run", "T?", "--id", "a\x1b[2J"), "printable"),
    Case("unknown option", ("run", "T?", "--tunrs", "3"), "--tunrs"),
    Case("resuming what is not there", ("resume", "nobody"), "no debate", code=4),
    Case("showing what is not there", ("show", "nobody"), "no debate", code=4),
    Case("exporting what is not there", ("report", "nobody", "--json"), "no debate", code=4),
    Case("deleting what is not there", ("delete", "nobody", "--yes"), "no debate", code=4),
    Case("forking what is not there", ("fork", "nobody"), "no debate", code=4),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mistake_is_explained_and_nothing_is_written(tmp_path: Path, case: Case) -> None:
    moot = Moot(tmp_path)
    if case.file:
        (tmp_path / case.name).write_text(case.file)
    before = sorted(tmp_path.rglob("*"))
    done = moot(*case.words)
    assert done.code == case.code, done.err
    assert case.says in done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.err
    assert done.out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("url", ["mysql://x/y", " ", "."], ids=["unknown scheme", "blank", "a folder"])
def test_a_database_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    done = Moot(tmp_path)("run", "T?", "--db", url)
    assert done.code == 2, done.err
    assert "database" in done.err
    assert sorted(tmp_path.rglob("*")) == []


def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    moot.db.write_text("this is a diary, not a database\n" * 100)
    for words in (("run", "T?"), ("list",), ("show", "x")):
        done = moot(*words)
        assert done.code == 2, done.err
        assert "cannot open database" in done.err
    assert moot.db.read_text().startswith("this is a diary")


def test_a_mistake_leaves_a_present_database_unchanged(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("run", "T?", "--turns", "1", "--no-judge", "--id", "one", "-q").code == 0
    before = moot("list", "--json").out
    assert moot("run", "T?", "--id", "one").code == 2
    assert moot("run", "").code == 2
    assert moot("fork", "one", "--after", "77").code == 2
    assert moot("resume", "one", "--turns", "-1").code == 2
    assert moot("list", "--json").out == before


def test_listing_no_database_makes_none(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    assert moot("list", "--json").json == []
    assert not moot.db.exists()

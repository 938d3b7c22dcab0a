from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from moot.cli.group import BUILT_IN_NAMES, built_in_commands, built_in_names, load_command
from moot.cli.reference import pages

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("langgraph", "langchain_core", "openai", "numpy", "rich.console", "yaml")
NEEDS_NO_DEBATE = ("config", "jobs", "mcp", "serve", "studio", "plan", "models", "setup")
COMMANDS = built_in_commands()
LENIENT_S = 3.0
"""Six times what is promised of a quiet machine."""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["run", "--help"], ["show", "--help"], ["nope"]], ids=str
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["moot", *{words!r}]
from moot.cli import main
try:
    main()
except SystemExit:
    pass
print("HEAVY", sorted({set(HEAVY)!r} & sys.modules.keys()))
"""
    assert "HEAVY []" in _python(code).stdout


def test_help_answers_quickly_once_warm() -> None:
    def seconds() -> float:
        began = time.perf_counter()
        done = _python("import sys; sys.argv = ['moot', '--help']; from moot.cli import main; main()")
        assert done.returncode == 0
        return time.perf_counter() - began

    seconds()
    assert min(seconds() for _ in range(5)) < LENIENT_S


def test_help_names_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = _python("import sys; sys.argv = ['moot', '--help']; from moot.cli import main; main()").stdout
    for name, row in COMMANDS.items():
        assert f"  {name} " in said
        assert row.help in said  # on one line of 80 columns


def test_a_mistyped_command_is_answered_with_the_nearest_one() -> None:
    done = _python("import sys; sys.argv = ['moot', 'resum']; from moot.cli import main; main()")
    assert done.returncode == 2
    assert "'resume'" in done.stderr


def test_a_question_without_quotes_is_answered_with_the_quoted_question() -> None:
    words = "['moot', 'Should', 'we', 'split', 'it']"
    done = _python(f"import sys; sys.argv = {words}; from moot.cli import main; main()")
    assert done.returncode == 2
    assert "put it in quotes: moot 'Should we split it'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("words", [["-h"], ["show", "-h"], ["config", "init", "-h"]], ids=str)
def test_h_asks_for_help(words: list[str]) -> None:
    said = [
        _python(f"import sys; sys.argv = {['moot', *asked]!r}; from moot.cli import main; main()").stdout
        for asked in (words, [*words[:-1], "--help"])
    ]
    assert said[0] == said[1]
    assert said[0].startswith("Usage: moot")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_row_leads_to_a_command_that_explains_itself(name: str) -> None:
    command: Any = load_command(name)
    for each in [command, *getattr(command, "commands", {}).values()]:
        assert each.help
        assert all(param.help for param in each.params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NEEDS_NO_DEBATE])
def test_every_command_that_touches_a_debate_takes_db_and_json(name: str) -> None:
    command: Any = load_command(name)
    for each in getattr(command, "commands", {name: command}).values():
        options = {option for param in each.params for option in param.opts}
        assert {"--db", "--json"} <= options


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.examples])
def test_the_examples_of_a_commands_help_are_options_that_it_takes(name: str) -> None:
    command: Any = load_command(name)
    for example in COMMANDS[name].examples:
        words = shlex.split(example)
        called = command.commands[words.pop(0)] if hasattr(command, "commands") else command
        assert called.make_context(name, words).params
        assert f"Example: moot {name} {example}" in command.epilog


@pytest.mark.parametrize("words", [["-h"], ["run", "-h"], ["config", "init", "-h"]], ids=str)
def test_no_word_of_help_is_broken_on_a_narrow_terminal(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import sys; sys.argv = {['moot', *words]!r}; from moot.cli import main; main()"
    wide = _python(code).stdout
    monkeypatch.setenv("COLUMNS", "40")
    narrow = _python(code).stdout
    assert max(map(len, narrow.splitlines())) <= 40
    assert set(re.findall(r"\w{4,}", narrow)) == set(re.findall(r"\w{4,}", wide))


def test_the_names_in_help_are_those_of_the_registries() -> None:
    assert BUILT_IN_NAMES.read_text(encoding="utf-8") == built_in_names()


def test_the_reference_page_says_what_the_commands_say() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == pages()["cli.md"]

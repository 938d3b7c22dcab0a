"""`moot --help`: speed, contents and examples for every command."""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moot.cli.group import BUILT_IN_NAMES, built_in_names, load_command, shipped_commands
from moot.cli.reference import pages

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("langgraph", "langchain_core", "openai", "numpy", "rich.console", "yaml")
COMMANDS_WITHOUT_DEBATES = ("config", "jobs", "mcp", "serve", "studio", "plan", "models", "setup")
COMMANDS = shipped_commands()
MAX_S = 1.5
"""Three times the documented time, in seconds of the processor, which other programs hardly change."""


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["run", "--help"], ["show", "--help"], ["nope"]], ids=str
)
def test_help_imports_no_heavy_modules(words: list[str]) -> None:
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


def test_help_is_fast_once_warm() -> None:
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = _python("import sys; sys.argv = ['moot', '--help']; from moot.cli import main; main()")
        assert done.returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    seconds()
    assert min(seconds() for _ in range(5)) < MAX_S


def test_help_lists_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = _python(
        "import sys; sys.argv = ['moot', 'help', '--all']; from moot.cli import main; main()"
    ).stdout
    for name, row in COMMANDS.items():
        assert f"  {name} " in output
        assert row.help in output  # on one line of 80 columns


def test_a_mistyped_command_suggests_the_nearest_one() -> None:
    done = _python("import sys; sys.argv = ['moot', 'resum']; from moot.cli import main; main()")
    assert done.returncode == 2
    assert "'resume'" in done.stderr


def test_a_question_without_quotes_suggests_quotes() -> None:
    words = "['moot', 'Should', 'we', 'split', 'it']"
    done = _python(f"import sys; sys.argv = {words}; from moot.cli import main; main()")
    assert done.returncode == 2
    assert "put it in quotes: moot 'Should we split it'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("words", [["-h"], ["show", "-h"], ["config", "init", "-h"]], ids=str)
def test_h_is_short_for_help(words: list[str]) -> None:
    outputs = [
        _python(f"import sys; sys.argv = {['moot', *arguments]!r}; from moot.cli import main; main()").stdout
        for arguments in (words, [*words[:-1], "--help"])
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("Usage: moot")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    command: Any = load_command(name)
    for each in [command, *getattr(command, "commands", {}).values()]:
        assert each.help
        assert all(param.help for param in each.params)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in COMMANDS_WITHOUT_DEBATES])
def test_every_command_for_debates_has_db_and_json_options(name: str) -> None:
    command: Any = load_command(name)
    for each in getattr(command, "commands", {name: command}).values():
        options = {option for param in each.params for option in param.opts}
        assert {"--db", "--json"} <= options


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.examples])
def test_examples_in_help_are_valid_commands(name: str) -> None:
    command: Any = load_command(name)
    for example in COMMANDS[name].examples:
        words = shlex.split(example)
        called = command.commands[words.pop(0)] if hasattr(command, "commands") else command
        assert called.make_context(name, words).params
        assert f"Example: moot {name} {example}" in command.epilog


@pytest.mark.parametrize("words", [["-h"], ["run", "-h"], ["config", "init", "-h"]], ids=str)
def test_help_breaks_no_words_on_a_narrow_terminal(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"import sys; sys.argv = {['moot', *words]!r}; from moot.cli import main; main()"
    wide = _python(code).stdout
    monkeypatch.setenv("COLUMNS", "40")
    narrow = _python(code).stdout
    assert max(map(len, narrow.splitlines())) <= 40
    assert set(re.findall(r"\w{4,}", narrow)) == set(re.findall(r"\w{4,}", wide))


def test_built_in_names_match_the_registries() -> None:
    assert BUILT_IN_NAMES.read_text(encoding="utf-8") == built_in_names()


def test_the_cli_reference_matches_the_commands() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == pages()["cli.md"]

"""The command's reference page, made from the commands themselves.

`python -m moot.graph.cli.reference > docs/cli.md` writes the copy in the documentation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from moot.graph.cli.command_table import COMMANDS
from moot.graph.cli.group import HELP, Click, load_command

INTRODUCTION = """\
# The command

<!-- Written by `python -m moot.graph.cli.reference`; a test keeps it true. -->

Progress and remarks go to stderr, results to stdout. On every command that touches a debate, `--json` prints
exactly one JSON document and `--db` chooses the database. Text of debates reaches a terminal with its control
characters shown instead of obeyed. `-h` is `--help`, and after `moot --install-completion` your shell
completes commands, options and the names of debates.
"""
ENVIRONMENT = """\
## Environment

| variable | meaning |
|---|---|
| `OPENAI_API_KEY` | key of OpenAI, or of the server that `OPENAI_BASE_URL` names |
| `OPENAI_BASE_URL` | address of an OpenAI-compatible server |
| `MOOT_MODEL` | model where neither `--model` nor the configuration names one |
| `MOOT_CONFIG` | configuration file of `moot run` where `--config` gives none |
| `MOOT_DB` | database where `--db` gives none |
| `MOOT_DEBUG` | `1` shows the traceback of an internal error |
| `NO_COLOR` | any value: no colours |
"""


def reference() -> str:
    """Return the page, Markdown."""
    sections = [part for name in COMMANDS for part in _command(f"moot {name}", load_command(name))]
    codes = next(part for part in HELP.split("\n\n") if part.startswith("Exit codes"))
    return "\n".join([INTRODUCTION, *sections, ENVIRONMENT, f"## Exit codes\n\n{codes.strip()}\n"])


def _command(title: str, command: Click) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children:
        yield f"## {title}\n\n{inspect.cleandoc(command.help or '')}\n\n```\n{_usage(title, command)}\n```\n"
        yield _table(command)
    for name, child in children.items():
        yield from _command(f"{title} {name}", child)


def _usage(title: str, command: Click) -> str:
    arguments = [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    return " ".join([title, "[OPTIONS]", *arguments])


def _metavar(param: Click) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _table(command: Click) -> str:
    rows = [_row(param) for param in command.params]
    return "| | |\n|---|---|\n" + "".join(f"{row}\n" for row in rows) if rows else ""


def _row(param: Click) -> str:
    if param.param_type_name == "argument":
        name = f"`{_metavar(param)}`"
    else:
        value = f" {param.metavar}" if param.metavar else ""
        name = ", ".join(f"`{option}{value}`" for option in param.opts)
    return f"| {_escape(name)} | {_escape(' '.join((param.help or '').split()))} |"


def _escape(text: str) -> str:
    return re.sub(r"\|", r"\\|", text)


if __name__ == "__main__":
    print(reference(), end="")

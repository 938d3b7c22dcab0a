"""The command's reference page, made from the commands themselves.

`python -m moot.graph.cli.reference > docs/cli.md` writes the copy in the documentation.
"""

import inspect
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
| `MOOT_MODEL` | model where neither `--model` nor the configuration names one, servers' too |
| `MOOT_CONFIG` | configuration file where `--config` gives none, servers' too; all may reach what it does |
| `MOOT_ALLOW_MODELS`, `MOOT_ALLOW_TOOLS` | what requests and imports may name, separated by commas |
| `MOOT_CONTEXT_ROOT` | folder that every context lies in, and that those may choose contexts from |
| `MOOT_TOKEN` | API key of those who may use a server from elsewhere |
| `MOOT_ALLOW_HOSTS` | names under which a server that something else guards may be asked |
| `MOOT_DB` | database where `--db` gives none |
| `MOOT_BELL` | `1` rings the terminal's bell at the end of every run, as `--bell` does |
| `MOOT_OTEL` | `1` sends OpenTelemetry's spans where its `OTEL_…` variables say: `pip install 'moot[otel]'` |
| `MOOT_DEBUG` | `1` shows the traceback of an internal error |
| `NO_COLOR` | any value: no colours |
"""


def reference() -> str:
    """Return the page, Markdown."""
    sections = [part for name in COMMANDS for part in _command(f"moot {name}", load_command(name))]
    codes = next(part for part in HELP.split("\n\n") if part.startswith("Exit codes"))
    return "\n".join([INTRODUCTION, *sections, ENVIRONMENT, f"## Exit codes\n\n{codes.strip()}\n"])


def _command(title: str, command: Click) -> Iterator[str]:
    if children := getattr(command, "commands", {}):
        for name, child in children.items():
            yield from _command(f"{title} {name}", child)
        return
    arguments = [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([title, "[OPTIONS]", *arguments])
    usage = "\n".join([usage, *(command.epilog or "").replace("Example: ", "").split("\n\n")]).rstrip()
    yield f"## {title}\n\n{inspect.cleandoc(command.help)}\n\n```\n{usage}\n```\n"
    rows = "".join(map(_row, command.params))
    yield f"| | |\n|---|---|\n{rows}" if rows else ""


def _metavar(param: Click) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def _row(param: Click) -> str:
    if param.param_type_name == "argument":
        name = f"`{_metavar(param)}`"
    else:
        value = f" {param.metavar}" if param.metavar else ""
        name = ", ".join(f"`{option}{value}`" for option in param.opts)
    row = " | ".join(text.replace("|", r"\|") for text in (name, " ".join(param.help.split())))
    return f"| {row} |\n"


if __name__ == "__main__":
    print(reference(), end="")

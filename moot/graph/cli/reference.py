"""The reference pages of command, configuration and Python, made from what they are about.

`python -m moot.graph.cli.reference` writes them into `docs`.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from moot.graph.cli.command_table import COMMANDS
from moot.graph.cli.config_template import template
from moot.graph.cli.group import HELP, Click, load_command
from moot.state.settings import VARIABLES

_PACKAGE = sys.modules["moot"]  # which is imported before any part of it
MADE = "<!-- Written by `python -m moot.graph.cli.reference`; a test keeps it true. -->"
INTRODUCTION = f"""\
# The command

{MADE}

Progress and remarks go to stderr, results to stdout. On every command that touches a debate, `--json` prints
exactly one JSON document and `--db` chooses the database. Text of debates reaches a terminal with its control
characters shown instead of obeyed. `-h` is `--help`, and after `moot --install-completion` your shell
completes commands, options and the names of debates.
"""
ENVIRONMENT = "\n".join(
    [
        "## Environment\n\n| variable | meaning |\n|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()),
        "",
    ]
)


def pages() -> Mapping[str, str]:
    """Return the pages, Markdown, by file name."""
    sections = [part for name in COMMANDS for part in _command(f"moot {name}", load_command(name))]
    codes = next(part for part in HELP.split("\n\n") if part.startswith("Exit codes"))
    command = "\n".join([INTRODUCTION, *sections, ENVIRONMENT, f"## Exit codes\n\n{codes.strip()}\n"])
    configuration = f"""# Configuration

{MADE}

Every setting with its meaning and its default, as `moot config init` writes it; TOML and JSON have the same
keys, `moot config schema` is the JSON Schema, and `moot config check FILE` says what is wrong with a file.

```yaml
{template()}```
"""
    names = "\n".join(part for name in sorted(_PACKAGE.__all__) for part in _entry(name))
    python = f"""# Python

{MADE}

What `from moot import …` offers; [Embedding](embedding.md) shows it at work.

"""
    return {"cli.md": command, "configuration.md": configuration, "python.md": python + names}


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


def _entry(name: str) -> Iterator[str]:
    """Yield what is said of a name: of a class with its public methods, but for those of a configuration."""
    thing = getattr(_PACKAGE, name)
    yield f"## {name}\n"
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        yield f"`{thing}`\n"
        return
    if inspect.isfunction(thing):
        yield f"```text\n{name}{_signature(thing)}\n```\n"
    yield f"{_text(thing)}\n"
    own = vars(thing) if inspect.isclass(thing) and not hasattr(thing, "model_fields") else {}
    for key, method in own.items():
        if inspect.isfunction(method) and not key.startswith("_"):
            yield f"### {name}.{key}\n\n```text\n{key}{_signature(method)}\n```\n\n{_text(method)}\n"


def _signature(function: Callable[..., object]) -> str:
    return re.sub("'([^']+)'", r"\1", str(inspect.signature(function)))  # annotations are quoted


def _text(thing: object) -> str:
    """Return a docstring with its indented parts as they stand."""
    return "\n".join(
        f"- {line.strip()}" if line.startswith("    ") and not line.startswith("     ") else line
        for line in (inspect.getdoc(thing) or "").splitlines()
    ).replace("\n- ", "\n\n- ")


if __name__ == "__main__":
    for file_name, text in pages().items():
        Path("docs", file_name).write_text(text, encoding="utf-8")

"""The `moot` command group, which imports a command's module only when that command is invoked.

Help is click's plain one: rich's costs a quarter of a second before it says a word.
"""

import signal
from functools import partialmethod
from importlib import import_module
from shutil import get_terminal_size
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from moot.graph.cli.command_table import COMMANDS
from moot.state.errors import MootError

Click = Any
"""What is click's, whose types typer keeps to itself."""
HELP = """Debates between LLM debaters, of three turns or ten thousand: checkpointed, resumable, judged.

Begin with `moot demo`; with a model of yours, `moot run "Should we …?" --model NAME`.

Exit codes: 0 done, 1 internal error, 2 something in the input, 3 a model failed (saved), 4 no such debate,
5 in use by another process, 6 waiting for a person (saved), 130 interrupted (saved).
"""


NARROW, NARROW_OPTION = 52, 10
"""Columns below which click does not fit its help to the terminal, and those that options then have."""


def new_app(*, no_args_is_help: bool = False) -> typer.Typer:
    """Return a typer app whose help is plain."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=no_args_is_help)


def app_of(name: str) -> typer.Typer:
    """Return the typer app of the command of this name, importing its module."""
    module, _, attribute = COMMANDS[name].entry.partition(":")
    found = getattr(import_module(f"moot.graph.cli.commands.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return found
    app = new_app()
    app.command()(found)
    return app


def load_command(name: str) -> Click:
    """Return the real command of this name, importing its module."""
    command = typer.main.get_command(app_of(name))
    command.name = name
    if examples := COMMANDS[name].examples:
        command.epilog = "\n\n".join(f"Example: moot {name} {each}" for each in examples)
    _fit_help(command)
    return command


def _fit_help(command: Click) -> None:
    """Let a command's help keep to a terminal narrower than click's least, which would break its words."""
    if (columns := get_terminal_size().columns) >= NARROW:
        return
    context = command.context_class
    formatter = context.formatter_class
    fitted = partialmethod(formatter.write_dl, col_max=NARROW_OPTION)
    narrow = type("NarrowFormatter", (formatter,), {"write_dl": fitted})
    command.context_class = type("NarrowContext", (context,), {"formatter_class": narrow})
    command.context_settings["terminal_width"] = columns
    for child in getattr(command, "commands", {}).values():
        _fit_help(child)


INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class Interrupted(MootError):
    """Ctrl-C, where no command had more to say of it."""

    exit_code = INTERRUPTED


def stop_listening() -> None:
    """Let no second Ctrl-C kill the process while it closes what is open, which takes a moment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class LazyGroup(TyperGroup):
    """Shows its commands from the table; resolving one imports it."""

    def invoke(self, ctx: Click) -> Click:
        """Run the command; typer would end an interrupted one without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            stop_listening()
            raise Interrupted("interrupted; `moot list` shows what is saved") from None

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """Return name, command and remaining arguments, the command being the real one."""
        name, stub, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if stub is not None and name else stub, rest

    def format_commands(self, ctx: Click, formatter: Click) -> None:
        """Write the commands panel by panel."""
        for panel in dict.fromkeys(row.panel for row in COMMANDS.values()):
            with formatter.section(panel):
                formatter.write_dl([(name, row.help) for name, row in COMMANDS.items() if row.panel == panel])


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print(f"moot {version('moot')}")
        raise typer.Exit


_root = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@_root.callback()
def _moot(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_show_version, is_eager=True
    ),
) -> None: ...


def make_group() -> Click:
    """Build the `moot` group."""
    group: Click = typer.main.get_command(_root)
    _fit_help(group)
    group.commands = {name: TyperCommand(name, help=row.help) for name, row in COMMANDS.items()}
    return group

"""The `moot` command group. The group imports a command's module only when that command is invoked.

Help is click's plain text, because rich takes a quarter of a second to import.
"""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer
from typer import Typer
from typer.core import TyperCommand, TyperGroup

from moot.cli.terminal import print_error
from moot.state.errors import ConfigError, InputError, MootError, advice_for, file_error_reason
from moot.state.settings import is_on, is_shipped, plugin_entry_points, read_settings_files, redact_urls

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Panel = Literal[
    "Run debates", "Take part", "Read results", "Manage debates", "Set up and inspect", "Other packages"
]
"""Heading of a group of commands in `moot --help`. The headings are listed in display order."""
ENTRY_POINT_GROUP = "moot.commands"
"""Entry-point group in which plug-ins, such as other packages, provide `moot` commands. The entry point's
name is the command's name."""
COMMANDS = Path(__file__).parent / "commands"
"""Folder that contains the source files of the core's commands."""

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True)
class Declaration:
    """Properties of a `moot` command, as its `command` decorator declares them."""

    name: str
    panel: Panel
    examples: tuple[str, ...] = ()
    """Example arguments for the command, one string per example. The command's help lists them."""
    app: Typer | None = None
    """Typer app with the subcommands, or `None` if the command has no subcommands."""


def command(
    *,
    panel: Panel = "Other packages",
    name: str | None = None,
    examples: tuple[str, ...] = (),
    app: Typer | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that declares a function as a `moot` command.

    The first line of the function's docstring is the command's short help.

    The index reads the arguments from the source text, so `panel`, `name` and `examples` must be literals.
    """

    def declare(function: Function) -> Function:
        declaration = Declaration(name or function.__name__, panel, examples, app)
        function.__moot_command__ = declaration  # type: ignore[attr-defined]  # read by `IndexedCommand.load`
        return function

    return declare


@dataclass(frozen=True)
class IndexedCommand:
    """Name, help and location of a command whose module is imported only when it runs."""

    name: str
    help: str
    panel: Panel
    examples: tuple[str, ...]
    source: str | EntryPoint = field(compare=False)
    """Location of the command's function, such as `module:function`. A plug-in's command has an entry
    point instead."""

    def load(self) -> tuple[Any, Declaration]:
        """Import the command's function, and return it with its declaration.

        Raises:
            ConfigError: the command belongs to another package and cannot be imported.
        """
        if isinstance(self.source, str):
            module, _, function = self.source.partition(":")
            target = getattr(import_module(module), function)
        else:
            try:
                target = self.source.load()
            except Exception as error:  # an import of another package may raise anything
                raise ConfigError(
                    f"the command {self.name!r} cannot be loaded, because importing {self.source.value!r} "
                    f"failed with {type(error).__name__}: {error}. Update or uninstall the package that "
                    "provides the command"
                ) from error
        default = Declaration(self.name, self.panel, self.examples)
        return target, getattr(target, "__moot_command__", default)


_DECLARATION = re.compile(
    r"^@command\((?P<options>.*?)\)\n(?:@[^\n]*\n)*def (?P<function>\w+)\("
    r'.*?^    """(?P<help>[^\n]*?)(?:"""|\n)',
    re.M | re.S,
)
"""Pattern that finds a `@command` decorator and the decorated function."""


def declarations_in(text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each command's function, first line of docstring and decorator's arguments in a module."""
    for match in _DECLARATION.finditer(text):
        call = ast.parse(f"command({match['options']})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        options = {
            each.arg: ast.literal_eval(each.value) for each in keywords if each.arg and each.arg != "app"
        }
        yield match["function"], match["help"], options


@cache
def built_in_commands() -> dict[str, IndexedCommand]:
    """Return the commands of Moot's core, keyed by name."""
    commands = {}
    for path in sorted(COMMANDS.glob("*.py")):
        for function, text, options in declarations_in(path.read_text(encoding="utf-8")):
            options = {"name": function, "examples": (), **options}
            source = f"moot.cli.commands.{path.stem}:{function}"
            commands[options["name"]] = IndexedCommand(help=text, source=source, **options)
    return commands


@cache
def plugin_commands() -> dict[str, IndexedCommand]:
    """Return the commands of plug-ins by name, except names of the core's commands."""
    return {
        name: _plugin_command(name, point)
        for name, point in plugin_entry_points(ENTRY_POINT_GROUP).items()
        if name not in built_in_commands()
    }


def _plugin_command(name: str, point: EntryPoint) -> IndexedCommand:
    """Return a command with the help in its module's source, without importing the module."""
    try:
        spec = find_spec(point.module)
        text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    except (ImportError, OSError, ValueError):
        text = ""  # a broken package must not break the help; running the command reports it
    declarations = {function: (summary, options) for function, summary, options in declarations_in(text)}
    package = point.dist.name if point.dist else point.module
    summary, options = declarations.get(point.attr, (f"Command of the package {package}.", {}))
    panel: Panel = options.get("panel", "Other packages")
    return IndexedCommand(name, summary, panel, options.get("examples", ()), point)


def shipped_commands() -> dict[str, IndexedCommand]:
    """Return the commands of Moot's core and of Moot's own plug-ins, keyed by name."""
    points = plugin_entry_points(ENTRY_POINT_GROUP)
    plugins = {name: each for name, each in plugin_commands().items() if is_shipped(points[name])}
    return {**built_in_commands(), **plugins}


def find_command(name: str) -> IndexedCommand | None:
    """Return the command with this name, or `None` if it does not exist. Other packages may provide it."""
    return built_in_commands().get(name) or plugin_commands().get(name)


def all_commands() -> dict[str, IndexedCommand]:
    """Return all commands, keyed by name and grouped by help panel."""
    panels: tuple[str, ...] = Panel.__args__  # type: ignore[attr-defined]  # a Literal has them
    commands = {**plugin_commands(), **built_in_commands()}
    return dict(sorted(commands.items(), key=lambda each: (panels.index(each[1].panel), each[0])))


BUILT_IN_NAMES = Path(__file__).parent / "built_in_names.json"
"""Generated file that lists the names of built-in protocols, summarizers, rubrics and tools. If one of the
names is the default, it comes first."""


def built_in_names() -> str:
    """Return `built_in_names.json`, the names of built-in protocols, summarizers, tools and rubrics."""
    from moot.config import DebateConfig
    from moot.config.memory_config import NO_SUMMARY, MemoryConfig
    from moot.config.rubrics import shipped_rubrics
    from moot.memory.summarizers.registry import SUMMARIZERS
    from moot.protocols.registry import PROTOCOLS
    from moot.tools.registry import ENTRY_POINT_GROUP as TOOL_GROUP, TOOLS

    points = plugin_entry_points(TOOL_GROUP)
    protocol = DebateConfig.model_fields["protocol"].default
    summarizer = MemoryConfig.model_fields["summarizer"].default
    names = {
        "protocols": [protocol, *sorted(PROTOCOLS.keys() - {protocol})],
        "summarizers": [summarizer, *sorted(SUMMARIZERS.keys() - {summarizer}), NO_SUMMARY],
        "tools": sorted({*TOOLS, *filter(lambda name: is_shipped(points[name]), points)}),
        "rubrics": sorted(shipped_rubrics()),
    }
    return json.dumps(names, indent=2) + "\n"


def fill_names(command: Any) -> None:
    """Fill in placeholders such as `{protocols}` in a command's help. They stand for the registered names."""
    for param in getattr(command, "params", ()):
        for kind in _built_in() if "{" in (getattr(param, "help", None) or "") else ():
            param.help = param.help.replace(f"{{{kind}}}", ", ".join(_names(kind)))
    for child in getattr(command, "commands", {}).values():
        fill_names(child)


@cache
def _built_in() -> Mapping[str, list[str]]:
    names: dict[str, list[str]] = json.loads(BUILT_IN_NAMES.read_text(encoding="utf-8"))
    return names


def _names(kind: str) -> list[str]:
    first, *others = _built_in()[kind]
    default = f"{first} (default)" if kind in ("protocols", "summarizers") else first
    return [default, *others, *sorted(plugin_entry_points(f"moot.{kind}").keys() - {first, *others})]


def run_command_line() -> None:
    """Run `moot` with the process's command-line arguments and exit.

    A `MootError` is printed without a traceback and exits with its own code. Any other exception is a bug.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character must not stop the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for warning in read_settings_files():
            print_error(f"warning: {warning}")
        with _export_spans():
            make_group().main(prog_name="moot", standalone_mode=False)
    except MootError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _exit_after_closed_pipe()
    except SystemExit as stopped:
        if isinstance(stopped.__context__, BrokenPipeError):  # click turns a closed pipe into exit code 1
            _exit_after_closed_pipe()
        raise
    except Exception as error:  # the last place that can report a bug without a traceback
        if advice := _limit_of_system(error):
            print_error(advice)
            sys.exit(InputError.exit_code)
        if is_on("MOOT_DEBUG"):
            print_error(redact_urls("".join(traceback.format_exception(error))))
        else:
            print_error(
                f"internal error: {type(error).__name__}: {error}. Set MOOT_DEBUG=1 to see the traceback"
            )
        sys.exit(1)


def _limit_of_system(error: Exception) -> str:
    """Return advice if an error comes from a limit of the operating system, or `""` for any other error."""
    if isinstance(error, MemoryError):
        return "there is not enough memory: raise the limit (`ulimit -v`), or give the command less to read"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "no more threads can be started: raise the limits (`ulimit -u`, `ulimit -v`)"
    code = error.errno if isinstance(error, OSError) else 0
    if code in (errno.EMFILE, errno.ENFILE):
        return "too many files are open: raise the limit, for example with `ulimit -n 1024`"
    if isinstance(error, OSError) and code in (errno.ENAMETOOLONG, errno.ELOOP):
        return f"cannot use the file {str(error.filename)!r}: {file_error_reason(error)}"
    return ""


def _exit_after_closed_pipe() -> None:
    """Exit with code 0 after the reader of stdout has closed the pipe, as `head` does."""
    # Without this the interpreter flushes into the closed pipe at its exit and reports an error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(0)


@contextmanager
def _export_spans() -> Iterator[None]:
    """Export OpenTelemetry spans and metrics during a `with` block if `MOOT_OTEL` is set."""
    if not is_on("MOOT_OTEL"):
        yield
        return
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError("MOOT_OTEL needs OpenTelemetry: run `pip install 'moot[otel]'`") from error
    resource = Resource.create()  # it reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "moot"}))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    metrics.set_meter_provider(meters)
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
        meters.shutdown()


Click = Any
"""Type of objects from the click library. It is `Any`, because typer does not export click's types."""
USAGE_ERROR: Click = typer.BadParameter.__bases__[0]
"""Click's class of errors about wrong options and arguments."""
HELP = """Run debates between LLM debaters, from three turns to ten thousand. Debates are saved and resumable.

Start with `moot demo`, which needs no key. To use your own model, run `moot setup` once.

Exit codes: 0 success, 1 internal error, 2 invalid input, 3 model failure (the debate is saved),
4 no such debate, 5 debate in use by another process, 6 waiting for a person (the debate is saved), 7 the
decision does not pass --gate, 130 interrupted (the debate is saved).
"""


NARROW = 52
"""Terminal width, in columns, below which help texts use a narrow layout."""
NARROW_OPTION = 10
"""Maximum width of the option column in the narrow layout, in columns."""


def new_app(*, no_args_is_help: bool = False) -> typer.Typer:
    """Return a new Typer app whose help is plain text."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=no_args_is_help)


def app_of(name: str) -> typer.Typer:
    """Import a command's module and return the command's Typer app.

    Raises:
        ConfigError: the command belongs to another package and cannot be imported.
        InputError: no command has this name.
    """
    indexed = find_command(name)
    if indexed is None:
        raise unknown_command(name)
    target, declaration = indexed.load()
    if isinstance(target, typer.Typer):
        return target
    if declaration.app is not None:
        return declaration.app
    app = new_app()
    app.command()(target)
    return app


def load_command(name: str) -> Click:
    """Import the module of the command with this name and return its click command."""
    command = typer.main.get_command(app_of(name))
    command.name = name
    indexed = find_command(name)
    if indexed and indexed.examples:
        command.epilog = "\n\n".join(f"Example: moot {name} {each}" for each in indexed.examples)
    fill_names(command)
    _shorten_help(command)
    return command


def _shorten_help(command: Click) -> None:
    """Fit a command's help text to a narrow terminal."""
    if (columns := get_terminal_size().columns) >= NARROW:
        return
    context = command.context_class
    formatter = context.formatter_class
    fitted = partialmethod(formatter.write_dl, col_max=NARROW_OPTION)
    narrow = type("NarrowFormatter", (formatter,), {"write_dl": fitted})
    command.context_class = type("NarrowContext", (context,), {"formatter_class": narrow})
    command.context_settings["terminal_width"] = columns
    for child in getattr(command, "commands", {}).values():
        _shorten_help(child)


INTERRUPTED = 130
"""Exit code of `moot` after Ctrl-C."""


class Interrupted(MootError):
    """Error raised after Ctrl-C if the running command does not handle the interrupt."""

    exit_code = INTERRUPTED


def ignore_interrupts() -> None:
    """Ignore further Ctrl-C signals while the process closes its files and connections."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


FIRST_WEEK = ("run", "show", "report", "ask", "say", "list", "setup", "serve")
"""Commands that `moot --help` lists. `moot help --all` lists every command."""
ALL_COMMANDS = "moot.all_commands"
"""Key of the context that says whether the help lists every command."""
OTHER_NAMES = {
    "debate": "run",
    "rm": "delete",
    "remove": "delete",
    "ls": "list",
    "mv": "rename",
    "start": "run",
    "new": "run",
    "continue": "resume",
    "export": "report",
    "enqueue": "batch",
    "unpin": "pin",
    "init": "config",
}
"""Command names that users of other programs may try, mapped to similar `moot` commands."""


SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
"""Shells that typer can complete."""
CONTINUE = ("-c", "--continue")
"""Short and long name of the option that continues the latest debate."""


class LazyGroup(TyperGroup):
    """Command group that imports a command only when it is needed."""

    def main(self, *args: Click, **options: Click) -> Click:
        """Run the command line and exit. Wrong usage is an error of the same form as all others."""
        try:
            code = super().main(*args, **options)
        except USAGE_ERROR as error:
            message = error.format_message().rstrip(".")
            command = error.ctx.command_path if error.ctx else "moot"
            wrong = getattr(error, "option_name", "")
            if any(wrong in param.opts for param in self.params):
                raise InputError(f"{wrong} is an option of `moot` itself: write `moot {wrong}`") from None
            raise InputError(f"{message[:1].lower()}{message[1:]}: see `{command} --help`") from None
        except typer.Abort:  # Ctrl-C or the end of the input at a question
            raise Interrupted("stopped, because the question was not answered") from None
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Click) -> Click:
        """Run the command, and report Ctrl-C as an error. The error says what to do."""
        try:
            with advice_for("command"):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ignore_interrupts()
            raise Interrupted(
                "the command was interrupted: run `moot list` to see the saved debates"
            ) from None

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Parse leading options. `-c` is `resume latest`, or `ask latest` before a question."""
        first, rest = (args[0], args[1:]) if args else ("", [])
        if first in CONTINUE:
            args = ["ask" if rest and is_question(rest[0]) else "resume", "latest", *rest]
        elif first == "help":
            ctx.meta[ALL_COMMANDS] = "--all" in rest
            args = [*(each for each in rest if each not in ("--all", "help")), "--help"]
            if not args[0].startswith("-") and find_command(args[0]) is None:
                raise unknown_command(args[0])
        elif first == "version":
            args = ["--version"]
        elif first == "--show-completion" and rest:
            print(_completion_script(rest[0]))
            raise typer.Exit
        return list(super().parse_args(ctx, args))

    def get_command(self, ctx: Click, cmd_name: str) -> Click | None:
        """Return a command with name and help alone, for lists, or `None`."""
        indexed = find_command(cmd_name)
        return TyperCommand(cmd_name, help=indexed.help) if indexed else None

    def list_commands(self, ctx: Click) -> list[str]:
        """Return the names of all `moot` commands."""
        return list(all_commands())

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """Find the command that the arguments name.

        Return the command's name, the command and the other arguments. If the first argument is a question
        instead of a command, the command is `run`.
        """
        name = args[0]
        if name not in built_in_commands() and is_question(name):
            name, args = "run", ["run", "--propose", *args]
        if find_command(name) or name.startswith("-"):
            _, stub, rest = super().resolve_command(ctx, args)
            return name, load_command(name) if stub is not None else stub, rest
        raise unknown_command(name, args[1:])

    def format_commands(self, ctx: Click, formatter: Click) -> None:
        """Write the commands to the help text: those of the first week, or all, grouped by help panel."""
        commands = all_commands()
        if not ctx.meta.get(ALL_COMMANDS):
            question = ('"Should we …?"', "Debate a question: the model proposes two debaters, you confirm.")
            rows = [(name, commands[name].help) for name in FIRST_WEEK if name in commands]
            with formatter.section("Commands"):
                formatter.write_dl([question, *rows])
            formatter.write_text("`moot help --all` lists all commands, `moot help NAME` describes one.")
            return
        for panel in dict.fromkeys(each.panel for each in commands.values()):
            with formatter.section(panel):
                formatter.write_dl(
                    [(each.name, each.help) for each in commands.values() if each.panel == panel]
                )


def unknown_command(name: str, rest: Sequence[str] = ()) -> InputError:
    """Return the error for a command that does not exist, with a suggestion. `rest` are its arguments."""
    harmless = [each for each in all_commands() if each != "delete" or name.startswith("del")]
    suggestion = OTHER_NAMES.get(name) or next(iter(get_close_matches(name, harmless, n=1)), "")
    advice = "`moot help --all` lists the commands."
    if suggestion:
        advice = f"Did you mean {suggestion!r}?"
    elif rest:
        from moot.cli.options import command_line

        advice = f"To debate a question, put it in quotes: {command_line(' '.join([name, *rest]))}"
    return InputError(f"there is no command {name!r}. {advice}")


def _completion_script(shell: str) -> str:
    """Return the script that completes `moot` commands in a shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # no public name

    if shell not in SHELLS:
        raise InputError(f"there is no completion for {shell!r}: choose from {', '.join(SHELLS)}")
    return get_completion_script(prog_name="moot", complete_var="_MOOT_COMPLETE", shell=shell)


def is_question(text: str) -> bool:
    """Return True if a command-line argument looks like a question rather than a command name."""
    return not text.startswith("-") and (" " in text.strip() or text.endswith("?"))


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
        False, "--version", "-V", help="Print the version.", callback=_show_version, is_eager=True
    ),
    go_on: bool = typer.Option(
        False,
        *CONTINUE,
        help='Continue the latest debate. To ask about this debate, add a question: moot -c "Why?"',
    ),
) -> None: ...


def make_group() -> Click:
    """Build the click command group of `moot`."""
    group: Click = typer.main.get_command(_root)
    _shorten_help(group)
    return group

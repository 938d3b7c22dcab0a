"""Arguments and options that several commands share, with their checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

from typer import Argument, Context, Option

from moot.state.entries import seq_of
from moot.state.errors import InputError

if TYPE_CHECKING:
    pass


def _new_name(name: str | None) -> str | None:
    """Validate the name of a new debate and return the name."""
    if name is not None:
        from moot.storage.catalogue import check_name

        check_name(name)
    return name


def _debate_file(path: Path | None) -> Path | None:
    """Check that the output file can be written, and return the path of the file."""
    if path is not None:
        from moot.cli.screen.output import format_of

        format_of(path)
    return path


def _answers(ctx: Context, path: Path | None) -> object:
    """Read the answers file and return its content.

    Shell completion reads no file.
    """
    from moot.cli.inputs import read_answers

    return None if ctx.resilient_parsing else read_answers(path)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Expand every dataclass parameter of a command into one option per field."""
    hints = get_type_hints(command, include_extras=True)
    options: dict[str, Parameter] = {}
    groups: dict[str, tuple[Callable[..., object], list[str]]] = {}
    for name, parameter in signature(command).parameters.items():
        own = {name: (parameter.default, hints[name])}
        if is_dataclass(kind := hints[name]) and isinstance(kind, type):
            own = {
                each: (getattr(kind, each), hint)
                for each, hint in get_type_hints(kind, include_extras=True).items()
            }
            groups[name] = kind, list(own)
        for each, (default, hint) in own.items():
            options[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    def run(**given: object) -> None:
        for name, (kind, fields) in groups.items():
            given[name] = kind(**{each: given.pop(each) for each in fields})
        command(**given)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {name: option.annotation for name, option in options.items()}
    run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]  # typer reads it
    return run


def debates_like(ctx: Context, incomplete: str) -> list[str]:
    """Return the names of debates that start with the text typed so far, for shell completion."""
    from moot.cli.inputs import open_catalogue

    with open_catalogue(ctx.params.get("db")) as records:
        rows = records.rows() if records else []
    return [row.name for row in rows if row.name.startswith(incomplete)]


COMPLETION_WAIT_S = 2.0
"""Timeout in seconds for requesting the list of models during shell completion."""


def models_like(incomplete: str) -> list[str]:
    """Return the names of models that start with the given text, for shell completion."""
    import asyncio

    import httpx

    from moot.models.endpoints import listed_models
    from moot.models.registry import access_to
    from moot.state.config.model_settings import OFFLINE, ModelSettings
    from moot.state.errors import ConfigError

    try:
        rows = asyncio.run(listed_models(access_to("", ModelSettings()), COMPLETION_WAIT_S))
    except (httpx.HTTPError, ValueError, ConfigError):
        rows = []
    return [name for name in (OFFLINE, *(str(row["id"]) for row in rows)) if name.startswith(incomplete)]


def protocols_like(incomplete: str) -> list[str]:
    """Return the names of built-in and installed protocols that start with the text, for shell completion."""
    from moot.protocols.registry import protocol_names

    return [name for name in protocol_names() if name.startswith(incomplete)]


def entry_number(given: str, option: str) -> int:
    """Parse a message number such as `12` or a message id such as `m000012`.

    Raises:
        InputError: the argument is neither a number nor a message id.
    """
    seq = int(given) if given.isdecimal() and len(given) <= MAX_DIGITS else seq_of(given)
    if seq is None:
        raise InputError(
            f"{option} {given!r} does not identify a message: give the number or id of a message, "
            "such as 12 or m000012"
        )
    return seq


MAX_DIGITS = 9
"""Maximum number of digits accepted in a message number."""

DebateArgument = Annotated[
    str,
    Argument(
        metavar="ID",
        help="Name or id of the debate, the beginning of its id, or the word latest.",
        autocompletion=debates_like,
    ),
]
DbOption = Annotated[
    str | None,
    Option(
        "--db",
        metavar="PATH|URL",
        help=(
            "SQLite file or postgresql://… address of the database. Default: MOOT_DB if it is "
            "set, otherwise moot.sqlite in the user's data folder."
        ),
        show_default=False,
    ),
]
JsonOption = Annotated[bool, Option("--json", help="Print the result as one JSON document.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Print no progress.")]
BellOption = Annotated[
    bool,
    Option(
        "--bell",
        help=(
            "When the run ends, ring the terminal's bell and set its title. MOOT_BELL=1 does this "
            "for all runs."
        ),
    ),
]
LogOption = Annotated[
    bool, Option("--log-json", help="Print progress as JSON lines on stderr, one per event.")
]
OutputOption = Annotated[
    Path | None,
    Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the debate to a .json, .md or .html file.",
        callback=_debate_file,
    ),
]
BatchArgument = Annotated[
    Path,
    Argument(
        metavar="FILE",
        help="File with one topic per line, or a .jsonl or .yaml file with a list of configurations.",
    ),
]
WorkersOption = Annotated[
    int,
    Option("--workers", "-w", min=1, max=256, metavar="N", help="Number of debates to run at the same time."),
]
TurnsOption = Annotated[
    int | None, Option("--turns", min=1, metavar="N", help="Total number of turns in the debate. Default: 6.")
]
MoreTurnsOption = Annotated[
    int | None, Option("--turns", min=1, metavar="N", help="Number of turns to add to the debate.")
]
ConfigOption = Annotated[
    Path | None, Option("--config", "-c", metavar="FILE", help="Configuration file in YAML, TOML or JSON.")
]
DebaterOption = Annotated[
    list[str] | None,
    Option(
        "--debater",
        "-d",
        metavar="NAME[:ROLE[:STANCE]]",
        help="Name, role and stance of a debater, such as Ada:engineer:in favour. Repeat the option for "
        "each debater.",
    ),
]
RoundsOption = Annotated[
    int | None,
    Option(
        "--rounds",
        min=1,
        metavar="N",
        help="Number of rounds in the debate. Default for the council protocol: 3.",
    ),
]
ProtocolOption = Annotated[
    str | None,
    Option(
        "--protocol",
        metavar="NAME",
        help="Protocol of the debate: {protocols}.",
        autocompletion=protocols_like,
    ),
]
ModelOption = Annotated[
    str | None,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help=(
            "Model for all debaters and judges that have no model of their own. Default: the model set with "
            "`moot setup` or MOOT_MODEL, otherwise the built-in offline model."
        ),
        autocompletion=models_like,
    ),
]
OtherModelOption = Annotated[
    str | None,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help="New model for all debaters and judges that have no model of their own.",
        autocompletion=models_like,
    ),
]
JudgeModelOption = Annotated[
    str | None,
    Option("--judge-model", metavar="NAME", help="Model of the judge.", autocompletion=models_like),
]
NameOption = Annotated[
    str | None,
    Option(
        "--id",
        metavar="NAME",
        help="Name of the new debate. Default: derived from the question.",
        callback=_new_name,
    ),
]
AnswersOption = Annotated[
    Path | None,
    Option(
        "--answers",
        metavar="FILE",
        help=(
            "YAML or JSON file with answers to the debaters' questions: a list, or a mapping "
            "keyed by debater or by question."
        ),
        callback=_answers,
    ),
]


ContextOption = Annotated[
    list[Path] | None,
    Option(
        "--context",
        metavar="FILE|DIR",
        help="File to show to every debater, or folder that the debaters' tools may read. Repeat the "
        "option for several files. PDF, Word, Excel and HTML files need `pip install 'moot[documents]'`.",
    ),
]


@dataclass(frozen=True)
class SetupOptions:
    """Command-line options that configure a new debate. They override the configuration file."""

    config: ConfigOption = None
    debater: DebaterOption = None
    turns: TurnsOption = None
    rounds: RoundsOption = None
    protocol: ProtocolOption = None
    model: ModelOption = None
    judge_model: JudgeModelOption = None

    def flags(self) -> dict[str, object]:
        """Return the options that the user set, keyed by the dotted name of the setting."""
        from moot.cli.run_config import parse_debaters

        return {
            "debaters": parse_debaters(self.debater),
            "turns": self.turns,
            "rounds": self.rounds,
            "protocol": self.protocol,
            "model": self.model,
            "judge.model": self.judge_model,
        }


@dataclass(frozen=True)
class Delivery:
    """Command-line options for displaying the progress and delivering the result of a run."""

    answers: AnswersOption = None
    """Content of the answers file, or `None` if `--answers` was not given."""
    output: OutputOption = None
    db: DbOption = None
    as_json: JsonOption = False
    quiet: QuietOption = False
    bell: BellOption = False
    log_json: LogOption = False

    @property
    def remarks(self) -> bool:
        """True if the command prints remarks to stderr, such as headings and suggested commands."""
        return not (self.quiet or self.log_json)

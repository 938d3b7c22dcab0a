"""Options that several commands share, and their completion."""

import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, get_type_hints

from typer import Argument, Context, Option

from moot.cli.databases import open_catalogue
from moot.cli.inputs import (
    configured_model,
    parse_debaters,
    read_answers,
    read_transcript as read_transcript,  # plug-ins import it from here
)
from moot.cli.terminal import format_of
from moot.state.errors import ConfigError
from moot.state.settings import redact_urls


def command_line(*words: str, db: str | None = None) -> str:
    """Return a `moot` command line for the user to copy. It includes `--db` if the user gave this option."""
    program, script = "moot", Path(sys.argv[0])
    if script.name == "moot" and not shutil.which(
        "moot"
    ):  # not on PATH: repeat the path that started this process
        folder = Path.cwd()
        program = str(script.relative_to(folder) if script.is_relative_to(folder) else script)
    return shlex.join([program, *words, *(["--db", redact_urls(db)] if db else [])])


def after_setup(line: str) -> str:
    """Put `moot setup` before a command line if no model is configured. The user copies the result."""
    return line if configured_model() else f"{command_line('setup')} && {line}"


def _new_name(name: str | None) -> str | None:
    """Validate the name of a new debate and return the name."""
    if name is not None:
        from moot.storage.catalogue import check_name

        check_name(name)
    return name


def _debate_file(path: Path | None) -> Path | None:
    """Check the output file's suffix and folder, and return its path."""
    if path is not None:
        format_of(path)
    return path


def _answers(ctx: Context, path: Path | None) -> object:
    """Return the content of `--answers`. Shell completion reads no file."""
    return None if ctx.resilient_parsing else read_answers(path)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a command by options, one for each field of the dataclass."""
    hints = get_type_hints(command, include_extras=True)
    options: dict[str, Parameter] = {}
    groups: dict[str, tuple[Callable[..., object], list[str]]] = {}
    for name, parameter in signature(command).parameters.items():
        own_options = {name: (parameter.default, hints[name])}
        if is_dataclass(kind := hints[name]) and isinstance(kind, type):
            own_options = {
                each: (getattr(kind, each), hint)
                for each, hint in get_type_hints(kind, include_extras=True).items()
            }
            groups[name] = kind, list(own_options)
        for each, (default, hint) in own_options.items():
            options[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    def run(**values: object) -> None:
        for name, (kind, fields) in groups.items():
            values[name] = kind(**{each: values.pop(each) for each in fields})
        command(**values)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {name: option.annotation for name, option in options.items()}
    run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]  # typer reads it
    return run


def debates_like(ctx: Context, incomplete: str) -> list[str]:
    """Return the debate names that complete the text typed in the shell."""
    with open_catalogue(ctx.params.get("db")) as records:
        rows = records.rows() if records else []
    return [row.name for row in rows if row.name.startswith(incomplete)]


COMPLETION_WAIT_S = 2.0
"""Maximum time in seconds that shell completion waits for the list of models."""


def models_like(incomplete: str) -> list[str]:
    """Return the model names that complete the text typed in the shell."""
    import asyncio

    from moot.config.model_settings import OFFLINE, ModelSettings
    from moot.models.endpoints import listed_models
    from moot.models.http import httpx
    from moot.models.registry import access_to

    try:
        rows = asyncio.run(listed_models(access_to("", ModelSettings()), COMPLETION_WAIT_S))
    except (httpx.HTTPError, ValueError, ConfigError):
        rows = []
    return [name for name in (OFFLINE, *(str(row["id"]) for row in rows)) if name.startswith(incomplete)]


def protocols_like(incomplete: str) -> list[str]:
    """Return the built-in and installed protocols that complete the text typed in the shell."""
    from moot.protocols.registry import protocol_names

    return [name for name in protocol_names() if name.startswith(incomplete)]


DebateArgument = Annotated[
    str,
    Argument(
        metavar="ID",
        help="Name or id of the debate, their first characters, or latest for the most recently active "
        "debate.",
        autocompletion=debates_like,
    ),
]
LatestArgument = Annotated[
    str | None,
    Argument(
        metavar="[ID]",
        help="Name or id of the debate, or their first characters. Default: the most recently active debate.",
        autocompletion=debates_like,
        show_default=False,
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
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Do not print progress messages.")]
BellOption = Annotated[
    bool,
    Option(
        "--bell",
        help=(
            "When the run ends, ring the terminal's bell and set the terminal's title. MOOT_BELL=1 does "
            "this for all runs."
        ),
    ),
]
LogOption = Annotated[
    bool, Option("--log-json", help="Print progress on stderr as JSON lines, one line per event.")
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
            "`moot setup` or MOOT_MODEL. The built-in model offline writes placeholder texts."
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
            "YAML or JSON file with answers to the debaters' questions. The file contains a list in the "
            "order of the questions, or a mapping from debaters or questions to answers."
        ),
        callback=_answers,
    ),
]
ContextOption = Annotated[
    list[str] | None,
    Option(
        "--context",
        metavar="FILE|DIR|-",
        help="File to show to every debater, folder that the debaters' tools may read, or - for stdin. "
        "Repeat the option for several files. Text that you pipe to the command is always shown. PDF, Word, "
        "Excel and HTML files need `pip install 'moot[documents]'`.",
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
        """Return the values of the options, keyed by the name of the setting, such as `judge.model`."""
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
    """Command-line options that control how a run shows its progress and where its result goes."""

    answers: AnswersOption = None
    """Content of the file given with `--answers`, or `None` without this option."""
    output: OutputOption = None
    db: DbOption = None
    as_json: JsonOption = False
    quiet: QuietOption = False
    bell: BellOption = False
    log_json: LogOption = False

    @property
    def remarks(self) -> bool:
        """True if the command prints headings and suggested commands to stderr."""
        return not (self.quiet or self.log_json)

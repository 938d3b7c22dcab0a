"""Options that several commands share, and the functions that read their inputs and configuration."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

from typer import Argument, Context, Option

from moot.cli.terminal import format_of, print_error
from moot.config import DebateConfig, slug
from moot.config.model_settings import OFFLINE, ModelSettings, is_built_in
from moot.state.entries import clean_text, seq_of
from moot.state.errors import ConfigError, DebateNotFound, InputError
from moot.state.settings import check_database, database_exists, is_postgres, redact_urls, variable

if TYPE_CHECKING:
    from moot.api import Debate, Debates
    from moot.plugins.importing import ImportedTranscript
    from moot.plugins.postgres.work_queue import WorkQueue
    from moot.runtime.environment import Environment
    from moot.storage.records import Records


def configured_model() -> str | None:
    """Return the user's default model, or `None` if none is configured. A built-in model does not count."""
    name = variable("MOOT_MODEL")
    return None if name is None or is_built_in(name) else name


def _existing(db: str | None) -> str:
    url = check_database(db)
    if not database_exists(url):
        raise DebateNotFound(f"there are no debates, because the database {url!r} does not exist yet")
    return url


def open_database(db: str | None, *, make: bool = False, environment: Environment | None = None) -> Debates:
    """Open a database during a `with` block and yield its debates.

    Args:
        db: value of `--db`.
        make: create the database if it does not exist.
        environment: models and clock. The default calls real models.

    Raises:
        DebateNotFound: the database does not exist, and `make` is false.
        InputError: the database cannot be opened.
    """
    url = check_database(db) if make else _existing(db)
    from moot.api import open_debates

    return open_debates(url, environment=environment)


@contextmanager
def open_stored_debate(db: str | None, name: str) -> Iterator[Debate]:
    """Open one stored debate from a database during a `with` block.

    Raises:
        DebateNotFound: no debate has this name or id.
        InputError: the database cannot be opened.
    """
    with open_database(db) as debates:
        yield debates.get(name)


def present_records(db: str | None) -> AbstractContextManager[Records]:
    """Open Moot's tables in an existing database during a `with` block.

    LangGraph, which is slow to import, is not loaded.

    Raises:
        DebateNotFound: the database does not exist.
        InputError: the database cannot be opened.
    """
    url = _existing(db)
    from moot.storage.records import open_records

    return closing(open_records(url))


def open_catalogue(db: str | None) -> AbstractContextManager[Records | None]:
    """Open Moot's tables during a `with` block, or yield `None` if the database does not exist.

    Raises:
        InputError: the database cannot be opened.
    """
    return present_records(db) if database_exists(check_database(db)) else nullcontext()


def open_queue(db: str | None) -> WorkQueue:
    """Return the queue of debates in a Postgres database.

    Raises:
        InputError: the database is not a Postgres database.
        ConfigError: the `queue` extra is not installed.
    """
    url = check_database(db)
    if not is_postgres(url):
        raise InputError(
            "the queue needs a Postgres database: add --db postgresql://…, or run `moot batch` or `moot eval "
            "run` without --queue"
        )
    from moot.plugins.postgres.work_queue import WorkQueue

    return WorkQueue(url)


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


def read_words(argument: str, what: str, advice: str) -> str:
    """Read a text from an argument, a file or stdin.

    `@FILE` names a file, and `-` stands for stdin. Any other argument is the text itself.

    Raises:
        InputError: the file cannot be read, or the text is empty.
    """
    from moot.configuration import read_text

    is_file = argument == "-" or argument.startswith("@")
    words = clean_text(read_text(Path(argument.removeprefix("@")), f"the {what}") if is_file else argument)
    if not words.strip():
        raise InputError(f"the {what} is empty: {advice}")
    return words


def read_topic(argument: str | None) -> str | None:
    """Read the topic of a debate from an argument, a file or stdin. Without an argument, return `None`.

    `@FILE` names a file, and `-` stands for stdin.

    Raises:
        InputError: the file cannot be read, or the text is empty.
    """
    return None if argument is None else read_words(argument, "topic", "write the question to debate")


def split_context(paths: Sequence[Path] | None) -> tuple[str | None, list[Path]]:
    """Split the paths of `--context` into a folder and files.

    Return the absolute path of the folder, or `None` without a folder, and the paths of the files.

    Raises:
        InputError: there are several folders.
    """
    folders = [path for path in paths or () if path.is_dir()]
    if len(folders) > 1:
        raise InputError(f"--context takes at most one folder: choose one of {', '.join(map(str, folders))}")
    return str(folders[0].absolute()) if folders else None, [p for p in paths or () if p not in folders]


def file_of(subject: str) -> Path | None:
    """Return the file's path if an argument names a file, or `None` if it names a debate."""
    from moot.plugins.importing import ENDINGS

    path = Path(subject)
    return path if subject == "-" or "/" in subject or path.suffix.lower() in ENDINGS else None


def read_transcript(path: Path, form: str | None = None, conversation: str = "") -> ImportedTranscript:
    """Read a transcript or an exported debate from a file. The path `-` stands for stdin.

    Raises:
        InputError: the file cannot be read or parsed.
    """
    from moot.configuration import STDIN, read_bytes
    from moot.plugins.importing import SeveralConversations, parse_transcript

    data, name = read_bytes(path, "the transcript"), "" if path == STDIN else path.name
    try:
        return parse_transcript(data, format=form, filename=name, conversation=conversation)
    except SeveralConversations:
        raise
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error


def read_answers(path: Path | None) -> object:
    """Read prepared answers from a YAML or JSON file.

    Raises:
        ConfigError: the file is neither YAML nor JSON.
        InputError: the file cannot be read, or has neither a mapping nor a list.
    """
    if path is None:
        return None
    from moot.config.config_files import data_in
    from moot.configuration import read_text

    answers = data_in(read_text(path, "answers"), path, "answers")
    if not isinstance(answers, dict | list):
        raise InputError(
            f"answers file {str(path)!r} must contain a list of answers, or a mapping from "
            "questions or debaters to answers"
        )
    return answers


LENGTHS = ("turns", "rounds")
"""Options that set the number of turns or rounds of a debate, without the leading `--`."""


def parse_debaters(values: Sequence[str] | None) -> list[dict[str, str]] | None:
    """Parse the debaters given with `--debater`, or return `None` if the option is absent.

    Raises:
        InputError: a debater has no name.
    """
    debaters = []
    for number, value in enumerate(values or (), start=1):
        parts = [part.strip() for part in value.split(":", 2)]
        if not parts[0]:
            raise InputError(f"--debater {value!r} has no name: write NAME[:ROLE[:STANCE]]")
        id_setting = (
            {} if slug(parts[0]) else {"id": f"debater-{number}"}
        )  # the name has no letters for an id
        debaters.append({**id_setting, **dict(zip(("name", "role", "stance"), parts, strict=False))})
    return debaters or None


def run_config(
    path: Path | None,
    flags: Mapping[str, object],
    tools: Sequence[str] = (),
    *,
    topic: str | None = None,
    imports: bool = True,
) -> DebateConfig:
    """Return the validated configuration of a new debate.

    Args:
        path: value of `--config`.
        flags: settings given by other options, by dotted key.
        tools: tools for debaters whose configuration lists none.
        topic: topic of the debate, used in the warnings. `None` means the topic in the configuration.
        imports: import the Python objects that the configuration names.

    Raises:
        ConfigError: the configuration is invalid. Nothing has been written.
    """
    from moot.configuration import read_config

    config = read_config(path, flags, print_error)
    _check_debaters(flags, config)
    if tools:
        debaters = tuple(
            each if each.is_human or each.tools else each.model_copy(update={"tools": tuple(tools)})
            for each in config.debaters
        )
        config = config.model_copy(update={"debaters": debaters})
    # These imports are slow, and most mistakes are found before them.
    from moot.config.boundary import Permissions
    from moot.debates.session import check_config, warnings_about
    from moot.runtime.environment import Environment

    check_config(Permissions.of_operator(config), Environment(), imports=imports)
    debate_config = config if topic is None else config.model_copy(update={"topic": topic})
    for warning in warnings_about(debate_config):
        print_error(f"warning: {warning}")
    return config


def _check_debaters(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Check that the option `--debater` names at least two debaters if the protocol needs them.

    Raises:
        InputError: the only debater would reply to itself.
    """
    from moot.protocols.registry import protocol_named

    if flags.get("debaters") is None or len(config.debaters) > 1 or config.turns == 1:
        return
    if "turns" in (protocol_named(config.protocol).length_settings or ()):
        name = config.debaters[0].name
        raise InputError(
            f"--debater {name!r} is the only debater and would reply to itself: add another --debater, or "
            "use --protocol single to get one answer"
        )


def warn_of_ignored_length(flags: Mapping[str, object], config: DebateConfig) -> None:
    """Warn the user if the protocol ignores the option `--turns` or `--rounds`."""
    from moot.protocols.registry import protocol_named

    length_settings = protocol_named(config.protocol).length_settings
    if length_settings is None:
        return
    alternatives = [f"--{name}" for name in LENGTHS if name in length_settings] or length_settings
    advice = f"use {' or '.join(alternatives)}" if alternatives else "its length is fixed"
    for name in LENGTHS:
        if flags.get(name) is not None and name not in length_settings:
            print_error(f"warning: --{name} has no effect on protocol {config.protocol!r}: {advice}")


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
    """Return the content of the file given with `--answers`, or `None` without this option.

    Shell completion reads no file.
    """
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

    import httpx

    from moot.models.endpoints import listed_models
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


def entry_number(argument: str, option: str) -> int:
    """Return the number of a message. The argument is a number such as `12` or an id such as `m000012`.

    Raises:
        InputError: the argument is neither a number nor a message id.
    """
    seq = int(argument) if argument.isdecimal() and len(argument) <= MAX_DIGITS else seq_of(argument)
    if seq is None:
        raise InputError(
            f"{option} {argument!r} is not the number or id of a message: give a value such as 12 or m000012"
        )
    return seq


MAX_DIGITS = 9
"""Maximum number of digits in a message number."""

DebateArgument = Annotated[
    str,
    Argument(
        metavar="ID",
        help="Name or id of the debate, the first characters of the id, or latest for the most recently "
        "active debate.",
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
            "YAML or JSON file with answers to the debaters' questions. The file contains a list in the "
            "order of the questions, or a mapping from debaters or questions to answers."
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

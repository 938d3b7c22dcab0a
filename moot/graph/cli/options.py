"""Arguments and options that several commands share, with what is checked of them at once."""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, get_type_hints

from typer import Argument, Context, Option

from moot.state.entries import seq_of
from moot.state.errors import InputError


def _new_name(name: str | None) -> str | None:
    """Refuse a name that could not be typed again."""
    if name is not None:
        from moot.state.catalogue import check_name

        check_name(name)
    return name


def _debate_file(path: Path | None) -> Path | None:
    """Refuse, before anything is paid, a file that a debate could not be written to."""
    if path is not None:
        from moot.graph.cli.screen.output import format_of

        format_of(path)
    return path


def _answers(ctx: Context, path: Path | None) -> object:
    """Return what a file of answers holds, before anything is paid; a shell that completes reads nothing."""
    from moot.graph.cli.named_files import read_answers

    return None if ctx.resilient_parsing else read_answers(path)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are dataclasses bring their fields as its options."""
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
    run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]  # what typer reads
    return run


def debates_like(ctx: Context, incomplete: str) -> list[str]:
    """Return the names that a shell may complete a debate's with."""
    from moot.graph.cli.database import open_catalogue

    with open_catalogue(ctx.params.get("db")) as records:
        rows = records.rows() if records else []
    return [row.name for row in rows if row.name.startswith(incomplete)]


def protocols_like(incomplete: str) -> list[str]:
    """Return the protocols that a shell may complete a name to, installed packages' too."""
    from moot.nodes.protocols.protocol_table import PROTOCOLS

    return [name for name in PROTOCOLS if name.startswith(incomplete)]


def entry_number(given: str, option: str) -> int:
    """Return the number of the entry that `12` or `m000012` names.

    Raises:
        InputError: it names none.
    """
    seq = int(given) if given.isdecimal() else seq_of(given)
    if seq is None:
        raise InputError(f"{option} {given!r}: give an entry's number or id, such as 12 or m000012")
    return seq


DebateArgument = Annotated[
    str,
    Argument(
        metavar="ID", help="Its name, id, or an unambiguous beginning of the id.", autocompletion=debates_like
    ),
]
DbOption = Annotated[
    str | None,
    Option(
        "--db",
        metavar="PATH|URL",
        help="SQLite file or postgresql://…; else MOOT_DB, else moot.sqlite in the user's data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, Option("--json", help="Print one JSON document on stdout.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="No progress on stderr.")]
BellOption = Annotated[
    bool, Option("--bell", help="Ring at the end, and say so in the terminal's title; MOOT_BELL=1 always.")
]
LogOption = Annotated[
    bool, Option("--log-json", help="Progress as JSON lines on stderr, one for each thing that happens.")
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
    Path, Argument(metavar="FILE", help="Topics, one a line, or configurations: .jsonl, or a list in .yaml.")
]
WorkersOption = Annotated[
    int, Option("--workers", "-w", min=1, max=256, metavar="N", help="Debates at the same time.")
]
TurnsOption = Annotated[
    int | None, Option("--turns", min=1, metavar="N", help="Utterances in all; 6 by default.")
]
MoreTurnsOption = Annotated[
    int | None, Option("--turns", min=1, metavar="N", help="So many utterances more.")
]
ConfigOption = Annotated[
    Path | None, Option("--config", "-c", metavar="FILE", help="Configuration: YAML, TOML or JSON.")
]
DebaterOption = Annotated[
    list[str] | None,
    Option(
        "--debater",
        "-d",
        metavar="NAME[:ROLE[:STANCE]]",
        help="Who speaks, as Ada:engineer:for it; repeat for each.",
    ),
]
RoundsOption = Annotated[int | None, Option("--rounds", min=1, metavar="N", help="Rounds; 3 in a council.")]
ProtocolOption = Annotated[
    str | None,
    Option(
        "--protocol",
        metavar="NAME",
        help="round-robin (the default), moderated, random, council, dialogue, single or vote.",
        autocompletion=protocols_like,
    ),
]
ModelOption = Annotated[
    str | None,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help="Model of everybody who names none; MOOT_MODEL, else the built-in offline model.",
    ),
]
OtherModelOption = Annotated[
    str | None,
    Option("--model", "-m", metavar="NAME", help="Another model from here on, of everybody who names none."),
]
JudgeModelOption = Annotated[str | None, Option("--judge-model", metavar="NAME", help="Model of the judge.")]
NameOption = Annotated[
    str | None,
    Option(
        "--id", metavar="NAME", help="Name of the new debate; without one, a new UUID.", callback=_new_name
    ),
]
AnswersOption = Annotated[
    Path | None,
    Option(
        "--answers",
        metavar="FILE",
        help="Answers to what debaters ask, YAML or JSON: by debater, by question, or a list.",
        callback=_answers,
    ),
]


@dataclass(frozen=True)
class SetupOptions:
    """What a new debate is like, over what the configuration file says."""

    config: ConfigOption = None
    debater: DebaterOption = None
    turns: TurnsOption = None
    rounds: RoundsOption = None
    protocol: ProtocolOption = None
    model: ModelOption = None
    judge_model: JudgeModelOption = None

    def flags(self) -> dict[str, object]:
        """Return the settings that these options stand for, by their dotted keys; `None` says nothing."""
        from moot.graph.cli.usual_config import parse_debaters

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
    """How the result of a run is delivered."""

    answers: AnswersOption = None
    """What the file holds, read as the options are."""
    output: OutputOption = None
    db: DbOption = None
    as_json: JsonOption = False
    quiet: QuietOption = False
    bell: BellOption = False
    log_json: LogOption = False

    @property
    def remarks(self) -> bool:
        """Whether a reader is told on stderr what is argued and what to do next."""
        return not (self.quiet or self.log_json)

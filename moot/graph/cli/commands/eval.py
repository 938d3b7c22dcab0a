"""`moot eval`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from typer import Argument, Exit, Option

from moot.graph.cli.database import open_database
from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.graph.cli.screen.output import complain, print_text, remark
from moot.graph.cli.screen.result_tables import Grid, deliver, form_of
from moot.graph.cli.screen.terminal_text import one_line, safe
from moot.state.errors import InputError, RunError
from moot.state.verdict import PLACEHOLDER

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.scorecards import Scorecard

Form = Literal["table", "json", "csv", "md"]


def evaluate_debates(
    subjects: Annotated[
        list[str], Argument(metavar="ID|FILE…", help="Finished debates, exports, dialectic's debates.")
    ],
    problem: Annotated[
        str | None,
        Option("--problem", "-p", metavar="FILE|TEXT", help="What was to be solved; else the topic."),
    ] = None,
    evaluator: Annotated[
        list[str] | None, Option("--evaluator", "-e", metavar="MODEL", help="Who scores; repeat for several.")
    ] = None,
    config: Annotated[
        Path | None, Option("--config", "-c", metavar="FILE", help="Evaluators, in dialectic's form or YAML.")
    ] = None,
    form: Annotated[
        Form | None, Option("--format", "-f", help="Format; else the output's ending, else a table.")
    ] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="File to write; rows are added to a .csv.")
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score finished debates against their problem, 1 to 10 on each criterion, by several evaluators.

    Scores are averaged over the evaluators that gave one; N/A where none did. Exits with 3 where a debate got
    no evaluation at all.
    """
    from moot.graph.cli.named_files import file_of
    from moot.graph.evaluators import evaluators_named, read_evaluators
    from moot.graph.preflight import check_judges
    from moot.graph.scorecards import evaluate_subjects, read_subject, subject_of_document, to_csv, to_json
    from moot.nodes.driving.environment import Environment
    from moot.state.config import OFFLINE, DebateConfig
    from moot.state.settings import variable

    chosen = form_of(form, output, as_json=as_json, forms=get_args(Form))
    if config is None:
        who = evaluators_named(evaluator or [variable("MOOT_MODEL") or OFFLINE])
    else:
        read = read_evaluators(config)
        who = (*read, *evaluators_named(evaluator or [], [seat.id for seat in read]))
    wanted, outcomes = _problem(problem), []
    for each in subjects:
        if path := file_of(each):
            outcomes.append(read_subject(path, problem=wanted))
            continue
        with open_database(db) as debates:
            outcomes.append(subject_of_document(debates.get(each).document(), problem=wanted))
    if not (evaluator or config or variable("MOOT_MODEL")):
        check_judges(DebateConfig(), [model for each in outcomes for model in each.models], Environment())

    cards = evaluate_subjects(outcomes, who, DebateConfig(), Environment())
    if chosen != "csv":
        deliver(chosen, output, to_json(cards), table_of(cards).markdown(), _screen(cards))
    elif output is not None:
        add_rows(output, cards)
    else:
        print_text(to_csv(cards))
    _say_what_was_noted(cards, quiet=quiet)
    if any(card.averages["evaluators"] == 0 for card in cards):
        raise Exit(RunError.exit_code)


def _say_what_was_noted(cards: Sequence[Scorecard], *, quiet: bool) -> None:
    """Say which evaluations failed and, unless quiet, what is to be known of any."""
    evaluations = [(card.name, one.name, one.verdict) for card in cards for one in card.evaluations]
    for name, evaluator, verdict in evaluations:
        if verdict["status"] == "failed":
            complain(f"{evaluator} gave no evaluation of {name}: {verdict['error'][:500]}")
    for name, evaluator, verdict in [] if quiet else evaluations:
        for note in verdict["notes"]:
            remark(f"{name}, {evaluator}: {note}")


def _problem(given: str | None) -> str:
    """Return the problem's text: a file's, where there is one of that name."""
    from moot.graph.operator_config import read_text

    if given is None:
        return ""
    path = Path(given.removeprefix("@"))
    try:
        is_file = given.startswith("@") or path.is_file()
    except OSError:  # words too long for a file's name
        is_file = False
    return read_text(path, "the problem") if is_file else given


def add_rows(path: Path, cards: Sequence[Scorecard]) -> None:
    """Add rows to a CSV file, with the header where it is new or empty.

    Raises:
        InputError: it cannot be written.
    """
    from moot.graph.scorecards import to_csv

    try:
        with path.open("a+", encoding="utf-8", newline="") as file:
            empty = file.tell() == 0
            broken = not empty and not path.read_bytes().endswith(b"\n")
            file.write(("\n" if broken else "") + to_csv(cards, heading=empty))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error}") from error


def table_of(cards: Sequence[Scorecard]) -> Grid:
    """Return a row a debate, with its averages."""
    from moot.graph.scorecards import figures, header

    return Grid(header(), [[card.name, *figures(card)] for card in cards])


def _screen(cards: Sequence[Scorecard]) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    # Few debates and many criteria: on a screen each debate is a column.
    table = table_of(cards)
    (_, *names), *rows = zip(table.heading, *table.rows, strict=True)
    parts: list[RenderableType] = [Grid(["", *names], rows).screen()]
    for card in cards:
        for one in (each for each in card.evaluations if each.verdict["status"] == "ok"):
            model = one_line(one.verdict["model"], 40)
            heading = f"{one_line(card.name, 40)} · {one_line(one.name, 40)} ({model})"
            said = f"+ {safe(one.strengths)}\n– {safe(one.weaknesses)}"
            said = PLACEHOLDER if one.verdict.get("placeholder") else said
            parts += [Padding(Text(heading, "bold"), (1, 0, 0, 0)), Text(said)]
    return parts

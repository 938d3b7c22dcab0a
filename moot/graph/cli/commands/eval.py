"""`moot eval`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.state.errors import InputError, RunError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.cli.screen.result_tables import Grid
    from moot.graph.scorecards import Scorecard
    from moot.nodes.judging.evaluation import Evaluator, Subject


Form = Literal["table", "json", "csv", "md"]


def evaluate_debates(
    subjects: Annotated[
        list[str], typer.Argument(metavar="ID|FILE…", help="Finished debates, exports, dialectic's debates.")
    ],
    problem: Annotated[
        str | None,
        typer.Option("--problem", "-p", metavar="FILE|TEXT", help="What was to be solved; else the topic."),
    ] = None,
    evaluator: Annotated[
        list[str] | None,
        typer.Option("--evaluator", "-e", metavar="MODEL", help="Who scores; repeat for several."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Evaluators, in dialectic's form or YAML."),
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--format", "-f", help="Format; else the output's ending, else a table.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File to write; rows are added to a .csv."),
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score finished debates against their problem, 1 to 10 on each criterion, by several evaluators.

    Scores are averaged over the evaluators that gave one; N/A where none did. Exits with 3 where a debate got
    no evaluation at all.
    """
    from moot.graph.cli.complaint import complain
    from moot.graph.cli.screen.output import print_text, remark
    from moot.graph.cli.screen.result_tables import deliver, form_of
    from moot.graph.preflight import check_judges
    from moot.graph.scorecards import evaluate_subjects, to_csv, to_json
    from moot.nodes.driving.environment import Environment
    from moot.state.config import DebateConfig
    from moot.state.settings import default_model

    chosen = form_of(form, output, as_json=as_json, forms=get_args(Form))
    who = _evaluators(evaluator or [], config)
    wanted = _problem(problem)
    outcomes = [_subject(each, wanted, db) for each in subjects]
    if not (evaluator or config or default_model()):
        check_judges(DebateConfig(), [model for each in outcomes for model in each.models], Environment())
    cards = evaluate_subjects(outcomes, who, DebateConfig(), Environment())
    if chosen == "csv" and output is not None:
        add_rows(output, cards)
    elif chosen == "csv":
        print_text(to_csv(cards))
    else:
        deliver(chosen, output, to_json(cards), table_of(cards).markdown(), _screen(cards))
    evaluations = [(card.name, one, one.verdict) for card in cards for one in card.evaluations]
    for name, one, verdict in evaluations:
        if verdict["status"] == "failed":
            complain(f"{one.name} gave no evaluation of {name}: {verdict['error'][:500]}")
    for name, one, verdict in [] if quiet else evaluations:
        for note in verdict["notes"]:
            remark(f"{name}, {one.name}: {note}")
    if any(card.averages["evaluators"] == 0 for card in cards):
        raise typer.Exit(RunError.exit_code)


def _evaluators(models: Sequence[str], config: Path | None) -> Sequence[Evaluator]:
    from moot.graph.evaluators import evaluators_named, read_evaluators
    from moot.state.config import OFFLINE
    from moot.state.settings import default_model

    if config is None:
        return evaluators_named(models or [default_model() or OFFLINE])
    read = read_evaluators(config)
    return (*read, *evaluators_named(models, [seat.id for seat in read]))


def _problem(given: str | None) -> str:
    """Return the problem's text: a file's, where there is one of that name.

    Raises:
        InputError: the file cannot be read.
    """
    if given is None:
        return ""
    path = Path(given.removeprefix("@"))
    try:
        is_file = given.startswith("@") or path.is_file()
    except OSError:  # words too long for a file's name
        is_file = False
    try:
        return path.read_text(encoding="utf-8") if is_file else given
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the problem from {given!r}: {error}") from error


def _subject(given: str, problem: str, db: str | None) -> Subject:
    from moot.graph.cli.commands.judge import file_of
    from moot.graph.cli.database import opened
    from moot.graph.scorecards import read_subject, subject_of_document

    path = file_of(given)
    if path is not None:
        return read_subject(path, problem=problem)
    with opened(db) as debates:
        return subject_of_document(debates.get(given).document(), problem=problem)


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
    from moot.graph.cli.screen.result_tables import Grid
    from moot.graph.scorecards import figures, header

    return Grid(header(), [[card.name, *figures(card)] for card in cards])


def _screen(cards: Sequence[Scorecard]) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    from moot.graph.cli.screen.result_tables import Grid
    from moot.graph.cli.screen.terminal_text import one_line, safe
    from moot.state.verdict import PLACEHOLDER

    (_, *names), *rows = zip(*[table_of(cards).heading, *table_of(cards).rows], strict=True)
    parts: list[RenderableType] = [Grid(["", *names], rows).screen()]
    for card in cards:
        for one in (each for each in card.evaluations if each.verdict["status"] == "ok"):
            model = one_line(one.verdict["model"], 40)
            heading = f"{one_line(card.name, 40)} · {one_line(one.name, 40)} ({model})"
            said = f"+ {safe(one.strengths)}\n– {safe(one.weaknesses)}"
            said = PLACEHOLDER if one.verdict.get("placeholder") else said
            parts += [Padding(Text(heading, "bold"), (1, 0, 0, 0)), Text(said)]
    return parts

"""`moot eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from moot.graph.evaluating import Scorecard
    from moot.nodes.judging.evaluation import Evaluator, Subject

app = new_app()

FAILED = 3
Form = Literal["table", "json", "csv", "md"]
ENDINGS: dict[str, Form] = {".json": "json", ".csv": "csv", ".md": "md"}


@app.command("eval")
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
    """Score finished debates against their problem, 1 to 10 on seven criteria, by several evaluators.

    Scores are averaged over the evaluators that gave one; N/A where none did. Exits with 3 where a debate got
    no evaluation at all.
    """
    from moot.graph.cli.entry import complain
    from moot.graph.cli.screen.output import check_folder
    from moot.graph.evaluating import evaluate_subjects
    from moot.nodes.driving.environment import Environment
    from moot.state.config import DebateConfig

    chosen: Form = (
        "json" if as_json else form or (ENDINGS.get(output.suffix.lower()) if output else None) or "table"
    )
    if output is not None:
        check_folder(output)
    who = _evaluators(evaluator or [], config)
    wanted = _problem(problem)
    found = [_subject(given, wanted, db) for given in subjects]
    cards = evaluate_subjects(found, who, DebateConfig(), Environment())
    _deliver(cards, chosen, output)
    failures = [(card.name, one) for card in cards for one in card.evaluations if one["error"]]
    for name, one in failures:
        complain(f"{one['name']} gave no evaluation of {name}: {one['error'][:500]}")
    if not quiet:
        _say_notes(cards)
    if any(card.averages["evaluators"] == 0 for card in cards):
        raise typer.Exit(FAILED)


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
    from moot.state.errors import InputError

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
    from moot.graph.evaluating import read_subject, subject_of_document

    path = file_of(given)
    if path is not None:
        return read_subject(path, problem=problem)
    with opened(db) as debates:
        return subject_of_document(debates.get(given).document(), problem=problem)


def _deliver(cards: Sequence[Scorecard], form: Form, output: Path | None) -> None:
    from moot.graph.cli.screen.output import print_json, print_result, print_text, write_file
    from moot.graph.cli.screen.terminal_text import json_text
    from moot.graph.evaluating import to_csv, to_json, to_markdown

    if output is not None and form == "csv":
        add_rows(output, cards)
    elif output is not None:
        write_file(output, json_text(to_json(cards)) + "\n" if form == "json" else to_markdown(cards))
    elif form == "table":
        print_result(*_screen(cards))
    elif form == "json":
        print_json(to_json(cards))
    else:
        print_text(to_csv(cards) if form == "csv" else to_markdown(cards))


def add_rows(path: Path, cards: Sequence[Scorecard]) -> None:
    """Add rows to a CSV file, with the header where it is new or empty.

    Raises:
        InputError: it cannot be written.
    """
    from moot.graph.evaluating import to_csv
    from moot.state.errors import InputError

    try:
        with path.open("a+", encoding="utf-8", newline="") as file:
            empty = file.tell() == 0
            broken = not empty and not _ends_line(path)
            file.write(("\n" if broken else "") + to_csv(cards, header=empty))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error}") from error


def _ends_line(path: Path) -> bool:
    return path.read_bytes().endswith(b"\n")


def _screen(cards: Sequence[Scorecard]) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from moot.graph.cli.screen.terminal_text import one_line, safe
    from moot.graph.evaluating import HEADER, figures

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for card in cards:
        table.add_column(Text(one_line(card.name, 40)), justify="right")
    for number, title in enumerate(HEADER[1:]):
        table.add_row(title, *(figures(card)[number] for card in cards))
    parts: list[RenderableType] = [table]
    for card in cards:
        for one in (each for each in card.evaluations if not each["error"]):
            heading = (
                f"{one_line(card.name, 40)} · {one_line(one['name'], 40)} ({one_line(one['model'], 40)})"
            )
            said = f"+ {safe(one['strengths'])}\n– {safe(one['weaknesses'])}"
            parts += [Padding(Text(heading, "bold"), (1, 0, 0, 0)), Text(said)]
    return parts


def _say_notes(cards: Sequence[Scorecard]) -> None:
    from moot.graph.cli.screen.output import remark

    for card in cards:
        for one in card.evaluations:
            for note in one["notes"]:
                remark(f"{card.name}, {one['name']}: {note}")

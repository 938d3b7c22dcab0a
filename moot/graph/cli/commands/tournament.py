"""`moot tournament`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from moot.graph.tournament import Played, Table
    from moot.graph.tournament_config import TournamentConfig

app = new_app()

FAILED = 3
Form = Literal["table", "json", "md"]
ENDINGS: dict[str, Form] = {".json": "json", ".md": "md"}


@app.command()
def tournament(
    path: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Topics, line-ups, seeds: YAML, TOML or JSON.")
    ],
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, max=64, metavar="N", help="Debates at the same time."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the matches, play none.")] = False,
    form: Annotated[
        Form | None, typer.Option("--format", "-f", help="Format; else the output's ending, else a table.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="A .json or .md file to write.")
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let every two line-ups debate every topic with every seed, on both sides, and rate them.

    Each match is a debate of the database. Run it again after Ctrl-C or a failure: what has a verdict is not
    played twice. Exits with 3 where a match got no verdict.
    """
    from moot.graph.cli.database import opened
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.cli.screen.output import check_folder, remark
    from moot.graph.tournament import play_tournament

    chosen: Form = (
        "json" if as_json else form or (ENDINGS.get(output.suffix.lower()) if output else None) or "table"
    )
    if output is not None:
        check_folder(output)
    settings = read_tournament(path)
    if dry_run:
        _list(settings, as_json=chosen == "json")
        return
    with opened(db, make=True) as debates, terminated_like_interrupted():
        table = play_tournament(
            debates, settings, concurrency=concurrency, report=None if quiet else _say_played
        )
    _deliver(table, chosen, output)
    if table.failed:
        remark(f"{len(table.failed)} of {len(table.matches)} matches have no verdict: run it again to go on")
        raise typer.Exit(FAILED)


def read_tournament(path: Path) -> TournamentConfig:
    """Read a tournament; rubrics that are files are read into it.

    Raises:
        ConfigError: it cannot be used.
    """
    from moot.graph.cli.named_files import with_rubrics
    from moot.graph.tournament_config import make_tournament
    from moot.state.config.config_files import load_config
    from moot.state.settings import default_model

    model = default_model()
    data = {**({"model": model} if model else {}), **load_config(path)}
    data.setdefault("name", path.stem)
    return make_tournament(with_rubrics(data, path.parent))


def _list(settings: TournamentConfig, *, as_json: bool) -> None:
    from moot.graph.cli.screen.output import print_json, print_result
    from moot.graph.cli.screen.terminal_text import one_line
    from moot.graph.tournament_config import pairings

    found = pairings(settings)
    if as_json:
        rows = [
            {key: getattr(each, key) for key in ("id", "topic", "first", "second", "seed")} for each in found
        ]
        print_json(rows)
        return
    lines = [f"{one_line(each.topic, 60)}: {each.first} – {each.second}, seed {each.seed}" for each in found]
    print_result(f"{len(found)} matches", *lines)


def _say_played(played: Played, done: int, total: int) -> None:
    from moot.graph.cli.screen.output import remark
    from moot.graph.cli.screen.terminal_text import one_line

    outcome = {"": f"no verdict: {one_line(played.error, 200)}", "tie": "a tie"}.get(
        played.winner, f"{played.winner} wins"
    )
    remark(f"[{done}/{total}] {one_line(played.topic, 50)}: {played.first} – {played.second}: {outcome}")


def _deliver(table: Table, form: Form, output: Path | None) -> None:
    from moot.graph.cli.screen.output import print_json, print_result, print_text, write_file
    from moot.graph.cli.screen.terminal_text import json_text

    if output is not None:
        write_file(output, json_text(table.to_json()) + "\n" if form == "json" else to_markdown(table))
    elif form == "json":
        print_json(table.to_json())
    elif form == "md":
        print_text(to_markdown(table))
    else:
        print_result(*_screen(table))


def to_markdown(table: Table) -> str:
    """Return ratings, win matrix, matches and cost as Markdown."""
    parts = [f"# {_cell(table.name)}", _markdown_table(*_rating_rows(table))]
    parts += ["## Wins, row over column", _markdown_table(*_win_rows(table))]
    heading = ("topic", "first", "second", "seed", "winner", "debate")
    rows = [(m.topic, m.first, m.second, str(m.seed), m.winner or "no verdict", m.id) for m in table.matches]
    parts += ["## Matches", _markdown_table(heading, rows), _summary(table)]
    return "\n\n".join(parts) + "\n"


def _rating_rows(table: Table) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    heading = ("line-up", "rating", "95 %", "wins", "matches")
    rows = [
        (
            row["player"],
            f"{row['rating']:.0f}",
            f"{row['low']:.0f}–{row['high']:.0f}",
            f"{row['wins']:g}",
            str(row["games"]),
        )
        for row in table.ratings
    ]
    return heading, rows


def _win_rows(table: Table) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    players = table.wins["players"]
    rows = [
        (player, *("–" if player == other else f"{n:g}" for other, n in zip(players, wins, strict=True)))
        for player, wins in zip(players, table.wins["wins"], strict=True)
    ]
    return ("", *players), rows


def _summary(table: Table) -> str:
    from moot.graph.cli.screen.agreement_screen import rate

    cost = f" · US$ {table.cost_usd:.4f}" if table.cost_usd else ""
    played = len(table.matches) - len(table.failed)
    first = f"first speaker wins {rate(table.first_side)}"
    return f"{played} of {len(table.matches)} matches · {first} · {table.tokens:,} tokens{cost}"


def _markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines: list[Sequence[str]] = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _screen(table: Table) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    from moot.graph.cli.screen.terminal_text import one_line

    parts: list[RenderableType] = []
    for heading, rows in (_rating_rows(table), _win_rows(table)):
        grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for number, title in enumerate(heading):
            grid.add_column(Text(one_line(title, 30)), justify="right" if number else "left")
        for row in rows:
            grid.add_row(*(Text(one_line(cell, 40)) for cell in row))
        parts.append(Padding(grid, (0, 0, 1, 0)))
    return [*parts, Text(_summary(table))]

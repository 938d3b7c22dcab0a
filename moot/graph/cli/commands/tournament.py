"""`moot tournament`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.state.amounts import amount
from moot.state.errors import RunError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moot.graph.cli.screen.result_tables import Grid
    from moot.graph.tournament import MatchResult, Standings, TournamentConfig


Form = Literal["table", "json", "md"]


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
    from moot.graph.cli.screen.output import remark
    from moot.graph.cli.screen.result_tables import deliver, form_of
    from moot.graph.tournament import play_tournament

    chosen = form_of(form, output, as_json=as_json, forms=get_args(Form))
    settings = read_tournament(path)
    if dry_run:
        _list(settings, as_json=chosen == "json")
        return
    with opened(db, make=True) as debates, terminated_like_interrupted():
        table = play_tournament(
            debates, settings, concurrency=concurrency, report=None if quiet else _say_played
        )
    deliver(chosen, output, table.to_json(), to_markdown(table), _screen(table))
    if table.failed:
        remark(f"no verdict in {len(table.failed)} of {amount(len(table.matches), 'match')}: run it again")
        raise typer.Exit(RunError.exit_code)


def read_tournament(path: Path) -> TournamentConfig:
    """Read a tournament; rubrics that are files are read into it.

    Raises:
        ConfigError: it cannot be used.
    """
    from moot.graph.cli.named_files import with_rubrics
    from moot.graph.tournament import make_tournament
    from moot.state.config.config_files import load_config
    from moot.state.settings import default_model

    model = default_model()
    data = {**({"model": model} if model else {}), **load_config(path)}
    data.setdefault("name", path.stem)
    return make_tournament(with_rubrics(data, path.parent))


def _list(settings: TournamentConfig, *, as_json: bool) -> None:
    from moot.graph.cli.screen.output import print_json, print_result
    from moot.graph.cli.screen.terminal_text import one_line
    from moot.graph.tournament import pairings

    found = pairings(settings)
    if as_json:
        rows = [
            {key: getattr(each, key) for key in ("id", "topic", "first", "second", "seed")} for each in found
        ]
        print_json(rows)
        return
    lines = [f"{one_line(each.topic, 60)}: {each.first} – {each.second}, seed {each.seed}" for each in found]
    print_result(amount(len(found), "match"), *lines)


def _say_played(played: MatchResult, done: int, total: int) -> None:
    from moot.graph.cli.screen.output import remark
    from moot.graph.cli.screen.terminal_text import one_line
    from moot.state.verdict import NO_WINNER

    if played.winner:
        outcome = NO_WINNER.get(played.winner) or f"{played.winner} wins"
    else:
        outcome = f"no verdict: {one_line(played.error, 200)}"
    remark(f"[{done}/{total}] {one_line(played.topic, 50)}: {played.first} – {played.second}: {outcome}")


def to_markdown(table: Standings) -> str:
    """Return ratings, win matrix, matches and cost as Markdown."""
    from moot.graph.cli.screen.result_tables import Grid, markdown_cell

    heading = ("topic", "first", "second", "seed", "winner", "debate")
    rows = [(m.topic, m.first, m.second, str(m.seed), m.winner or "no verdict", m.id) for m in table.matches]
    return "\n".join(
        [
            f"# {markdown_cell(table.name)}\n",
            _ratings(table).markdown(),
            f"## Wins, row over column\n\n{_wins(table).markdown()}",
            f"## Matches\n\n{Grid(heading, rows).markdown()}",
            f"{_summary(table)}\n",
        ]
    )


def _ratings(table: Standings) -> Grid:
    from moot.graph.cli.screen.result_tables import Grid

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
    return Grid(("line-up", "rating", "95 %", "wins", "matches"), rows)


def _wins(table: Standings) -> Grid:
    from moot.graph.cli.screen.result_tables import Grid

    players = table.wins["players"]
    rows = [
        (player, *("–" if player == other else f"{n:g}" for other, n in zip(players, wins, strict=True)))
        for player, wins in zip(players, table.wins["wins"], strict=True)
    ]
    return Grid(("", *players), rows)


def _summary(table: Standings) -> str:
    from moot.graph.cli.screen.agreement_screen import rate

    cost = f" · US$ {table.cost_usd:.4f}" if table.cost_usd else ""
    played = len(table.matches) - len(table.failed)
    first = f"first speaker wins {rate(table.first_side)}"
    return f"{played} of {amount(len(table.matches), 'match')} · {first} · {table.tokens:,} tokens{cost}"


def _screen(table: Standings) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    grids = [Padding(grid.screen(), (0, 0, 1, 0)) for grid in (_ratings(table), _wins(table))]
    return [*grids, Text(_summary(table))]

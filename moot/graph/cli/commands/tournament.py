"""`moot tournament`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from typer import Argument, Exit, Option

from moot.graph.cli.database import open_database
from moot.graph.cli.options import DbOption, JsonOption, QuietOption
from moot.graph.cli.screen.output import print_answer, remark
from moot.graph.cli.screen.result_tables import Grid, deliver, form_of, markdown_cell, rate
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.text.plain import amount
from moot.state.errors import RunError
from moot.state.verdict import NO_WINNER

if TYPE_CHECKING:
    from moot.graph.tournament import MatchResult, Standings, TournamentConfig

Form = Literal["table", "json", "md"]
MATCH = ("id", "topic", "first", "second", "seed")
"""What is told of a match that has not been played."""


def tournament(
    path: Annotated[Path, Argument(metavar="CONFIG", help="Topics, line-ups, seeds: YAML, TOML or JSON.")],
    concurrency: Annotated[
        int | None, Option("--concurrency", min=1, max=64, metavar="N", help="Debates at the same time.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="List the matches, play none.")] = False,
    form: Annotated[
        Form | None, Option("--format", "-f", help="Format; else the output's ending, else a table.")
    ] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", metavar="FILE", help="A .json or .md file to write.")
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let every two line-ups debate every topic with every seed, on both sides, and rate them.

    Each match is a debate of the database. Run it again after Ctrl-C or a failure: what has a verdict is not
    played twice. Exits with 3 where a match got no verdict.
    """
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.tournament import pairings, play_tournament

    chosen = form_of(form, output, as_json=as_json, forms=get_args(Form))
    settings = read_tournament(path)
    if dry_run:
        matches = pairings(settings)
        data = [{key: getattr(each, key) for key in MATCH} for each in matches]
        lines = [f"{one_line(m.topic, 60)}: {m.first} – {m.second}, seed {m.seed}" for m in matches]
        return print_answer(data, amount(len(matches), "match"), *lines, as_json=chosen == "json")
    report = None if quiet else _say_played
    with open_database(db, make=True) as debates, terminated_like_interrupted():
        table = play_tournament(debates, settings, concurrency=concurrency, report=report)
    _deliver(table, chosen, output)
    if table.failed:
        remark(f"no verdict in {len(table.failed)} of {amount(len(table.matches), 'match')}: run it again")
        raise Exit(RunError.exit_code)


def read_tournament(path: Path) -> TournamentConfig:
    """Read a tournament; rubrics that are files are read into it.

    Raises:
        ConfigError: it cannot be used.
    """
    from moot.graph.operator_config import with_rubrics
    from moot.graph.tournament import make_tournament
    from moot.state.config.config_files import load_config
    from moot.state.settings import variable

    model = variable("MOOT_MODEL")
    data = {"name": path.stem, **({"model": model} if model else {}), **load_config(path)}
    return make_tournament(with_rubrics(data, path.parent))


def _say_played(played: MatchResult, done: int, total: int) -> None:
    outcome = f"no verdict: {one_line(played.error, 200)}"
    if played.winner:
        outcome = NO_WINNER.get(played.winner) or f"{played.winner} wins"
    remark(f"[{done}/{total}] {one_line(played.topic, 50)}: {played.first} – {played.second}: {outcome}")


def _deliver(table: Standings, form: str, output: Path | None) -> None:
    """Write or print ratings, win matrix, matches and cost."""
    from rich.padding import Padding

    ratings = [
        (
            row["player"],
            f"{row['rating']:.0f}",
            f"{row['low']:.0f}–{row['high']:.0f}",
            f"{row['wins']:g}",
            str(row["games"]),
        )
        for row in table.ratings
    ]
    players = table.wins["players"]
    wins = [
        (player, *("–" if player == other else f"{n:g}" for other, n in zip(players, row, strict=True)))
        for player, row in zip(players, table.wins["wins"], strict=True)
    ]
    matches = [
        (each.topic, each.first, each.second, str(each.seed), each.winner or "no verdict", each.id)
        for each in table.matches
    ]
    ratings_grid = Grid(("line-up", "rating", "95 %", "wins", "matches"), ratings)
    wins_grid = Grid(("", *players), wins)
    matches_grid = Grid(("topic", "first", "second", "seed", "winner", "debate"), matches)

    played = len(table.matches) - len(table.failed)
    summary = (
        f"{played} of {amount(len(table.matches), 'match')} · first speaker wins {rate(table.first_side)} · "
        f"{table.tokens:,} tokens" + (f" · US$ {table.cost_usd:.4f}" if table.cost_usd else "")
    )
    markdown = [
        f"# {markdown_cell(table.name)}\n",
        ratings_grid.markdown(),
        f"## Wins, row over column\n\n{wins_grid.markdown()}",
        f"## Matches\n\n{matches_grid.markdown()}",
        f"{summary}\n",
    ]
    grids = [Padding(grid.screen(), (0, 0, 1, 0)) for grid in (ratings_grid, wins_grid)]
    deliver(form, output, table.to_json(), "\n".join(markdown), [*grids, summary])

"""`moot list`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from moot.graph.cli.database import opened_records
from moot.graph.cli.options import DbOption, JsonOption
from moot.graph.cli.screen.output import columns, print_json, print_result, remark
from moot.graph.cli.screen.terminal_text import local_time, one_line
from moot.state.amounts import amount
from moot.state.catalogue import handle

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moot.state.catalogue import DebateRow, ListedOutcome

WIDE = 100
"""Columns from which on the list is a table."""
MATCH = re.compile(r"-vs-.+-\d+-[0-9a-f]{10}")
"""In the name of every match of a tournament."""


def list_debates(
    limit: Annotated[int | None, Option("--limit", "-n", min=1, metavar="N", help="The first N.")] = None,
    status: Annotated[
        str | None,
        Option("--status", metavar="STATUS", help="done, limit, paused, waiting, running, failed."),
    ] = None,
    grep: Annotated[
        str | None, Option("--grep", metavar="WORDS", help="In the name, topic, model or winner.")
    ] = None,
    matches: Annotated[bool, Option("--matches", help="Tournaments' matches too.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the debates of a database, the most recently active first."""
    with opened_records(db) as records:
        rows, outcomes = (records.rows(), records.outcomes.all()) if records else ([], {})
    known = [(row, outcomes.get(row.id)) for row in rows if status in (None, row.status)]
    if grep:
        known = [each for each in known if grep.casefold() in _text(*each).casefold()]
    folded = 0
    if not matches and not as_json:
        kept = [each for each in known if not MATCH.search(each[0].name)]
        known, folded = kept, len(known) - len(kept)
    shown = known[:limit]
    if as_json:
        return print_json([{**asdict(row), **(asdict(found) if found else {})} for row, found in shown])
    if shown:
        print_result(*([_table(shown)] if columns() >= WIDE else _lines(shown)))
    elif not rows:
        remark('no debates yet: begin one with `moot run "TOPIC"`')
    if len(known) > len(shown):
        remark(f"{len(known) - len(shown)} more")
    if folded:
        remark(f"folded: {amount(folded, 'match')} of tournaments; --matches shows them")


def _text(row: DebateRow, outcome: ListedOutcome | None) -> str:
    return "\n".join([row.name, row.topic, *((outcome.model, outcome.winner) if outcome else ())])


def _lines(known: list[tuple[DebateRow, ListedOutcome | None]]) -> list[RenderableType]:
    """Return the list for a narrow terminal."""
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for row, found in known:
        more = (found.winner, found.model) if found else ()
        facts = (
            row.status,
            *more,
            amount(row.turns, "turn"),
            amount(row.tokens, "token"),
            local_time(row.updated_at),
        )
        about = Text(f"{one_line(row.topic, 120)}\n{one_line(' · '.join(filter(None, facts)), 200)}")
        parts += [Text(one_line(row.name, 60), "bold"), Padding(about, (0, 0, 0, 2))]
    return parts


def _table(known: list[tuple[DebateRow, ListedOutcome | None]]) -> Table:
    from rich.text import Text

    from moot.graph.cli.screen.result_tables import borderless_table

    table = borderless_table(expand=True)
    table.add_column("debate", max_width=36, overflow="fold")
    table.add_column("topic", ratio=2, no_wrap=True, overflow="ellipsis", min_width=12)
    for heading in ("status", "winner", "model"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=18)
    table.add_column("turns", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column(f"active, {local_time(known[0][0].updated_at)[17:]}", no_wrap=True)
    for row, outcome in known:
        about = (outcome.winner, outcome.model) if outcome else ("", "")
        cells = (
            one_line(handle(row.id, row.name), 60),
            one_line(row.topic, 200),
            row.status,
            *(one_line(each, 40) for each in about),
        )
        when = local_time(row.updated_at)[:16]
        table.add_row(*map(Text, cells), str(row.turns), f"{row.tokens:,}", when)
    return table

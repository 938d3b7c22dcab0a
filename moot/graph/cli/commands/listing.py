"""`moot list`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from moot.graph.cli.database import opened_records
from moot.graph.cli.options import DbOption, JsonOption
from moot.graph.cli.screen.output import print_json, print_result, remark
from moot.graph.cli.screen.terminal_text import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from moot.state.catalogue import DebateRow


def list_debates(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List the debates of a database, the most recently active first."""
    with opened_records(db) as records:
        rows = records.rows() if records else []
    if as_json:
        print_json([asdict(row) for row in rows])
    elif rows:
        print_result(_table(rows))
    else:
        remark('no debates yet: begin one with `moot run "TOPIC"`')


def _table(rows: list[DebateRow]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column("debate", max_width=36, overflow="fold")
    table.add_column("topic", ratio=1, no_wrap=True, overflow="ellipsis", min_width=12)
    table.add_column("status", no_wrap=True)
    table.add_column("turns", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("active", no_wrap=True)
    for row in rows:
        name = row.name if row.name != row.id else row.id[:8]
        when = row.updated_at[:16].replace("T", " ")
        cells = (one_line(name, 60), one_line(row.topic, 200), row.status)
        table.add_row(*map(Text, cells), str(row.turns), f"{row.tokens:,}", when)
    return table

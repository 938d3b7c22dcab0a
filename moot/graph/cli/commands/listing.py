"""`moot list` and `moot search`: which debates there are, and what was said in them."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moot.graph.cli.database import open_catalogue, open_database
from moot.graph.cli.options import DbOption, JsonOption
from moot.graph.cli.screen.output import columns, print_json, print_result, remark
from moot.graph.cli.screen.result_tables import borderless_table
from moot.graph.cli.screen.terminal_text import local_time, one_line
from moot.nodes.text.plain import amount
from moot.state.catalogue import handle

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moot.state.catalogue import DebateRow, ListedOutcome

WIDE = 100
"""Columns from which on the list is a table."""
MATCH = re.compile(r"-vs-.+-\d+-[0-9a-f]{10}")
"""In the name of every match of a tournament."""
AROUND = 60
"""Characters on each side of the first word that was found."""


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
    with open_catalogue(db) as records:
        rows, outcomes = (records.rows(), records.outcomes.all()) if records else ([], {})
    known = []
    for row in rows:
        outcome = outcomes.get(row.id)
        text = "\n".join([row.name, row.topic, *((outcome.model, outcome.winner) if outcome else ())])
        if status in (None, row.status) and (grep or "").casefold() in text.casefold():
            known.append((row, outcome))
    if as_json:
        return print_json(
            [{**asdict(row), **(asdict(found) if found else {})} for row, found in known[:limit]]
        )

    kept = known if matches else [each for each in known if not MATCH.search(each[0].name)]
    shown = kept[:limit]
    if shown:
        print_result(*([_table(shown)] if columns() >= WIDE else _lines(shown)))
    elif not rows:
        remark('no debates yet: begin one with `moot run "TOPIC"`')
    if len(kept) > len(shown):
        remark(f"{len(kept) - len(shown)} more")
    if folded := len(known) - len(kept):
        remark(f"folded: {amount(folded, 'match')} of tournaments; --matches shows them")


def _lines(known: list[tuple[DebateRow, ListedOutcome | None]]) -> list[RenderableType]:
    """Return the list for a narrow terminal."""
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for row, outcome in known:
        facts = [
            row.status,
            *((outcome.winner, outcome.model) if outcome else ()),
            amount(row.turns, "turn"),
            amount(row.tokens, "token"),
            local_time(row.updated_at),
        ]
        about = Text(f"{one_line(row.topic, 120)}\n{one_line(' · '.join(filter(None, facts)), 200)}")
        parts += [Text(one_line(row.name, 60), "bold"), Padding(about, (0, 0, 0, 2))]
    return parts


def _table(known: list[tuple[DebateRow, ListedOutcome | None]]) -> Table:
    from rich.text import Text

    table = borderless_table(expand=True)
    table.add_column("debate", max_width=36, overflow="fold")
    table.add_column("topic", ratio=2, no_wrap=True, overflow="ellipsis", min_width=12)
    for heading in ("status", "winner", "model"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=18)
    for heading in ("turns", "tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(f"active, {local_time(known[0][0].updated_at)[17:]}", no_wrap=True)
    for row, outcome in known:
        cells = (
            one_line(handle(row.id, row.name), 60),
            one_line(row.topic, 200),
            row.status,
            one_line(outcome.winner, 40) if outcome else "",
            one_line(outcome.model, 40) if outcome else "",
        )
        when = local_time(row.updated_at)[:16]
        table.add_row(*map(Text, cells), str(row.turns), f"{row.tokens:,}", when)
    return table


def search(
    words: Annotated[list[str], Argument(metavar="WORDS", help="An entry must hold each of them.")],
    limit: Annotated[int, Option("--limit", "-n", min=1, metavar="N", help="Entries shown.")] = 20,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what was said in all debates of a database, the most recently active debate first."""
    from rich.padding import Padding
    from rich.text import Text

    wanted = [word.casefold() for given in words for word in given.split()]
    found = []
    with open_database(db) as debates:
        for row in debates.rows():
            debate = debates.get(row.id)
            values = debate.state().values
            names = debate.config().names() if values.get("config") else {}
            for entry in values.get("full_transcript", []):
                text = " ".join(entry["content"].split())
                if all(word in text.casefold() for word in wanted):
                    at = text.casefold().find(wanted[0])
                    start, end = max(0, at - AROUND), at + len(wanted[0]) + AROUND
                    cut = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
                    who = names.get(entry["speaker"], entry["speaker"])
                    found.append({"debate": debate.name, "id": entry["id"], "speaker": who, "text": cut})
    if as_json:
        return print_json(found[:limit])
    for each in found[:limit]:
        place = " · ".join(one_line(each[key], 60) for key in ("debate", "id", "speaker"))
        print_result(Text(place, "bold"), Padding(Text(one_line(each["text"], 400)), (0, 0, 0, 2)))
    if len(found) > limit:
        remark(f"{len(found) - limit} more: --limit {len(found)} shows all")
    elif not found:
        remark("nobody said that")

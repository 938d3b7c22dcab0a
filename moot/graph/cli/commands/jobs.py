"""`moot jobs list | cancel | retry`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.state.errors import InputError

app = new_app(no_args_is_help=True)


@app.callback()
def jobs() -> None:
    """See and change what waits for `moot worker`."""


@app.command("list")
def list_jobs(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List what runs, waits or failed, in the order in which it is taken."""
    from moot.graph.cli.database import opened_queue, opened_records
    from moot.graph.cli.screen.output import print_json, print_result
    from moot.graph.cli.screen.result_tables import Grid

    entries = opened_queue(db).entries()
    with opened_records(db) as records:
        known = {row.id: row for row in records.rows()} if records else {}
    rows = [(known[each.debate], each) for each in entries if each.debate in known]
    if as_json:
        return print_json([{"name": row.name, "turns": row.turns, **asdict(each)} for row, each in rows])
    heading = ("debate", "job", "priority", "attempts", "turns", "topic")
    cells = [
        (row.name, each.status, str(each.priority), str(each.attempts), str(row.turns), row.topic)
        for row, each in rows
    ]
    print_result(Grid(heading, cells).screen())


@app.command()
def cancel(debate_id: DebateArgument, db: DbOption = None) -> None:
    """Take a debate out of the queue; where it runs, it is paused."""
    from moot.graph.cli.database import opened_queue

    if not opened_queue(db).cancel(_id_of(db, debate_id)):
        raise InputError(f"debate {debate_id!r} is not in the queue: `moot jobs list` shows what is")


@app.command()
def retry(
    debate_id: DebateArgument,
    priority: Annotated[
        int | None, Option("--priority", metavar="N", help="The highest comes first.")
    ] = None,
    db: DbOption = None,
) -> None:
    """Queue any debate, one that failed anew; one that waits gets another priority."""
    from moot.graph.cli.database import opened_queue

    opened_queue(db).add([_id_of(db, debate_id)], priority)


def _id_of(db: str | None, name: str) -> str:
    from moot.graph.cli.database import present_records

    with present_records(db) as records:
        return records.find(name).id

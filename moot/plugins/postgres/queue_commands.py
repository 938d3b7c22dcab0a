"""`moot worker` and `moot jobs`: run and manage the debates that `moot batch --queue` queued."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from moot.cli import options as shared, terminal
from moot.cli.databases import open_catalogue, open_database, present_records, queue_url
from moot.cli.group import command, new_app
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.plugins.postgres.work_queue import WorkQueue


def _queue(db: str | None) -> WorkQueue:
    """Return the queue of debates in a Postgres database.

    Raises:
        InputError: the database is not a Postgres database.
        ConfigError: the `queue` extra is not installed.
    """
    url = queue_url(db)
    from moot.plugins.postgres.work_queue import WorkQueue

    return WorkQueue(url)


@command(panel="Run debates", examples=("--workers 8 --db postgresql://db/moot",))
def worker(
    workers: shared.WorkersOption = 4,
    drain: Annotated[bool, Option("--drain", help="Exit when the queue is empty.")] = False,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Run the debates that are queued in a Postgres database.

    `moot batch --queue` adds debates to the queue. You can start workers on as many machines as you like. If
    a worker dies or hangs, another worker continues its debates. If the database server restarts, workers
    wait for it. On Ctrl-C or SIGTERM, a worker finishes its running model calls and returns its debates to
    the queue.
    """
    from moot.cli.running import handle_sigterm_as_interrupt

    queue, results = _queue(db), []
    from moot.plugins.postgres.postgres import wait_for_server

    opened = wait_for_server(lambda: open_database(db), terminal.print_error)
    with opened as debates, handle_sigterm_as_interrupt():
        for debate, error in queue.work(debates, workers, drain=drain):
            name = debates.records.catalogue.name_of(debate)
            if as_json:
                results.append({"debate": name, "error": error})
            if not quiet:
                terminal.print_note(
                    f"{terminal.one_line(name, 60)}: {terminal.one_line(error, 300) or 'done'}"
                )
    if as_json:
        terminal.print_json(results)


app = new_app(no_args_is_help=True)


@command(panel="Run debates", app=app)
@app.callback()
def jobs() -> None:
    """List, cancel or retry queued debates."""


@app.command("list")
def list_jobs(db: shared.DbOption = None, as_json: shared.JsonOption = False) -> None:
    """List queued, running and failed debates in the order in which workers pick them up."""
    entries = _queue(db).entries()
    with open_catalogue(db) as records:
        rows_by_id = {row.id: row for row in records.rows()} if records else {}
    rows = [(rows_by_id[each.debate], each) for each in entries if each.debate in rows_by_id]
    data = [{"name": row.name, "turns": row.turns, **asdict(each)} for row, each in rows]
    heading = ("debate", "job", "priority", "attempts", "turns", "topic")
    cells = [
        (row.name, each.status, str(each.priority), str(each.attempts), str(row.turns), row.topic)
        for row, each in rows
    ]
    terminal.print_answer(data, terminal.Grid(heading, cells).screen(), as_json=as_json)


@app.command()
def cancel(debate_id: shared.DebateArgument, db: shared.DbOption = None) -> None:
    """Remove a debate from the queue, and pause it if it is running."""
    queue = _queue(db)
    with present_records(db) as records:
        if not queue.cancel(records.find(debate_id).id):
            raise InputError(
                f"debate {debate_id!r} is not in the queue: run `moot jobs list` to see the queue"
            )


@app.command()
def retry(
    debate_id: shared.DebateArgument,
    priority: Annotated[
        int | None,
        Option(
            "--priority",
            metavar="N",
            help="Priority of the debate in the queue. Debates with a higher priority run first.",
        ),
    ] = None,
    db: shared.DbOption = None,
) -> None:
    """Queue a debate again, or change the priority of a queued debate."""
    queue = _queue(db)
    with present_records(db) as records:
        queue.add([records.find(debate_id).id], priority)

"""`moot enqueue`, `moot worker` and `moot jobs list | cancel | retry`: debates that machines share."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from moot.graph.cli import options as shared
from moot.graph.cli.database import open_catalogue, open_database, open_queue, present_records
from moot.graph.cli.group import new_app
from moot.graph.cli.screen.output import acknowledge, print_answer, print_json, remark
from moot.graph.cli.screen.result_tables import Grid
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.errors import InputError


def enqueue(
    path: shared.BatchArgument,
    priority: Annotated[
        int | None, Option("--priority", metavar="N", help="The highest comes first; 0 without.")
    ] = None,
    config: shared.ConfigOption = None,
    protocol: shared.ProtocolOption = None,
    turns: shared.TurnsOption = None,
    rounds: shared.RoundsOption = None,
    model: shared.ModelOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """Leave the debates of a file in a Postgres database to `moot worker`, here and on other machines.

    A file is read as by `moot batch`. What waits already waits once; what is over stays so.
    """
    from moot.graph.cli.commands.batch import read_batch
    from moot.graph.cli.screen.output import complain
    from moot.graph.many import begin_debate, is_judged
    from moot.graph.operator_config import usual_data

    flags = {"protocol": protocol, "turns": turns, "rounds": rounds, "model": model}
    queue, planned = open_queue(db), read_batch(path, usual_data(config, flags, complain))
    with open_database(db, make=True) as debates:
        stored = [begin_debate(debates, each) for each in planned]
        waiting = [each.id for each in stored if not is_judged(each)]
    added = queue.add(waiting, priority)
    words = f"{added} added, {len(waiting) - added} there already, {len(stored) - len(waiting)} over"
    acknowledge({"debates": [each.name for each in stored], "added": added}, words, as_json=as_json)


def worker(
    workers: shared.WorkersOption = 4,
    drain: Annotated[bool, Option("--drain", help="End once nothing waits or runs any more.")] = False,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Run the debates that `moot enqueue` put into a Postgres database, on as many machines as there are.

    What a worker had that dies or stands still, another one takes over and goes on with where it was. Ctrl-C
    or SIGTERM lets calls under way come in, and leaves the debates to others.
    """
    from moot.graph.cli.running import terminated_like_interrupted

    queue, ended = open_queue(db), []
    with open_database(db) as debates, terminated_like_interrupted():
        for debate, error in queue.work(debates, workers, drain=drain):
            name = debates.records.catalogue.name_of(debate)
            if as_json:
                ended.append({"debate": name, "error": error})
            if not quiet:
                remark(f"{one_line(name, 60)}: {one_line(error, 300) or 'done'}")
    if as_json:
        print_json(ended)


app = new_app(no_args_is_help=True)


@app.callback()
def jobs() -> None:
    """See and change what waits for `moot worker`."""


@app.command("list")
def list_jobs(db: shared.DbOption = None, as_json: shared.JsonOption = False) -> None:
    """List what runs, waits or failed, in the order in which it is taken."""
    entries = open_queue(db).entries()
    with open_catalogue(db) as records:
        known = {row.id: row for row in records.rows()} if records else {}
    rows = [(known[each.debate], each) for each in entries if each.debate in known]
    data = [{"name": row.name, "turns": row.turns, **asdict(each)} for row, each in rows]
    heading = ("debate", "job", "priority", "attempts", "turns", "topic")
    cells = [
        (row.name, each.status, str(each.priority), str(each.attempts), str(row.turns), row.topic)
        for row, each in rows
    ]
    print_answer(data, Grid(heading, cells).screen(), as_json=as_json)


@app.command()
def cancel(debate_id: shared.DebateArgument, db: shared.DbOption = None) -> None:
    """Take a debate out of the queue; where it runs, it is paused."""
    queue = open_queue(db)
    with present_records(db) as records:
        if not queue.cancel(records.find(debate_id).id):
            raise InputError(f"debate {debate_id!r} is not in the queue: `moot jobs list` shows what is")


@app.command()
def retry(
    debate_id: shared.DebateArgument,
    priority: Annotated[
        int | None, Option("--priority", metavar="N", help="The highest comes first.")
    ] = None,
    db: shared.DbOption = None,
) -> None:
    """Queue any debate, one that failed anew; one that waits gets another priority."""
    queue = open_queue(db)
    with present_records(db) as records:
        queue.add([records.find(debate_id).id], priority)

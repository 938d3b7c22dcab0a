"""`moot worker`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from moot.graph.cli import options as shared


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
    from moot.graph.cli.database import opened, opened_queue
    from moot.graph.cli.running import terminated_like_interrupted
    from moot.graph.cli.screen.output import print_json, remark
    from moot.graph.cli.screen.terminal_text import one_line

    queue, ended = opened_queue(db), []
    with opened(db) as debates, terminated_like_interrupted():
        for debate, error in queue.work(debates, workers, drain=drain):
            name = debates.records.catalogue.name_of(debate)
            if as_json:
                ended.append({"debate": name, "error": error})
            if not quiet:
                remark(f"{one_line(name, 60)}: {one_line(error, 300) or 'done'}")
    if as_json:
        print_json(ended)

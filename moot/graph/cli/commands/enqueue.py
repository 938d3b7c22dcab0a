"""`moot enqueue`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from moot.graph.cli import options as shared


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
    from moot.graph.cli.database import opened, opened_queue
    from moot.graph.cli.screen.output import print_json, remark
    from moot.graph.cli.usual_config import usual_data
    from moot.graph.many import begun, is_judged

    flags = {"protocol": protocol, "turns": turns, "rounds": rounds, "model": model}
    queue, planned = opened_queue(db), read_batch(path, usual_data(config, flags))
    with opened(db, make=True) as debates:
        stored = [begun(debates, each) for each in planned]
        waiting = [each.id for each in stored if not is_judged(each)]
    added = queue.add(waiting, priority)
    if as_json:
        print_json({"debates": [each.name for each in stored], "added": added})
    else:
        over = len(stored) - len(waiting)
        remark(f"{added} added, {len(waiting) - added} there already, {over} over")

"""`moot fork`."""

from __future__ import annotations

from typing import Annotated

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import (
    DbOption,
    DebateArgument,
    JsonOption,
    MoreTurnsOption,
    NameOption,
    QuietOption,
)

app = new_app()


@app.command()
def fork(
    debate_id: DebateArgument,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="SEQ", help="Last entry that is kept; all without it."),
    ] = None,
    name: NameOption = None,
    run: Annotated[bool, typer.Option("--run", help="Run the fork to its end at once.")] = False,
    turns: MoreTurnsOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Begin a new debate with another one's beginning; it samples anew, and the original stays as it is."""
    from moot.graph.cli.database import opened
    from moot.graph.cli.request import check_new_name
    from moot.graph.cli.running import Delivery, resume_line, run_to_end
    from moot.graph.cli.screen.output import print_json, print_text, remark
    from moot.state.errors import InputError

    check_new_name(name)
    if turns is not None and not run:
        raise InputError("--turns says how far --run goes: add --run")
    delivery = Delivery(db, as_json, quiet)
    code = 0
    with opened(db) as debates:
        made = debates.get(debate_id).fork(after=after, name=name)
        if run:
            code = run_to_end(made, delivery, turns=turns)
        elif as_json:
            print_json(made.document())
        else:
            print_text(made.name)
            if not quiet:
                remark(f"go on with: {resume_line(made, delivery)}")
    raise typer.Exit(code)

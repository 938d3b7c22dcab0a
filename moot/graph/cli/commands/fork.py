"""`moot fork`."""

from typing import Annotated

import typer

from moot.graph.cli import options as shared
from moot.graph.cli.database import opened_debate
from moot.graph.cli.screen.output import print_json, print_text, remark
from moot.state.errors import InputError


def fork(
    debate_id: shared.DebateArgument,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="SEQ", help="Last entry that is kept; all without it."),
    ] = None,
    name: shared.NameOption = None,
    run: Annotated[bool, typer.Option("--run", help="Run the fork to its end at once.")] = False,
    turns: shared.MoreTurnsOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Begin a new debate with another one's beginning; it samples anew, and the original stays as it is."""
    if turns is not None and not run:
        raise InputError("--turns says how far --run goes: add --run")
    from moot.graph.cli.running import Delivery, resume_line, run_to_end

    with opened_debate(db, debate_id) as debate:
        made = debate.fork(after=after, name=name)
        if run:
            raise typer.Exit(run_to_end(made, Delivery(db, as_json, quiet), turns=turns))
        if as_json:
            print_json(made.document())
        else:
            print_text(made.name)
            if not quiet:
                remark(f"go on with: {resume_line(made, db)}")

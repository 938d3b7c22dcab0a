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
        str | None,
        typer.Option(
            "--after", metavar="SEQ", help="Number or id of the last entry that is kept; all without it."
        ),
    ] = None,
    name: shared.NameOption = None,
    model: shared.OtherModelOption = None,
    judge_model: shared.JudgeModelOption = None,
    config: shared.ConfigOption = None,
    run: Annotated[bool, typer.Option("--run", help="Run the fork to its end at once.")] = False,
    turns: shared.MoreTurnsOption = None,
    db: shared.DbOption = None,
    as_json: shared.JsonOption = False,
    quiet: shared.QuietOption = False,
) -> None:
    """Begin a new debate with another one's beginning; it samples anew, and the original stays as it is.

    What --model, --judge-model and --config say counts from there on.
    """
    if turns is not None and not run:
        raise InputError("--turns says how far --run goes: add --run")
    from moot.graph.cli.run_request import entry_number, go_on_with
    from moot.graph.cli.running import Delivery, resume_line, run_to_end

    seq = entry_number(after, "--after") if after is not None else None
    flags = {"model": model, "judge.model": judge_model}
    with opened_debate(db, debate_id) as debate:
        made = debate.fork(after=seq, name=name)
        go_on_with(made, config, flags, reconfigure=True)
        if run:
            raise typer.Exit(run_to_end(made, Delivery(db, as_json, quiet), turns=turns))
        if as_json:
            print_json(made.document())
        else:
            print_text(made.name)
            if not quiet:
                remark(f"go on with: {resume_line(made, db)}")

"""`moot correct`."""

from typing import Annotated

import typer

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark


def correct(
    debate_id: DebateArgument,
    note: Annotated[str, typer.Argument(help="Id of a note, e003; or of a proposition, with --same-as.")],
    kind: Annotated[
        str,
        typer.Argument(
            help="What the debater really did: asserts, denies, conditional, concedes, withdraws, unsure; "
            "without it the note is taken back."
        ),
    ] = "",
    why: Annotated[str, typer.Option("--why", help="The reason, kept with the note.")] = "",
    same_as: Annotated[str, typer.Option("--same-as", help="This proposition is that one, p001.")] = "",
    opposite: Annotated[
        bool, typer.Option("--opposite", help="With --same-as: it is that one's negation.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a note of the minutes; no later reading undoes it. `moot show ID --blackboard` lists them."""
    with opened_debate(db, debate_id) as debate:
        notes = debate.correct(note, kind, why=why, same_as=same_as, opposite=opposite)
    if as_json:
        print_json({"id": debate.id, "notes": notes})
    else:
        remark(f"{note} is corrected in {debate.name}")

"""`moot rename`."""

from typing import Annotated

from typer import Argument

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark


def rename(
    debate_id: DebateArgument,
    name: Annotated[str, Argument(metavar="NAME", help="What it is called from here on.")],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a debate something else; its id stays, and what it was called leads to it still."""
    with opened_debate(db, debate_id) as debate:
        debate.session.records.rename(debate.id, name)
    if as_json:
        print_json({"id": debate.id, "name": name, "was": debate.name})
    else:
        remark(f"{debate.name} is {name} now")

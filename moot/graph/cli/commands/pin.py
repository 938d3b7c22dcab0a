"""`moot pin` and `moot unpin`."""

from typing import Annotated

import typer

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark

MessageArgument = Annotated[str, typer.Argument(help="Id of a message, m000012.")]


def pin(
    debate_id: DebateArgument, message: MessageArgument, db: DbOption = None, as_json: JsonOption = False
) -> None:
    """Have a message stand in every prompt that has room, in a section of its own."""
    _pin(debate_id, message, db, as_json=as_json, pinned=True)


def unpin(
    debate_id: DebateArgument, message: MessageArgument, db: DbOption = None, as_json: JsonOption = False
) -> None:
    """Take a pinned message off the prompts again."""
    _pin(debate_id, message, db, as_json=as_json, pinned=False)


def _pin(debate_id: str, message: str, db: str | None, *, as_json: bool, pinned: bool) -> None:
    with opened_debate(db, debate_id) as debate:
        ids = debate.pin(message, pinned=pinned)
    if as_json:
        print_json({"id": debate.id, "pinned": ids})
    else:
        remark(f"pinned in {debate.name}: {', '.join(ids)}" if ids else f"nothing is pinned in {debate.name}")

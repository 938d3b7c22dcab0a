"""`moot delete`."""

import sys
from typing import Annotated

import typer

from moot.graph.cli.database import opened_debate
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.graph.cli.screen.output import print_json, remark
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.errors import InputError


def delete(
    debate_id: DebateArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a debate with all its checkpoints. Its forks stay."""
    with opened_debate(db, debate_id) as debate:
        if not yes:
            if not sys.stdin.isatty():
                raise InputError("nothing is deleted: add --yes where nobody can be asked")
            about = f"{debate.name}, {debate.row.turns} turns: {one_line(debate.row.topic, 60)}"
            if not typer.confirm(f"Delete {about}?", err=True):
                remark("nothing is deleted")
                return
        debate.delete()
    if as_json:
        print_json({"deleted": debate.id, "name": debate.name})
    else:
        remark(f"deleted {debate.name}")

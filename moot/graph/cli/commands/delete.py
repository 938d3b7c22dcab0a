"""`moot delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from moot.graph.cli.group import new_app
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate

app = new_app()


@app.command()
def delete(
    debate_id: DebateArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a debate with all its checkpoints. Its forks stay."""
    from moot.graph.cli.database import opened
    from moot.graph.cli.screen.output import print_json, remark

    with opened(db) as debates:
        debate = debates.get(debate_id)
        if not yes and not _confirmed(debate):
            remark("nothing is deleted")
            return
        debate.delete()
    if as_json:
        print_json({"deleted": debate.id, "name": debate.name})
    else:
        remark(f"deleted {debate.name}")


def _confirmed(debate: Debate) -> bool:
    """Ask on a terminal.

    Raises:
        InputError: there is nobody to ask.
    """
    from moot.graph.cli.screen.terminal_text import one_line

    if not sys.stdin.isatty():
        raise InputError("nothing is deleted: add --yes where nobody can be asked")
    about = f"{debate.name}, {debate.row.turns} turns: {one_line(debate.row.topic, 60)}"
    return typer.confirm(f"Delete {about}?", err=True)

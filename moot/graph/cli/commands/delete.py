"""`moot delete`."""

from typing import Annotated

import typer

from moot.graph.cli.database import opened
from moot.graph.cli.options import DbOption, JsonOption, debates_like
from moot.graph.cli.screen.output import consents, print_json, remark
from moot.graph.cli.screen.terminal_text import one_line
from moot.state.amounts import amount


def delete(
    debate_ids: Annotated[
        list[str],
        typer.Argument(metavar="ID …", help="Names, ids, or beginnings of ids.", autocompletion=debates_like),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete debates with all their checkpoints. Their forks stay."""
    with opened(db) as debates:
        chosen = {each.id: each for each in map(debates.get, debate_ids)}.values()  # all of them are there
        deleted = []
        for debate in chosen:
            about = f"{debate.name}, {amount(debate.row.turns, 'turn')}: {one_line(debate.row.topic, 60)}"
            if consents(f"Delete {about}?", "nothing is deleted", yes=yes):
                debate.delete()
                deleted.append({"deleted": debate.id, "name": debate.name})
            if not as_json:
                is_gone = deleted and deleted[-1]["deleted"] == debate.id
                remark(f"deleted {debate.name}" if is_gone else f"{debate.name} stays")
    if as_json:
        print_json(deleted[0] if len(debate_ids) == 1 and deleted else deleted)

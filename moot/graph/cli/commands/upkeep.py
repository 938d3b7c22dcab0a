"""`moot rename`, `delete`, `backup` and `gc`: the upkeep of a database of debates."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moot.graph.cli.database import open_database, open_stored_debate, present_records
from moot.graph.cli.options import DbOption, DebateArgument, JsonOption, debates_like
from moot.graph.cli.screen.output import acknowledge, consents, print_json, remark
from moot.graph.cli.screen.terminal_text import one_line
from moot.nodes.text.plain import amount
from moot.state.errors import DebateBusy, InputError


def rename(
    debate_id: DebateArgument,
    name: Annotated[str, Argument(metavar="NAME", help="What it is called from here on.")],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a debate something else; its id stays, and what it was called leads to it still."""
    with open_stored_debate(db, debate_id) as debate:
        debate.session.records.rename(debate.id, name)
    data = {"id": debate.id, "name": name, "was": debate.name}
    acknowledge(data, f"{debate.name} is {name} now", as_json=as_json)


def delete(
    debate_ids: Annotated[
        list[str],
        Argument(metavar="ID …", help="Names, ids, or beginnings of ids.", autocompletion=debates_like),
    ],
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete debates with all their checkpoints. Their forks stay."""
    deleted = []
    with open_database(db) as debates:
        chosen = {each.id: each for each in map(debates.get, debate_ids)}.values()  # all of them are there
        for debate in chosen:
            about = f"{debate.name}, {amount(debate.row.turns, 'turn')}: {one_line(debate.row.topic, 60)}"
            agreed = consents(f"Delete {about}?", "nothing is deleted", yes=yes)
            if agreed:
                debate.delete()
                deleted.append({"deleted": debate.id, "name": debate.name})
            if not as_json:
                remark(f"deleted {debate.name}" if agreed else f"{debate.name} stays")
    if as_json:
        print_json(deleted[0] if len(debate_ids) == 1 and deleted else deleted)


def backup(
    path: Annotated[Path, Argument(metavar="FILE", help="A new file; use it with --db, or copy it back.")],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the database, also while debates run: all of it, as it was at one moment. SQLite alone."""
    from moot.state.sqlite import SqliteSql

    with present_records(db) as records:
        if not isinstance(records.sql, SqliteSql):
            raise InputError("moot backup copies SQLite files: use pg_dump for Postgres")
        records.sql.back_up(path)
    acknowledge({"written": str(path)}, f"written to {path}", as_json=as_json)


def gc(
    debate_ids: Annotated[
        list[str] | None, Argument(metavar="[ID …]", help="Only these debates.", autocompletion=debates_like)
    ] = None,
    keep_history: Annotated[
        bool, Option("--keep-history", help="Drop no checkpoint: only give unused room back.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Free what debates that are over take beyond need, also while others run.

    Going on, forks, replays and prompts stay as they were; what goes is what only LangGraph's own history
    shows: the moments between two nodes of a step.
    """
    from moot.graph.pruning import prune, shrink
    from moot.state.conversation import OVER

    dropped = stored = 0
    with open_database(db) as debates:
        chosen = debate_ids or [row.id for row in debates.rows() if row.status in OVER]
        for name in () if keep_history else chosen:
            with suppress(DebateBusy):
                went, of = prune(debates.get(name).session)
                dropped, stored = dropped + went, stored + of
        shrunk = shrink(debates.records.sql, pruned=dropped > 0)
    data = {"debates": len(chosen), "checkpoints": stored, "dropped": dropped, "shrunk": shrunk}
    rewritten = ", and the database rewritten" if shrunk else ""
    acknowledge(data, f"{dropped:,} of {stored:,} checkpoints dropped{rewritten}", as_json=as_json)

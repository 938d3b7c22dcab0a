"""`moot gc`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from typer import Argument, Option

from moot.graph.cli.options import DbOption, JsonOption, debates_like


def gc(
    debate_ids: Annotated[
        list[str] | None,
        Argument(metavar="[ID …]", help="Only these debates.", autocompletion=debates_like),
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
    from moot.graph.cli.database import opened
    from moot.graph.cli.screen.output import print_json, remark
    from moot.graph.pruning import prune, shrink
    from moot.state.conversation import OVER
    from moot.state.errors import DebateBusy

    dropped = stored = 0
    with opened(db) as debates:
        chosen = debate_ids or [row.id for row in debates.rows() if row.status in OVER]
        for name in () if keep_history else chosen:
            with suppress(DebateBusy):
                went, of = prune(debates.get(name).session)
                dropped, stored = dropped + went, stored + of
        shrunk = shrink(debates.records.sql, pruned=dropped > 0)
    if as_json:
        print_json({"debates": len(chosen), "checkpoints": stored, "dropped": dropped, "shrunk": shrunk})
    else:
        remark(
            f"{dropped:,} of {stored:,} checkpoints dropped"
            + (", and the database rewritten" if shrunk else "")
        )

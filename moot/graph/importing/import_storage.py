"""Stores a debate from outside as a LangGraph thread that has ended and can be gone on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moot.graph.importing.adopting import OVER, Values
from moot.nodes.driving.portal import call_from_sync
from moot.state.catalogue import DebateRow, row_amounts
from moot.state.errors import DebateExists

if TYPE_CHECKING:
    from moot.graph.api import Debate, Debates


def store_import(debates: Debates, values: Values, row: DebateRow, *, fresh: bool) -> Debate:
    """Store the state of a debate from outside.

    Args:
        debates: the database.
        values: channel values.
        row: its row in the catalogue.
        fresh: whether the blackboard is still to be made from what was said. What does not fit the window is
            summarised in any case.

    Raises:
        DebateExists: its id or name is taken.
    """
    try:
        with debates.making(row) as debate:
            call_from_sync(_store, debates, row, values, fresh)
    except DebateExists:
        raise DebateExists(f"debate {row.name!r} exists already: import it under another --id") from None
    return debate


async def _store(debates: Debates, row: DebateRow, values: Values, fresh: bool) -> None:
    graph: Any = debates.graph
    thread = {"configurable": {"thread_id": row.id}}
    written = {key: value for key, value in values.items() if value not in ({}, [], "")}
    await graph.aupdate_state(thread, {**written, "status": "running"}, "turn" if fresh else "trim")
    if fresh or "summarize" in (await graph.aget_state(thread)).next:
        await graph.ainvoke(None, thread, interrupt_before=["plan"], durability="sync")
    if row.status in OVER:
        await graph.aupdate_state(thread, {"status": row.status}, "close")
    usage = (await graph.aget_state(thread)).values.get("usage") or {}
    # What ran above noted its own progress; the row is the import's.
    kept = {"status": row.status, "turns": row.turns, "updated_at": row.updated_at}
    debates.records.catalogue.update(row.id, **kept, **row_amounts(usage))

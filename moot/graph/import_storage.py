"""Stores a debate from outside as a LangGraph thread that has ended and can be gone on with."""

from collections.abc import Iterable

from moot.graph.importing.adopting import OVER
from moot.graph.lifetime import making
from moot.graph.session import DebateSession, written
from moot.state.catalogue import DebateRow, row_amounts
from moot.state.config.boundary import Reach
from moot.state.entries import JsonObject
from moot.state.errors import DebateExists


def store_import(
    session: DebateSession, values: JsonObject, row: DebateRow, *, fresh: bool, granted: Iterable[Reach] = ()
) -> DebateSession:
    """Store the state of a debate from outside, with its row in the catalogue.

    What does not fit the window is summarised. `fresh` says whether the blackboard is still to be made,
    and `granted` what the operator's own configuration reaches.
    """
    try:
        with making(session, row) as made:
            made.records.grants.add(made.thread, granted)
            _store(made, values, row, fresh=fresh)
    except DebateExists:
        raise DebateExists(f"debate {row.name!r} exists already: import it under another --id") from None
    return session.on(row.id)


def _store(session: DebateSession, values: JsonObject, row: DebateRow, *, fresh: bool) -> None:
    # `new` until all of it is stored: what a process leaves that died meanwhile is dropped by the next one.
    session.update_after("turn" if fresh else "trim", {**written(values), "status": "new"})
    if fresh or "summarize" in session.state().next:
        session.advance(interrupt_before=["plan"])
    if row.status in OVER:
        session.update_after("close", {"status": row.status})
    else:
        session.update({"status": "running"}, session.state())
    stored = session.state().values
    session.records.outcomes.note(row.id, stored, {})
    # What ran above noted its own progress; the row is the import's.
    kept: dict[str, str | float] = {"status": row.status, "turns": row.turns, "updated_at": row.updated_at}
    session.records.catalogue.update(row.id, **kept, **row_amounts(stored.get("usage") or {}))

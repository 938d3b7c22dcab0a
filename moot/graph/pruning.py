"""Frees what debates that are over take beyond what is ever read of them again.

Of their checkpoints stay: the last, those that a fork can begin at, those that a prompt was made from (a
replay needs the journal besides), and those that hold whole snapshots. The rest goes. What was written there
into delta channels moves to the next older one, after that one's own and in order, as LangGraph itself keeps
the writes of a whole run on one checkpoint (durability `exit`). So every state that stays is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.channels import DeltaChannel

from moot.graph.session import DebateSession, is_over
from moot.nodes.driving.portal import call_from_sync
from moot.state.langgraph_internals import runs_next
from moot.state.sql import Sql, Statement
from moot.state.sqlite import SqliteSql

WORTH = 0.2
"""Unused share of a SQLite file from which on it is rewritten, which takes as much room again meanwhile."""


@dataclass(frozen=True)
class _Stored:
    id: str
    parent: str
    needed: bool


def prune(session: DebateSession) -> tuple[int, int]:
    """Drop what is not needed of a debate's checkpoints; return how many went, and of how many.

    Raises:
        DebateBusy: another run writes it.
    """
    with session.writing() as held:
        snapshot = held.state()
        if held.lease is None or not is_over(snapshot):
            return 0, 0
        told = [*(snapshot.values.get("receipts") or ()), *(snapshot.values.get("calls") or ())]
        anchors = held.records.sql.execute(
            "SELECT DISTINCT anchor FROM moot_journal WHERE debate = ?", (held.thread,)
        )
        named = {each["checkpoint"] for each in told} | {anchor for (anchor,) in anchors}
        channels = held.graph.channels.items()
        deltas = [name for name, channel in channels if isinstance(channel, DeltaChannel)]
        stored = call_from_sync(_checkpoints_of, held, named, deltas)
        table = "writes" if isinstance(held.records.sql, SqliteSql) else "checkpoint_writes"
        if statements := _statements(held.thread, stored, deltas, table):
            held.records.sql.transact(statements, held.records.leases.permit(held.lease))
        return sum(not each.needed for each in stored), len(stored)


async def _checkpoints_of(session: DebateSession, named: set[str], deltas: Sequence[str]) -> list[_Stored]:
    """Return the checkpoints of a debate, the oldest first."""
    found, parents = [], set()
    async for each in session.checkpoints():
        place = each.checkpoint["id"]
        parent = str(each.parent_config["configurable"]["checkpoint_id"]) if each.parent_config else ""
        snapshots = each.checkpoint["channel_values"].keys() & set(deltas)
        is_end = not parent or place not in parents
        needed = bool(place in named or snapshots or is_end or runs_next(each.checkpoint, "plan"))
        found.append(_Stored(place, parent, needed))
        parents.add(parent)
    return found[::-1]


def _statements(
    debate: str, stored: Sequence[_Stored], deltas: Sequence[str], writes: str
) -> list[Statement]:
    """Return what moves each dropped checkpoint's writes to the last one before it that stays."""
    marks = ", ".join("?" * len(deltas))
    here = "WHERE thread_id = ? AND checkpoint_ns = '' AND"
    heirs: dict[str, str] = {}
    statements: list[Statement] = []
    for number, each in enumerate(stored):
        if each.needed:
            continue
        heir = heirs[each.id] = heirs.get(each.parent, each.parent)
        at = (debate, each.id)
        statements += [
            (
                f"UPDATE {writes} SET checkpoint_id = ?, task_path = '~~', "  # noqa: S608  # constants of ours
                f"task_id = 'ffffffff-' || CAST(? AS TEXT) || task_path || task_id {here} "
                f"checkpoint_id = ? AND channel IN ({marks})",
                (heir, f"{number:08d}", *at, *deltas),
            ),
            (f"DELETE FROM {writes} {here} checkpoint_id = ?", at),  # noqa: S608
            (f"DELETE FROM checkpoints {here} checkpoint_id = ?", at),  # noqa: S608
            (f"UPDATE checkpoints SET parent_checkpoint_id = ? {here} parent_checkpoint_id = ?", (heir, *at)),  # noqa: S608
        ]
    return statements


def shrink(sql: Sql, *, pruned: bool) -> bool:
    """Give a database's unused room back to the disk, where checkpoints went or much is unused anyway.

    Returns:
        Whether it did.
    """
    if isinstance(sql, SqliteSql):
        ((pages, free),) = sql.execute(
            "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
        )
        if not pruned and free < WORTH * pages:
            return False
        sql.execute("VACUUM")
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        sql.execute("VACUUM checkpoints, checkpoint_writes, checkpoint_blobs, moot_journal")
    return True

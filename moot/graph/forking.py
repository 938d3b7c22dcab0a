"""Forks: a new debate that begins as another one did, up to an entry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moot.nodes.driving.bookkeeping import utc_now
from moot.nodes.driving.portal import call_from_sync
from moot.state.catalogue import new_debate_id
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.api import Debate, Debates


def fork_debate(debates: Debates, source: Debate, *, after: int | None, name: str | None) -> Debate:
    """Copy a debate's state as it was after an entry to a thread of its own.

    Raises:
        InputError: no step ended at that entry.
        DebateExists: the name is taken.
    """
    values = call_from_sync(_values_after, debates, source.id, after)
    thread = new_debate_id(name)
    now = utc_now()
    row = replace(
        source.row,
        id=thread,
        name=name or thread,
        status="paused",
        turns=values["turn_count"],
        parent=source.id,
        created_at=now,
        updated_at=now,
    )
    config = {"configurable": {"thread_id": thread}}
    with debates.making(row) as debate:
        call_from_sync(debates.graph.aupdate_state, config, values, "trim")
        debates.records.catalogue.update(thread, status=row.status)
    return debate


async def _values_after(debates: Debates, thread: str, after: int | None) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": thread}}
    snapshot = await debates.graph.aget_state(config)
    if after is not None and after != len(snapshot.values["full_transcript"]) - 1:
        config["configurable"]["checkpoint_id"] = await _checkpoint_after(
            debates, thread, after, snapshot.values
        )
        snapshot = await debates.graph.aget_state(config)
    values = {key: value for key, value in snapshot.values.items() if value not in ({}, [], "")}
    return {**values, "status": "running", "heard": 0}  # nothing has been said from the fork's own floor


async def _checkpoint_after(debates: Debates, thread: str, after: int, values: dict[str, Any]) -> str:
    """Return the checkpoint before the step that followed the entry; only the small channels are read."""
    turns = sum(1 for receipt in values["receipts"] if receipt["seq"] <= after)
    if not any(receipt["seq"] == after for receipt in values["receipts"]):
        raise InputError(
            f"no debater's turn ended at entry {after}: `moot show --receipts` lists where one did"
        )
    saver = debates.graph.checkpointer
    async for stored in saver.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):  # type: ignore[union-attr]  # compiled with one
        channels = stored.checkpoint["channel_values"]
        if channels.get("turn_count") == turns and "branch:to:plan" in channels:
            return str(stored.checkpoint["id"])
    raise InputError(f"entry {after} ended inside a step: choose one that ended it")

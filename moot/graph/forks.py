"""Forks: a new debate that begins as another one did, up to an entry."""

from dataclasses import replace
from random import Random

from moot.graph.lifetime import making
from moot.graph.session import DebateSession, Values, written
from moot.nodes.driving.portal import call_from_sync
from moot.state.catalogue import new_debate_id, row_amounts
from moot.state.config import OFFLINE
from moot.state.config.debate_config import frozen_config
from moot.state.errors import InputError
from moot.state.langgraph_internals import runs_next


def fork_debate(session: DebateSession, *, after: int | None, name: str | None) -> DebateSession:
    """Copy a debate's state as it was after an entry to a thread of its own."""
    values = session.state().values
    if after is not None and after != len(values["full_transcript"]) - 1:
        values = session.state(call_from_sync(_checkpoint_after, session, after, values)).values
    thread, now = new_debate_id(name), session.environment.clock()
    others = [each for each in session.records.catalogue.rows() if each.parent == session.thread]
    siblings = sum(each.status != "new" for each in others)  # one that was not made to its end counts anew
    config, frozen = values["config"], frozen_config(values)
    if frozen.seed is not None or frozen.model_names() == [OFFLINE]:
        config = {**config, "seed": seed_of_fork(frozen.seed, siblings)}
    row = replace(
        session.records.find(session.thread),
        id=thread,
        name=name or thread,
        status="paused",
        turns=values["turn_count"],
        **row_amounts(values.get("usage") or {}),
        parent=session.thread,
        created_at=now,
        updated_at=now,
    )
    with making(session, row) as made:
        made.records.grants.add(thread, made.records.grants.of(session.thread))
        # Nothing has been said from the fork's own floor.
        made.update_after("trim", {**written(values), "config": config, "status": "running", "heard": 0})
        made.note_status(row.status)
    return session.on(thread)


def seed_of_fork(seed: int | None, number: int) -> int:
    """Return the seed of a debate's fork of this number: a model that keeps to seeds goes another way there.

    31 bits, which every provider takes.
    """
    return Random(f"{seed}/{number}").getrandbits(31)  # noqa: S311  # no secret: it is to be had again


async def _checkpoint_after(session: DebateSession, after: int, values: Values) -> str:
    """Return the checkpoint before the step that followed the entry; only the small channels are read."""
    ends = [receipt["seq"] for receipt in values["receipts"]]
    if after not in ends:
        raise InputError(
            f"no debater's turn ended at entry {after}: `moot show --receipts` lists where one did"
        )
    turns = values["turn_count"] - sum(end > after for end in ends)  # what was imported took turns, too
    async for stored in session.checkpoints():
        channels = stored.checkpoint["channel_values"]
        if channels.get("turn_count") == turns and runs_next(stored.checkpoint, "plan"):
            return str(stored.checkpoint["id"])
    raise InputError(f"entry {after} ended inside a step: choose one that ended it")

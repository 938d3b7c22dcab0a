"""How a stored debate comes to be, new, as another one's fork, or from outside; and how it is deleted."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from random import Random
from typing import Any

from moot.graph.preflight import check_config
from moot.graph.session import DebateSession, Values, filled_channels
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.memory.earlier import identities, namespace_of
from moot.state.catalogue import TOPIC_CHARS, DebateRow, new_debate_id, row_amounts
from moot.state.config import OFFLINE, DebateConfig
from moot.state.config.boundary import Claim, Reach
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import OVER
from moot.state.entries import topic_text
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, InputError
from moot.state.langgraph_internals import runs_next


def find_debate(session: DebateSession, name: str) -> DebateSession:
    """Return the session of a debate, by its id, name or an unambiguous beginning of the id."""
    _drop_unbegun(session, name)
    return session.on(session.records.find(name).id)


def start_debate(
    session: DebateSession, given: Values, config: DebateConfig, name: str | None
) -> DebateSession:
    """Make a new debate of the graph's input; without a topic there, the configuration's is taken.

    `open` alone runs, so that all is checked and stored before anything is paid.
    """
    topic = topic_text(config.topic if given["topic"] is None else given["topic"])
    if not topic:
        raise InputError("the topic is empty: say what is to be argued")
    check_config(Claim.of_operator(config), session.environment)
    thread, now = new_debate_id(name), session.environment.clock()
    about = (thread, name or thread, topic[:TOPIC_CHARS], config.protocol, "new")
    row = DebateRow(*about, turns=0, tokens=0, cost_usd=0.0, parent="", created_at=now, updated_at=now)
    with _making(session, row) as made:
        made.advance({**given, "topic": topic}, context=config, interrupt_after=["open"])
        made.note_status("running")
    return session.on(thread)


@contextmanager
def _making(session: DebateSession, row: DebateRow) -> Iterator[DebateSession]:
    """Add a debate to the catalogue and hold it while it is made; where that fails, it is gone again.

    A process that is killed meanwhile leaves a row of status `new`, which the next one drops.

    Raises:
        DebateExists: its id or name is taken.
    """
    _drop_unbegun(session, row.name)
    with ExitStack() as holding:
        try:
            made = holding.enter_context(session.on(row.id).writing())
        except DebateBusy:
            raise DebateExists(f"debate {row.name!r} exists already, and is in use") from None
        made.records.catalogue.add(replace(row, status="new"))
        try:
            yield made
        except BaseException:
            delete_debate(made)
            raise


def _drop_unbegun(session: DebateSession, name: str) -> None:
    """Delete a debate that a process began to make and did not live to make; what it had made goes on."""
    with suppress(DebateNotFound, InputError, DebateBusy):
        row = session.records.catalogue.find(name)
        if session.records.never_began(row):
            with session.on(row.id).writing() as left:
                if (status := left.state().values.get("status", "new")) != "new":
                    left.note_status(status)
                else:
                    delete_debate(left)


def fork_debate(session: DebateSession, *, after: int | None, name: str | None) -> DebateSession:
    """Copy a debate's state as it was after an entry to a thread of its own."""
    values = session.state().values
    if after is not None and after != len(values["full_transcript"]) - 1:
        values = session.state(call_from_sync(checkpoint_after, session, after, values)).values
    config, frozen = values["config"], frozen_config(values)
    if frozen.seed is not None or frozen.model_names() == [OFFLINE]:
        others = [each for each in session.records.catalogue.rows() if each.parent == session.thread]
        siblings = sum(each.status != "new" for each in others)  # one not made to its end counts anew
        # A model that keeps to seeds goes another way in each fork; 31 bits, which every provider takes.
        seed = Random(f"{frozen.seed}/{siblings}").getrandbits(31)  # noqa: S311  # no secret: it is to be had again
        config = {**config, "seed": seed}
    thread, now = new_debate_id(name), session.environment.clock()
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
    with _making(session, row) as made:
        made.records.grants.add(thread, made.records.grants.of(session.thread))
        own = {"config": config, "status": "running", "heard": 0}  # nothing was said from its own floor yet
        made.update_after("trim", {**filled_channels(values), **own})
        made.note_status(row.status)
    return session.on(thread)


async def checkpoint_after(session: DebateSession, after: int, values: Values) -> str:
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


def imported_row(values: Values, name: str | None, now: str, document: Mapping[str, Any] | None) -> DebateRow:
    """Return the catalogue's row: a document's own id, name and times unless it gets a new name."""
    known = document or {}
    try:
        thread = str(uuid.UUID(known["id"])) if name is None else new_debate_id(name)
    except (KeyError, ValueError):
        thread = str(uuid.uuid4())
    return DebateRow(
        id=thread,
        name=name or known.get("name") or thread,
        topic=values["topic"][:TOPIC_CHARS],
        protocol=values["config"]["protocol"],
        status=values["status"] if values["status"] in OVER else "paused",
        turns=values["turn_count"],
        **row_amounts(values.get("usage") or {}),
        parent=known.get("parent", ""),
        created_at=known.get("created_at") or now,
        updated_at=known.get("updated_at") or now,
    )


def store_import(
    session: DebateSession,
    values: Values,
    name: str | None,
    document: Mapping[str, Any] | None = None,
    granted: Iterable[Reach] = (),
) -> DebateSession:
    """Store the state of a debate from outside, with its row in the catalogue; it can be gone on with.

    What does not fit the window is summarised, and without a `document` that it was made of the blackboard is
    still to be made. `granted` is what the operator's own configuration reaches.
    """
    row = imported_row(values, name, session.environment.clock(), document)
    try:
        with _making(session, row) as made:
            made.records.grants.add(made.thread, granted)
            # `new` until all of it is stored: what a process leaves that died meanwhile is dropped.
            made.update_after("trim" if document else "turn", {**filled_channels(values), "status": "new"})
            if not document or "summarize" in made.state().next:
                made.advance(interrupt_before=["plan"])
            if row.status in OVER:
                made.update_after("close", {"status": row.status})
            else:
                made.update({"status": "running"})
            stored = made.state().values
            made.records.outcomes.note(row.id, stored, {})
            # What ran above noted its own progress; the row is the import's.
            progress: dict[str, str | float] = {"status": row.status, "turns": row.turns}
            spent = row_amounts(stored.get("usage") or {})
            made.records.catalogue.update(row.id, **progress, **spent, updated_at=row.updated_at)
    except DebateExists:
        raise DebateExists(f"debate {row.name!r} exists already: import it under another --id") from None
    return session.on(row.id)


def delete_debate(session: DebateSession) -> None:
    """Delete a debate with all its checkpoints, and what its debaters would remember of it elsewhere."""
    with session.writing() as held:
        call_from_sync(_delete, held)
        held.records.forget(held.thread)


async def _delete(session: DebateSession) -> None:
    graph = session.graph
    values = (await graph.aget_state(session.run_config)).values
    if values.get("config") and graph.store is not None:
        for identity in identities(DebateConfig.model_validate(values["config"])).values():
            await graph.store.adelete(namespace_of(identity), session.thread)
    await graph.checkpointer.adelete_thread(session.thread)  # type: ignore[union-attr]  # compiled with one

"""How a stored debate comes to be, and how it is deleted."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

from moot.graph.preflight import check_config
from moot.graph.session import DebateSession, Values
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.memory.earlier import identities, namespace_of
from moot.state.catalogue import TOPIC_CHARS, DebateRow, new_debate_id
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim
from moot.state.entries import topic_text
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, InputError


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
    with making(session, row) as made:
        made.advance({**given, "topic": topic}, context=config, interrupt_after=["open"])
        made.note_status("running")
    return session.on(thread)


@contextmanager
def making(session: DebateSession, row: DebateRow) -> Iterator[DebateSession]:
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

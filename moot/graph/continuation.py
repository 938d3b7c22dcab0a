"""Going on with a stored debate from where it stands, and why it stops before its end."""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessageChunk
from langgraph.types import Command, StateSnapshot

from moot.graph.session import DebateSession, Values, is_over
from moot.nodes.driving.portal import entered_in_thread, iterate_from_async, iterate_from_sync
from moot.nodes.effects import is_pause
from moot.nodes.people.questions import PersonQuestion, answer_problem, questions_in
from moot.nodes.protocols.protocol_table import limit_reached, protocol_named
from moot.state.config.debate_config import frozen_config
from moot.state.config.model_settings import RECORDED
from moot.state.errors import DebatePaused, InputError, WaitingForPerson
from moot.state.failed_runs import with_failures

Event = dict[str, Any]
"""`{"event": "token"|"step"|"entry"|"summary"|"verdict"|"end"|…, …}`: one thing that happened in a run."""


def run_on(session: DebateSession, *, turns: int | None, answer: object, tokens: bool) -> Iterator[Event]:
    """Run a debate from where it stands, as `Debate.stream` says."""
    with _run(session, turns, answer) as held:
        yield from iterate_from_sync(lambda: _events(held, answer, tokens=tokens), holds=_is_entry)
    if session.extensions:  # a replay is extended where what it replays was
        more, *rest = session.extensions
        yield from run_on(replace(session, extensions=(*rest,)), turns=more, answer=None, tokens=tokens)


async def arun_on(
    session: DebateSession, *, turns: int | None, answer: object, tokens: bool
) -> AsyncGenerator[Event, None]:
    """Run a debate like `run_on`, for whoever has an event loop, which is never blocked."""
    async with (
        entered_in_thread(_run(session, turns, answer)) as held,
        aclosing(iterate_from_async(lambda: _events(held, answer, tokens=tokens), holds=_is_entry)) as events,
    ):
        async for event in events:
            yield event
    if session.extensions:
        more, *rest = session.extensions
        extended = replace(session, extensions=(*rest,))
        async for event in arun_on(extended, turns=more, answer=None, tokens=tokens):
            yield event


def _is_entry(event: Event) -> bool:
    """Return whether a debate takes its next step only once its reader has come back for more."""
    return bool(event["event"] == "entry")


@contextmanager
def _run(session: DebateSession, turns: int | None, answer: object) -> Iterator[DebateSession]:
    """Hold a debate that is run meanwhile, and note how the run ended."""
    with session.writing() as held:
        _set_out(held, turns, answer)
        try:
            yield held
        except (KeyboardInterrupt, GeneratorExit, CancelledError):
            if not is_over(held.state()):  # a run may have come to its end before its reader did
                held.note_status("paused")
            raise
        # Where it stands still, whoever runs it is told why.
        snapshot = held.state()
        if is_over(snapshot):  # a node whose writes a killed run had stored is not run again to note its end
            if held.records.find(held.thread).status != snapshot.values["status"]:
                held.note_status(snapshot.values["status"])
        elif payloads := [each.value for each in snapshot.interrupts]:
            if all(map(is_pause, payloads)):
                held.note_status("paused")
                raise DebatePaused("the debate is paused")
            held.note_status("waiting")
            raise WaitingForPerson("the debate waits for a person's answer", questions=payloads)


async def _events(session: DebateSession, answer: object, *, tokens: bool) -> AsyncIterator[Event]:
    stream = session.graph.astream(
        None if answer is None else Command(resume=answer),
        session.run_config,
        stream_mode=["custom", "messages"] if tokens else ["custom"],
        durability="sync",
    )
    payload: Any  # by its mode
    async for mode, payload in stream:
        if mode == "custom":
            yield payload
        elif isinstance(chunk := payload[0], AIMessageChunk):
            yield {"event": "token", "id": chunk.id, "speaker": chunk.name, "text": chunk.text}


def _set_out(session: DebateSession, turns: int | None, answer: object) -> None:
    """Extend a debate, or have a failed verdict judged again, before it runs on."""
    snapshot = session.caught_up()
    session.claim(snapshot.values).admit()  # `open` would begin with the defaults where there is none
    if answer is not None and (problem := answer_problem(questions_at(snapshot), answer)):
        raise InputError(problem)
    if turns:
        _check_extension(snapshot)
    session.records.floor.take_pause(session.thread)  # whoever goes on wants it to run
    values, waiting = snapshot.values, snapshot.next
    following: Sequence[str] = () if waiting else ("plan",)
    update: dict[str, object] = {}
    if turns or (is_over(snapshot) and verdict_failed(values)):
        update = {"verdict": {}, "solution": "", "status": "running"}
    if turns:
        taken, configured = values["turn_count"], frozen_config(values).total_turns()
        start = taken if is_over(snapshot) else max(configured, taken)
        update["config"] = {**values["config"], "turns": start + turns}
        if set(waiting) & {"judge", "close"}:
            following = ("plan",)  # it does not end there any more
    if waiting == ("turn",) and _failures_reach_a_limit(session, values):
        update, following = {**update, "status": "running"}, ("plan",)  # which ends it
    if update:
        session.update(update, following)
    if waiting or update:
        session.note_status("running")


def _failures_reach_a_limit(session: DebateSession, values: Values) -> bool:
    """Return whether the next step would be paid beyond a limit that failed runs alone have reached."""
    config = frozen_config(values)
    spent = with_failures(values, session.records.failed.of(session.thread))
    return bool(limit_reached(spent, config)) and not limit_reached(values, config)


def _check_extension(snapshot: StateSnapshot) -> None:
    """Refuse more turns that would not be taken: another verdict would be paid for nothing."""
    config = frozen_config(snapshot.values)
    if recorded := [name for name in config.model_names() if name.startswith(RECORDED)]:
        raise InputError(
            f"{recorded[0]} holds what was recorded and no more turns: go on with a model of your own, "
            "--model NAME"
        )
    if reached := limit_reached(snapshot.values, config):
        raise InputError(
            f"{reached.reason}, so no turn would be taken: raise the limit in a configuration file, and "
            "go on with --config FILE --reconfigure"
        )
    if is_over(snapshot) and not protocol_named(config.protocol).goes_on:
        raise InputError(
            f"this debate is over, and protocol {config.protocol!r} takes no more turns after its end: "
            "ask about it with `moot ask`, or start another"
        )


def can_go_on(values: Values) -> bool:
    """Return whether more turns make a debate with this state go on once it is over: protocol and limits."""
    config = frozen_config(values)
    return protocol_named(config.protocol).goes_on and not limit_reached(values, config)


def verdict_failed(values: Values) -> bool:
    """Return whether the panel gave no verdict, so that going on has it judged again."""
    return bool((values.get("verdict") or {}).get("status") == "failed")


def questions_at(snapshot: StateSnapshot) -> list[PersonQuestion]:
    """Return what a person is asked at LangGraph's snapshot of a state."""
    return questions_in([each.value for each in snapshot.interrupts])

"""Runs nodes that do no input or output themselves.

A node's body is a generator: it reads the state, yields *effects* (a batch of model calls, local work, a
question to a person, a progress event), is sent the outcome of each, and returns its update of the state.
The driver here carries the effects out, for sync and async graphs alike; httpx's `Auth.auth_flow` is the
model.

Calls of a batch run at the same time. Each reply is committed to the journal before it is used; after a crash
the body starts over and is served from there.
"""

import asyncio
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from moot.nodes.driving.answering import Answering, JournalPlace, run_flow
from moot.nodes.driving.bookkeeping import is_noted, note_failure
from moot.nodes.driving.environment import Environment, NodeBody, NodeContext
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.driving.spans import step_span
from moot.nodes.effects import (
    Ask,
    Effect,
    Emit,
    Hear,
    Heard,
    LookUp,
    Remember,
    Update,
    is_pause,
)
from moot.nodes.people.interjections import said_outside
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, ForeignConfig, reaches, requested_config
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, Problem, step_no
from moot.state.earlier_builds import up_to_date
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, ModelError
from moot.state.event_loop import at_once, in_thread
from moot.state.failed_runs import FailedRun
from moot.state.langgraph_internals import checkpointer_in, is_nested
from moot.state.leases import lease_in
from moot.state.records import Records, records_of
from moot.state.reducers import add_up


class _Run:
    """One run of one node."""

    def __init__(self, name: str, env: Environment, state: ConversationState, config: RunnableConfig) -> None:
        runtime: Runtime[DebateConfig] = get_runtime()
        info = runtime.execution_info
        checkpointer = checkpointer_in(config)
        self.state = up_to_date(state)
        self.config = config
        self.store = runtime.store
        self.records: Records | None = records_of(checkpointer) if checkpointer is not None else None
        if self.records is not None and (lease := lease_in(config)):
            self.records = self.records.under(lease)
        debate = (info.thread_id if info else None) or ""
        claim = _claim(state, runtime.context, env)
        checkpoint, nested = (info.checkpoint_id, is_nested(info.checkpoint_ns)) if info else ("", False)
        self.context = NodeContext(env, claim, debate, checkpoint, nested)
        step = step_no(state)
        again = bool(state.get("step", {}).get("again"))
        self._answer = said_outside(state) if again else None
        self._place = JournalPlace(self.records, debate, step, name, self.context.checkpoint, again)
        self._answered = False
        self._started = time.monotonic()

    async def drive(self, body: NodeBody) -> Update:
        """Run the body to its end and return its update, with what it spent added up."""
        if self.records is not None and reaches(self.context.claim.config):
            claim = await in_thread(_claim_with_grants, self.context.claim, self.records, self._place)
            self.context = replace(self.context, claim=claim)
        self.answering = Answering(self.context.env, self.context.claim, self._place, self.config)
        update: Update = dict(await run_flow(body(self.state, self.context), self._carry_out) or {})
        if self._answered:
            update["messages"] = [{"op": "drop_answers"}, *update.get("messages", [])]
        if self.answering.batches:
            spent = {**self.answering.spent, "elapsed_s": time.monotonic() - self._started}
            update["usage"] = add_up(spent, [update.get("usage", {})])
        if receipts := self.answering.numbered_receipts(self.state.get("calls") or []):
            update["calls"] = receipts
        return update

    def failed(self, error: ModelError) -> FailedRun:
        """Return what is kept of this run, which failed."""
        place = self._place
        usage = {**self.answering.failed, "elapsed_s": time.monotonic() - self._started}
        problem: Problem = {
            "step": place.step,
            "node": place.node,
            "error": str(error),
            "at": self.context.env.clock(),
            "run": str(uuid.uuid4()),
        }
        return FailedRun(problem, usage)

    async def _carry_out(self, effect: Effect) -> Any:
        if isinstance(effect, Ask):
            if self._answer is not None and not is_pause(effect.payload):
                answer, self._answer, self._answered = self._answer, None, True
                return answer
            return interrupt(effect.payload, response_schema=effect.payload.get("response_schema"))
        if isinstance(effect, Emit):
            get_stream_writer()(dict(effect.event))
            return None
        if isinstance(effect, Hear):
            return await at_once(self._hear, effect.after)
        if isinstance(effect, Remember | LookUp):
            return await self._in_store(effect)
        return await self.answering.carry_out(effect)

    async def _in_store(self, effect: Remember | LookUp) -> list[JsonObject]:
        """Write to the store or read from it; what is kept there is an extra that no debate fails for."""
        if self.store is None:
            return []
        try:
            if isinstance(effect, Remember):
                await self.store.aput(effect.namespace, effect.key, dict(effect.value))
                return []
            found = await self.store.asearch(effect.namespace, limit=effect.limit)
        except Exception as error:
            get_stream_writer()({"event": "store_failed", "error": f"{type(error).__name__}: {error}"})
            return []
        latest = sorted(found, key=lambda item: (item.updated_at, item.key), reverse=True)
        return [item.value for item in latest]

    def _hear(self, after: int) -> Heard:
        if self.records is None or not self.context.debate:
            return Heard()
        floor, debate = self.records.floor, self.context.debate
        said, failed = floor.said_since(debate, after), self.records.failed.of(debate)
        return Heard(said, floor.take_pause(debate), failed)  # the pause last, which is taken but once


def _claim(state: ConversationState, given: object, env: Environment) -> Claim:
    """Return what a run claims: its state's configuration, before it has one what its request says.

    A `DebateConfig` object is the operator's, who made it in this process; a server's requests come as
    `ForeignConfig`s, laid over what is usual there. The context of a graph around this one is none of ours.
    """
    operators = given if isinstance(given, DebateConfig) else None
    if state.get("config"):
        return Claim(frozen_config(state), reaches(operators) if operators else {}, env.harmless)
    usual = operators or env.usual()
    said = [given.said] if isinstance(given, ForeignConfig) else []
    said += [state["settings"]] if state.get("settings") else []
    return Claim(requested_config(usual, *said) if said else usual, reaches(usual), env.harmless)


def _claim_with_grants(claim: Claim, records: Records, place: JournalPlace) -> Claim:
    """Return a claim with what its debate was granted before; an operator's own is granted as it opens."""
    if place.node == "open" and claim.granted and place.debate:
        records.grants.add(place.debate, claim.granted)
    claim = replace(claim, granted={*claim.granted, *records.grants.of(place.debate)})
    with suppress(ConfigError):  # told to whoever uses it; here, since looking it up reads files
        claim.admit()
    return claim


class Node(Runnable[ConversationState, Update]):
    """A body as a node that runs in sync and async graphs.

    No run of its own is traced: that of the graph's node is one already.
    """

    def __init__(self, name: str, body: NodeBody, env: Environment) -> None:
        self.name = name
        self._body, self._env = body, env

    async def ainvoke(
        self, input: ConversationState, config: RunnableConfig | None = None, **_: object
    ) -> Update:
        """Run the body, and write to the catalogue how it went."""
        config = config or {}
        saver = checkpointer_in(config)
        if saver and not hasattr(saver, "records"):
            await in_thread(records_of, saver)  # of a stock saver they are made now, which opens a database
        with step_span(str(self.name), input.get("step") or {}, config):
            run = _Run(str(self.name), self._env, input, config)
            env, records, debate = self._env, run.records, run.context.debate
            if records is None or not debate:
                return await run.drive(self._body)
            try:
                update = await run.drive(self._body)
                if is_noted(run.state, update):
                    await at_once(env.note, records, debate, run.state, update, env.clock())
            except ModelError as error:
                await in_thread(note_failure, records, debate, run.state, run.failed(error))
                raise
            except GraphInterrupt as waiting:
                pauses = bool(waiting.args) and all(is_pause(each.value) for each in waiting.args[0])
                status = "paused" if pauses else "waiting"
                await asyncio.to_thread(records.catalogue.update, debate, status=status)
                raise
            return update

    def invoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: object) -> Update:
        """Run the body in a graph without an event loop."""
        return call_from_sync(self.ainvoke, input, config)

"""Runs nodes that do no input or output themselves.

A node's body is a generator: it reads the state, yields *effects* (a batch of model calls, local work, a
question to a person, a progress event), is sent the outcome of each, and returns its update of the state.
The driver here carries the effects out, for sync and async graphs alike; httpx's `Auth.auth_flow` is the
model.

Calls of a batch run at the same time. Each reply is committed to the journal before it is used; after a crash
the body starts over and is served from there.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from nodes.answering import Answering, Place
from nodes.bookkeeping import WATCHED, note_failure
from nodes.environment import Environment
from nodes.frozen import frozen_config
from nodes.models.calls import ModelCall, Reply
from nodes.portal import call_from_sync, in_thread
from state.config import DebateConfig
from state.conversation import ConversationState
from state.errors import ModelError
from state.failed_runs import FailedRun
from state.floor import Interjection
from state.records import Records, records_of
from state.reducers import add_up

Update = dict[str, Any]

PAUSE = {"kind": "pause"}
"""What an interrupt holds that only stops the run."""


def is_pause(payload: Any) -> bool:
    """Return whether an interrupt asks nothing and only stops the run."""
    return isinstance(payload, Mapping) and payload.get("kind") == PAUSE["kind"]


@dataclass(frozen=True)
class Ask:
    """Ask a person: the run is interrupted with this payload; the answer is sent back on resume."""

    payload: Any


@dataclass(frozen=True)
class Emit:
    """Report progress on the `custom` stream."""

    event: Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """Local work whose result is a text, such as a tool's run."""

    digest: str
    """SHA-256 of what decides the result."""
    run: Callable[[], str]
    """Does the work; on a worker thread, since it may block."""


@dataclass(frozen=True)
class Work:
    """Do local work, all jobs at the same time; sent back are the results, journalled like replies."""

    jobs: Sequence[Job]


@dataclass(frozen=True)
class Hear:
    """Listen to the floor; sent back is a `Heard`."""

    after: int
    """Number of the last interjection that was taken up."""


@dataclass(frozen=True)
class Remember:
    """Keep something beyond this debate, in LangGraph's store; without one nothing happens."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]


@dataclass(frozen=True)
class LookUp:
    """Look into LangGraph's store; sent back are the values there, the latest first, `[]` without a store."""

    namespace: tuple[str, ...]
    limit: int = 100


@dataclass(frozen=True)
class Heard:
    """What people want of a running debate."""

    said: Sequence[Interjection] = ()
    pause: bool = False
    """Whether the run is to stop here, once."""
    failed: Sequence[FailedRun] = ()
    """Every run of a node that failed."""


Effect = Sequence[ModelCall] | Ask | Emit | Work | Hear | Remember | LookUp
Body = Generator[Effect, Any, Update]


@dataclass(frozen=True)
class NodeContext:
    """What a body may know beside the state."""

    env: Environment
    given: DebateConfig | None = None
    """The run's `context`; once the state has a `config`, that one wins."""
    debate: str = ""
    """Thread id; `""` without a checkpointer."""
    checkpoint: str = ""
    """Checkpoint that the node runs on."""


NodeBody = Callable[[ConversationState, NodeContext], Body]


class _Run:
    """One run of one node."""

    def __init__(self, name: str, env: Environment, state: ConversationState, config: RunnableConfig) -> None:
        runtime: Runtime[DebateConfig] = get_runtime()
        info = runtime.execution_info
        checkpointer = config["configurable"].get("__pregel_checkpointer")
        self.state = state
        self.config = config
        self.store = runtime.store
        self.records: Records | None = records_of(checkpointer) if checkpointer is not None else None
        debate = (info.thread_id if info else None) or ""
        self.context = NodeContext(env, runtime.context, debate, info.checkpoint_id if info else "")
        debate_config = frozen_config(state) if state.get("config") else DebateConfig()
        step = int(state.get("step", {}).get("no", 0))
        place = Place(self.records, debate, step, name, self.context.checkpoint)
        self.answering = Answering(env, debate_config, place, config)
        self._started = time.monotonic()

    async def drive(self, body: NodeBody) -> Update:
        """Run the body to its end and return its update, with what it spent added up."""
        flow = body(self.state, self.context)
        outcome: Any = None
        try:
            while True:
                outcome = await self._carry_out(flow.send(outcome))
        except StopIteration as end:
            update: Update = dict(end.value or {})
        finally:
            flow.close()
        if self.answering.batches:
            spent = {**self.answering.spent.totals, "elapsed_s": self._elapsed_s()}
            update["usage"] = add_up(spent, [update.get("usage", {})])
        return update

    def failed(self, error: ModelError) -> FailedRun:
        """Return what is kept of this run, which failed."""
        usage = {**self.answering.failed.totals, "elapsed_s": self._elapsed_s()}
        place = self.answering.place
        return FailedRun(
            str(uuid.uuid4()), place.step, place.node, str(error), self.context.env.clock(), usage
        )

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started

    async def _carry_out(self, effect: Effect) -> Any:
        if isinstance(effect, Ask):
            return interrupt(effect.payload)
        if isinstance(effect, Emit):
            get_stream_writer()(dict(effect.event))
            return None
        if isinstance(effect, Hear):
            return await asyncio.to_thread(self._hear, effect.after)
        if isinstance(effect, Remember | LookUp):
            return await self._in_store(effect)
        if isinstance(effect, Work):
            done = await self.answering.gather([(job.digest, partial(_done, job)) for job in effect.jobs])
            return [reply.text for reply in done]
        return await self.answering.answer(effect)

    async def _in_store(self, effect: Remember | LookUp) -> list[dict[str, Any]]:
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
        return Heard(
            floor.said_since(debate, after), floor.take_pause(debate), self.records.failed.of(debate)
        )


async def _done(job: Job) -> Reply:
    return Reply(text=await asyncio.to_thread(job.run))


def _pauses(interrupt: GraphInterrupt) -> bool:
    return bool(interrupt.args) and all(is_pause(each.value) for each in interrupt.args[0])


@asynccontextmanager
async def _writing(records: Records, debate: str) -> AsyncIterator[None]:
    """Hold a debate; a run that is stopped while it takes the hold gives it back too."""
    writers = records.writers
    if writers.again(debate):  # the command line and Python hold it for the whole run
        try:
            yield
        finally:
            writers.release(debate)
        return
    held = False

    def take() -> None:
        nonlocal held
        writers.acquire(debate)
        held = True

    try:
        await in_thread(take)
        yield
    finally:
        if held:
            await in_thread(writers.release, debate)


async def _noted(run: _Run, body: NodeBody, records: Records, debate: str) -> Update:
    """Drive the body and write to the catalogue how it went."""
    try:
        update = await run.drive(body)
        if WATCHED & update.keys():
            await in_thread(run.context.env.note, records, debate, run.state, update)
    except ModelError as error:
        await in_thread(note_failure, records, debate, run.state, run.failed(error))
        raise
    except GraphInterrupt as waiting:
        status = "paused" if _pauses(waiting) else "waiting"
        await asyncio.to_thread(records.catalogue.update, debate, status=status)
        raise
    return update


def as_node(name: str, body: NodeBody, env: Environment) -> RunnableLambda[Any, Any]:
    """Wrap a body as a node that runs in sync and async graphs."""

    async def arun(state: ConversationState, config: RunnableConfig) -> Update:
        run = _Run(name, env, state, config)
        if run.records is None or not run.context.debate:
            return await run.drive(body)
        records, debate = run.records, run.context.debate
        async with _writing(records, debate):
            return await _noted(run, body, records, debate)

    def run(state: ConversationState, config: RunnableConfig) -> Update:
        return call_from_sync(arun, state, config)

    return RunnableLambda(run, afunc=arun, name=name)


def drive_with(body: Body, outcomes: Callable[[Effect], Any]) -> Update:
    """Drive a body with plain outcomes, for tests: `outcomes` maps each effect to what is sent back."""
    outcome: Any = None
    try:
        while True:
            outcome = outcomes(body.send(outcome))
    except StopIteration as end:
        return dict(end.value or {})

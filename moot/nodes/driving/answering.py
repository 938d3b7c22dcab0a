"""Answers batches of calls: all at the same time, so many at once, each reply journalled before it is used.

The driver answers the batches of nodes with it; judging and evaluating outside a graph do too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig

from moot.nodes.calls import Flow, ModelCall, Reply, View
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.spans import call_span
from moot.nodes.effects import Errand, Job, Work
from moot.state.config.boundary import Claim
from moot.state.conversation import CallReceipt
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError
from moot.state.event_loop import at_once, let_land
from moot.state.journal import JournalKey
from moot.state.records import Records
from moot.state.reducers import add_up

T = TypeVar("T")
Asked = TypeVar("Asked")


@dataclass(frozen=True)
class JournalPlace:
    """Where calls stand in a debate's journal."""

    records: Records | None = None
    """`None` where there is no database: then nothing is journalled."""
    debate: str = ""
    step: int = 0
    node: str = ""
    anchor: str = ""
    """Checkpoint that the calls are made on."""
    again: bool = False
    """Whether the step was begun before, on an earlier checkpoint."""


class Answering:
    """Answers the batches of one run, in order."""

    def __init__(
        self,
        env: Environment,
        claim: Claim,
        place: JournalPlace,
        run: RunnableConfig | None = None,
        *,
        limit: asyncio.Semaphore | None = None,
    ) -> None:
        """Make one; `limit` is shared with others, by default it is `limits.concurrency` alone."""
        self.spent: dict[str, float] = {}
        """What calls used."""
        self.failed: dict[str, float] = {}
        """What of it failed: the journal keeps none of that."""
        self.receipts: list[CallReceipt] = []
        """Of all calls but speeches, without numbers."""
        self.batches = 0
        """Batches done so far."""
        self.place = place
        self._env, self._run = env, run
        self._claim = claim
        self._limit = limit or asyncio.Semaphore(claim.config.limits.concurrency)

    async def carry_out(self, asked: Sequence[ModelCall] | Work) -> list[Reply] | list[str]:
        """Return the replies to a batch of calls, or the results of local work."""
        return await (self.work(asked) if isinstance(asked, Work) else self.answer(asked))

    async def answer(self, calls: Sequence[ModelCall]) -> list[Reply]:
        """Return the replies to a batch, in its order."""
        replies = await self.gather([(call.digest, partial(self._ask, call)) for call in calls])
        for call, reply in zip(calls, replies, strict=True):
            used = [{"calls": 1}, reply.usage]
            self.spent = add_up(self.spent, used)
            if not reply.ok:
                self.failed = add_up(self.failed, used)
            if call.purpose != "turn":  # a speech has a receipt of its own
                self.receipts.append(_receipt(call, reply, self.place))
        return replies

    async def work(self, work: Work) -> list[str]:
        """Return the results of local work, in its order; they are journalled like replies."""

        async def run(job: Job) -> Reply:
            return Reply(text=await asyncio.to_thread(job.run))

        done = await self.gather([(job.digest, partial(run, job)) for job in work.jobs])
        return [reply.text for reply in done]

    def numbered_receipts(self, before: Sequence[CallReceipt]) -> list[CallReceipt]:
        """Return the receipts of the calls so far, numbered on from those that a debate has."""
        return [
            {**receipt, "id": f"c{number:06d}"} for number, receipt in enumerate(self.receipts, len(before))
        ]

    async def gather(self, asked: Sequence[tuple[str, Callable[[], Awaitable[Reply]]]]) -> list[Reply]:
        """Return the journal's reply to each request, by its digest, else make it and commit it.

        All are made at the same time; failures are not kept.
        """
        place, records = self.place, self.place.records
        keys = [
            JournalKey(place.debate, place.step, place.node, self.batches, floor, digest)
            for floor, (digest, _) in enumerate(asked)
        ]
        known: Sequence[JsonObject | None] = [None] * len(keys)
        if records is not None:
            get = records.journal.get
            known = await at_once(lambda: [get(key, place.anchor, again=place.again) for key in keys])
        replies = await asyncio.gather(*map(self._once, keys, known, [make for _, make in asked]))
        self.batches += 1
        return list(replies)

    async def _ask(self, call: ModelCall) -> Reply:
        try:
            models = self._env.models_of(self._claim)
        except ConfigError as refused:
            return Reply(error=str(refused))
        if self.place.records is not None:
            models = replace(models, traffic=self.place.records.traffic)
        async with self._limit:
            with call_span(call, self.place.debate) as replies:
                replies.append(await let_land(self._env.complete(call, models, config=self._run)))
            return replies[0]

    async def _once(
        self, key: JournalKey, known: JsonObject | None, make: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        if known is not None:
            return Reply.from_json(known)
        reply = await make()
        if reply.is_final and self.place.records is not None:
            # To its end: a reply that has arrived is paid, so it is kept before a stopped run stops.
            await at_once(self.place.records.journal.put, key, self.place.anchor, reply.to_json())
        return reply


def _receipt(call: ModelCall, reply: Reply, place: JournalPlace) -> CallReceipt:
    view = call.view or View(call.messages, call.prompt_tokens, 0)
    return {
        "id": "",
        "purpose": call.purpose,
        "makes": call.makes,
        "step": place.step,
        "node": place.node,
        "floor": call.floor,
        **view.record(),  # type: ignore[typeddict-item]  # which has no `options`
        "model": reply.model or call.model,
        "usage": reply.usage,
        "error": reply.error,
        "digest": call.digest,
        "checkpoint": place.anchor,
    }


async def run_flow(flow: Generator[Asked, Any, T], carry_out: Callable[[Asked], Awaitable[object]]) -> T:
    """Run a generator to its end, sending it what is carried out of each thing that it asks for."""
    outcome: object = None
    try:
        while True:
            outcome = await carry_out(flow.send(outcome))
    except StopIteration as end:
        made: T = end.value
        return made
    finally:
        flow.close()


async def run_to_end(
    flow: Flow[T] | Errand[T], environment: Environment, claim: Claim, place: JournalPlace | None = None
) -> tuple[T, Answering]:
    """Run a flow outside a graph; return what it returns, and who knows what its calls used."""
    answering = Answering(environment, claim, place or JournalPlace())
    return await run_flow(flow, answering.carry_out), answering

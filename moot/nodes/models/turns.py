"""When a call may ask its endpoint: not while others were told to wait, and at rates that are configured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from moot.nodes.models.failures import Failure
from moot.nodes.models.registry import Models
from moot.state.config.model_settings import bare_name, is_built_in
from moot.state.event_loop import to_the_end
from moot.state.leases import Lease
from moot.state.redaction import shown_url
from moot.state.traffic import Rates, Traffic

SLOT_S = 0.1
"""Seconds between two looks for a free slot."""


@dataclass(frozen=True)
class EndpointTurn:
    """A call that is about to be put to a model."""

    models: Models
    name: str
    """The model's."""
    tokens: int
    """What it takes at most, prompt and answer."""
    tell: Callable[[Failure, float], None]
    """Is told of a wait for others' sake, and its seconds."""

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for the model's turn, hold one of its slots for the block, and keep for all what came of it.

        Raises:
            Failure: the wait is longer than anybody has patience for.
        """
        traffic = self.models.traffic
        if traffic is None or is_built_in(self.name):
            yield
            return
        endpoint, backoff = endpoint_of(self.models, self.name), self.models.backoff
        slot = await self._admitted(traffic, endpoint)
        try:
            yield
        except Failure as failure:
            if failure.status == 429:
                await asyncio.to_thread(traffic.told, endpoint, failure.retry_after or backoff.wait_s(1))
            elif failure.passes:
                await asyncio.to_thread(traffic.failed, endpoint)
            raise
        else:
            await asyncio.to_thread(traffic.answered, endpoint)
        finally:
            if slot:
                await to_the_end(asyncio.to_thread(traffic.free, slot))

    async def _admitted(self, traffic: Traffic, endpoint: str) -> Lease | None:
        """Wait until the endpoint may be asked; return the slot that was taken, if any has to be."""
        settings, backoff = self.models.settings_of(self.name), self.models.backoff
        while (wait := await asyncio.to_thread(traffic.wait_s, endpoint)) > 0:
            why = f"to be asked again in {wait:.0f} s, as another call was told"
            busy = Failure(why, status=429, retryable=True, retry_after=wait)
            if wait > backoff.patience_s:
                raise busy
            if wait > 1:
                self.tell(busy, wait)
            await backoff.sleep(backoff.wait_s(1, wait))
        rates = Rates(settings.requests_per_minute, settings.tokens_per_minute)
        if rates != Rates():
            await backoff.sleep(await asyncio.to_thread(traffic.turn_s, endpoint, rates, self.tokens))
        slot = None
        while settings.concurrency and not slot:
            if not (slot := await asyncio.to_thread(traffic.slot, endpoint, settings.concurrency)):
                await backoff.sleep(SLOT_S)
        return slot


async def is_out(models: Models, name: str) -> bool:
    """Return whether a model's endpoint is out of order, as far as anybody found."""
    if models.traffic is None:
        return False
    return await asyncio.to_thread(models.traffic.is_out, endpoint_of(models, name))


def endpoint_of(models: Models, name: str) -> str:
    """Return what a model's rates are bound to: its place, and the model there."""
    return f"{shown_url(models.base_url(name))} {bare_name(name)}".strip()

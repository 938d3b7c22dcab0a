"""When a call may ask its endpoint: not while others were told to wait, and at rates that are configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.config import get_stream_writer

from moot.nodes.models.failures import Failure
from moot.nodes.models.registry import Models
from moot.state.config.model_settings import bare_name, is_built_in
from moot.state.event_loop import to_the_end
from moot.state.leases import Lease
from moot.state.redaction import shown_url
from moot.state.traffic import Traffic

SLOT_S = 0.1
"""Seconds between two looks for a free slot."""


@asynccontextmanager
async def endpoint_turn(models: Models, name: str, tokens: int) -> AsyncIterator[None]:
    """Wait for a model's turn, hold one of its slots for the block, and keep for all what came of it.

    Args:
        models: those of the run.
        name: the model's.
        tokens: what the call takes at most, prompt and answer.

    Raises:
        Failure: the wait is longer than anybody has patience for.
    """
    traffic = models.traffic
    if traffic is None or is_built_in(name):
        yield
        return
    endpoint = endpoint_of(models, name)
    slot = await _admission(models, name, traffic, tokens)
    try:
        yield
    except Failure as failure:
        if failure.status == 429:
            wait = failure.retry_after or models.backoff.wait_s(1)
            await asyncio.to_thread(traffic.note_wait, endpoint, wait)
        elif failure.passes:
            await asyncio.to_thread(traffic.note_failure, endpoint)
        raise
    else:
        await asyncio.to_thread(traffic.note_answer, endpoint)
    finally:
        if slot:
            await to_the_end(asyncio.to_thread(traffic.free, slot))


async def _admission(models: Models, name: str, traffic: Traffic, tokens: int) -> Lease | None:
    """Wait until the endpoint may be asked; return the slot that was taken, if any has to be."""
    endpoint, settings, backoff = endpoint_of(models, name), models.settings_of(name), models.backoff
    while (wait := await asyncio.to_thread(traffic.wait_s, endpoint)) > 0:
        why = f"to be asked again in {wait:.0f} s, as another call was told"
        busy = Failure(why, status=429, retryable=True, retry_after=wait)
        if wait > backoff.patience_s:
            raise busy
        if wait > 1:
            tell_of_wait(name, busy, wait, f"asked in {wait:.0f} s")
        await backoff.sleep(backoff.wait_s(1, wait))
    if settings.requests_per_minute or settings.tokens_per_minute:
        await backoff.sleep(await asyncio.to_thread(traffic.turn_s, endpoint, settings, tokens))
    slot = None
    while settings.concurrency and not slot:
        if not (slot := await asyncio.to_thread(traffic.slot, endpoint, settings.concurrency)):
            await backoff.sleep(SLOT_S)
    return slot


def tell_of_wait(model: str, failure: Failure, wait_s: float, what_next: str) -> None:
    """Say why nothing happens for a while: to whoever watches the run, else to the log."""
    words = f"{failure.cause}, {what_next}"
    try:
        write = get_stream_writer()
    except RuntimeError:  # outside a graph
        logging.getLogger(__name__).warning("%s: %s", model, words)
        return
    write({"event": "retry", "model": model, "why": failure.text, "words": words, "wait_s": wait_s})


async def is_out(models: Models, name: str) -> bool:
    """Return whether a model's endpoint is out of order, as far as anybody found."""
    if models.traffic is None:
        return False
    return await asyncio.to_thread(models.traffic.is_out, endpoint_of(models, name))


def endpoint_of(models: Models, name: str) -> str:
    """Return what a model's rates are bound to: its place, and the model there."""
    return f"{shown_url(models.base_url(name))} {bare_name(name)}".strip()

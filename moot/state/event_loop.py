"""Work on an event loop: what must come to its end, what need not wait, and how a person stops it."""

import asyncio
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Stop:
    """How often a person has asked this process to stop: once lets calls under way land, twice cuts them."""

    times: int = 0


stop = Stop()
GRACE_S = 30.0
"""How long calls under way may take once a person has asked to stop, seconds; most answers take less."""
REST_S = 0.2
"""How soon a wait ends once a person has asked to stop, seconds."""


async def rest(seconds: float) -> None:
    """Sleep; where a person asks to stop, the wait is cancelled, for no call is under way."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if stop.times:
            raise asyncio.CancelledError
        await asyncio.sleep(min(left, REST_S))


async def let_land(call: Coroutine[object, None, T]) -> T:
    """Await a call; one under way when a person asks to stop may still come in: it is paid anyway."""
    calling, until = asyncio.ensure_future(call), math.inf
    while not calling.done():
        try:
            await asyncio.wait([calling], timeout=None if until == math.inf else 0.05)
        except asyncio.CancelledError:
            until = min(until, time.monotonic() + (GRACE_S if stop.times == 1 else 0))
        if time.monotonic() >= until or (stop.times > 1 and until < math.inf):
            calling.cancel()
            await asyncio.wait([calling])
    return calling.result()


async def to_the_end(work: Awaitable[T]) -> T:
    """Await work to its end, such as a write and its commit; a cancellation meanwhile comes after it.

    LangGraph cancels a node twice: once for its step, once for its run.
    """
    working = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        working.exception()  # the cancellation says more than a failure after it
        raise cancelled
    return working.result()


async def cancel_all(tasks: Collection[asyncio.Task[object]]) -> None:
    """Cancel tasks, and wait until they have wound up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def uncancelled(work: Callable[P, Coroutine[object, None, T]]) -> Callable[P, Coroutine[object, None, T]]:
    """Decorate what comes to its end once it has begun, as `to_the_end` has it."""

    @wraps(work)
    async def await_call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await to_the_end(work(*args, **kwargs))

    return await_call


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread, to its end however often the caller is cancelled."""
    return await to_the_end(asyncio.to_thread(function, *arguments))


class Haste(threading.local):
    """Whether this thread, an event loop's, may not wait for others, nor for a disk."""

    now = False


class Waits(Exception):
    """What is to be run has to wait."""


haste = Haste()


async def at_once(function: Callable[..., T], *arguments: object) -> T:
    """Run what may be begun twice: here where nobody else has the file, else on a worker thread.

    A small write takes SQLite 0.1 ms, but a worker thread 0.6 ms of processor time to get there and back.
    What was paid is synced to disk, which takes longer, and goes to a worker thread always; so does all in
    LangGraph's development server, which lets nothing on its loop that could wait.
    """
    if "blockbuster" in sys.modules:  # by which it does
        return await in_thread(function, *arguments)
    haste.now = True
    try:
        return function(*arguments)
    except (Waits, asyncio.InvalidStateError):  # LangGraph's savers raise the latter on a loop
        haste.now = False
        return await in_thread(function, *arguments)
    finally:
        haste.now = False

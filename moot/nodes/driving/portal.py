"""Runs coroutines for synchronous callers, on one event loop of our own in a daemon thread."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import lru_cache
from typing import Any, TypeVar

from moot.state.uncancelled import to_the_end

T = TypeVar("T")


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="moot-portal", daemon=True).start()
    return loop


def call_from_sync(function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """Run `function(*arguments)` on our loop, in the caller's context, and return its result.

    Safe inside a running event loop, as in a notebook; an interruption of the caller cancels the coroutine.
    """
    context = contextvars.copy_context()
    loop = _loop()

    async def start() -> T:
        return await loop.create_task(function(*arguments), context=context)

    future = asyncio.run_coroutine_threadsafe(start(), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a blocking function on a worker thread, to its end however often the caller is cancelled."""
    return await to_the_end(asyncio.to_thread(function, *arguments))


_END = object()


def iterate_from_sync(make: Callable[[], AsyncIterator[T]]) -> Generator[T, None, None]:
    """Iterate an async iterator on our loop from synchronous code.

    Whoever stops early, by closing the generator or by an interruption, cancels the iteration and waits until
    it has wound up.
    """
    arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ended = threading.Event()
    loop = _loop()

    def end(_: asyncio.Task[None]) -> None:
        ended.set()
        arrived.put(_END)

    async def pump() -> None:
        try:
            async for item in make():
                arrived.put(item)
        except asyncio.CancelledError as error:
            # LangGraph hands over what it has left to wind up where it was cancelled while it did so.
            unfinished = [each for each in error.args if isinstance(each, asyncio.Task)]
            if unfinished:
                await asyncio.wait(unfinished)
            raise

    async def start() -> asyncio.Task[None]:
        pumping = loop.create_task(pump())
        pumping.add_done_callback(end)
        return pumping

    started = asyncio.run_coroutine_threadsafe(start(), loop)
    try:
        while (item := arrived.get()) is not _END:
            yield item
        started.result().result()
    finally:
        if not ended.is_set():
            loop.call_soon_threadsafe(started.result().cancel)
            ended.wait()

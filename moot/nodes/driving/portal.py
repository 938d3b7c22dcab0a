"""Runs coroutines for synchronous callers, on one event loop of our own in a daemon thread.

anyio's `BlockingPortal` is no substitute. It cancels over and over until a task has ended: a write that had
begun, and 0.15 s to go, was cancelled 4,095 times meanwhile (anyio 4.16), where ours is told once. And an
exception of one call that is no `Exception` closes the portal for every other debate of the process.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

from moot.state.sql import storage_error
from moot.state.uncancelled import to_the_end

T = TypeVar("T")


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Tell a user what a failure of the database that holds the checkpoints means."""
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error) from error


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="moot-portal", daemon=True).start()
    return loop


def call_from_sync(function: Callable[..., Coroutine[Any, Any, T]], *arguments: object) -> T:
    """Run `function(*arguments)` on our loop, in the caller's context, and return its result.

    Safe inside a running event loop, as in a notebook; an interruption of the caller cancels the coroutine.
    """
    future = asyncio.run_coroutine_threadsafe(function(*arguments), _loop())
    try:
        with _storage_errors():
            return future.result()
    except BaseException:
        future.cancel()
        raise


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread, to its end however often the caller is cancelled."""
    return await to_the_end(asyncio.to_thread(function, *arguments))


_END = object()


def iterate_from_sync(make: Callable[[], AsyncIterator[T]]) -> Generator[T, None, None]:
    """Iterate an async iterator on our loop from synchronous code.

    Whoever stops early, by closing the generator or by an interruption, cancels the iteration and waits until
    it has wound up.
    """
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()

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
        pumping = asyncio.create_task(pump())
        pumping.add_done_callback(lambda _: arrived.put(_END))
        return pumping

    started, item = asyncio.run_coroutine_threadsafe(start(), _loop()), None
    try:
        while (item := arrived.get()) is not _END:
            yield cast(T, item)
        with _storage_errors():
            started.result().result()
    finally:
        _loop().call_soon_threadsafe(started.result().cancel)
        while item is not _END:
            item = arrived.get()

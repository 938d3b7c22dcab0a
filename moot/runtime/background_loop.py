"""Event loop in a daemon thread, for callers without an event loop or on another one.

anyio's `BlockingPortal` is not used for two reasons. It cancels a task repeatedly until it ends: a write that
needed 0.15 s more was cancelled 4,095 times (anyio 4.16), and here once. And a `BaseException` of one call
closes the portal for all other debates of the process.
"""

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

from moot.calls.concurrency import GRACE_S, run_in_thread, shield
from moot.storage.sqlite import storage_error

T = TypeVar("T")


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Convert SQLite errors to errors that tell the user what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error) from error


BACKGROUND_LOOP = "moot-portal"
"""Name of the background event loop that runs single debates. Each event loop has its own thread."""
BATCH_LOOP = "moot-many"
"""Name of the background event loop that runs many debates. Its worker threads may wait for the loop
`BACKGROUND_LOOP`."""


@lru_cache
def _loop(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, so a child starts loops of its own
    os.register_at_fork(after_in_child=_loop.cache_clear)


def call_from_sync(
    function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, loop: str = BACKGROUND_LOOP
) -> T:
    """Run a coroutine function on a background event loop, and return its result.

    The caller may itself run inside an event loop, as in a notebook. Interrupting the caller cancels the
    coroutine, and waits until it has ended.
    """
    finished, tasks = threading.Event(), list[asyncio.Task[T]]()

    async def run() -> T:
        return await function(*arguments)

    def end(task: asyncio.Task[T]) -> None:
        if not task.cancelled():  # asyncio logs exceptions that nobody reads, as after an interrupt
            task.exception()
        finished.set()

    def start() -> None:
        tasks.append(asyncio.create_task(run()))
        tasks[0].add_done_callback(end)

    def stop() -> None:  # runs after `start`, unless the interrupt came before `start` was scheduled
        if not tasks:
            finished.set()
        for task in tasks:
            task.cancel()

    try:
        _loop(loop).call_soon_threadsafe(start)
        finished.wait()
    except BaseException:
        _loop(loop).call_soon_threadsafe(stop)
        finished.wait(GRACE_S + 1)  # a running call finishes, and its reply is stored
        raise
    with _storage_errors():
        return tasks[0].result()


@asynccontextmanager
async def enter_in_thread(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and exit a synchronous context manager in worker threads, even if entering fails."""
    try:
        yield await run_in_thread(manager.__enter__)
    except BaseException as error:
        if not await run_in_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await run_in_thread(manager.__exit__, None, None, None)


_END = object()


def _never(item: object) -> bool:
    return False


async def _producer(
    make: Callable[[], AsyncIterator[T]],
    put: Callable[[object], object],
    holds: Callable[[T], bool],
    next_request: asyncio.Event,
) -> asyncio.Task[None]:
    """Start a task that passes items to `put`, and waits for `next_request` after those that it `holds`."""

    async def pump() -> None:
        try:
            async for item in make():
                put(item)
                if holds(item):
                    await until_next_request()
        except asyncio.CancelledError as error:
            # If LangGraph is cancelled during its cleanup, the exception carries the unfinished tasks.
            unfinished_tasks = [each for each in error.args if isinstance(each, asyncio.Task)]
            if unfinished_tasks:
                await asyncio.wait(unfinished_tasks)
            raise

    async def until_next_request() -> None:
        try:
            await next_request.wait()
        except asyncio.CancelledError:
            task.cancel()  # in a loop, so that the iterator itself is cancelled and cleans up
        next_request.clear()

    task = asyncio.create_task(pump())
    task.add_done_callback(lambda _: put(_END))
    return task


def iterate_from_sync(
    make: Callable[[], AsyncIterator[T]], loop: str = BACKGROUND_LOOP, *, holds: Callable[[T], bool] = _never
) -> Generator[T, None, None]:
    """Run an async iterator on a background event loop.

    The items are yielded to synchronous code. Closing the generator early, or interrupting it, cancels the
    iteration and waits for its cleanup.
    The iterator waits for the consumer after an item for which `holds` is true.
    """
    items: queue.SimpleQueue[object] = queue.SimpleQueue()
    item, next_request = None, asyncio.Event()
    task_future = asyncio.run_coroutine_threadsafe(
        _producer(make, items.put, holds, next_request), _loop(loop)
    )
    try:
        while (item := items.get()) is not _END:
            is_waiting = holds(cast(T, item))
            yield cast(T, item)
            if is_waiting:
                _loop(loop).call_soon_threadsafe(next_request.set)
        with _storage_errors():
            task_future.result().result()
    finally:
        _loop(loop).call_soon_threadsafe(task_future.result().cancel)
        while item is not _END:
            item = items.get()


async def iterate_from_async(
    make: Callable[[], AsyncIterator[T]], *, holds: Callable[[T], bool] = _never
) -> AsyncGenerator[T, None]:
    """Run an async iterator on a background event loop, and yield its items on the caller's.

    The arguments are those of `iterate_from_sync`.
    """
    items: asyncio.Queue[object] = asyncio.Queue()
    call_soon, item, next_request = asyncio.get_running_loop().call_soon_threadsafe, None, asyncio.Event()

    async def wound_up() -> None:
        while await items.get() is not _END:
            pass

    task_future = asyncio.run_coroutine_threadsafe(
        _producer(make, lambda item: call_soon(items.put_nowait, item), holds, next_request),
        _loop(BACKGROUND_LOOP),
    )
    try:
        while (item := await items.get()) is not _END:
            is_waiting = holds(cast(T, item))
            yield cast(T, item)
            if is_waiting:
                _loop(BACKGROUND_LOOP).call_soon_threadsafe(next_request.set)
        with _storage_errors():
            task_future.result().result()
    finally:  # cancelled on the background loop after its start, so this loop is never blocked
        _loop(BACKGROUND_LOOP).call_soon_threadsafe(
            task_future.add_done_callback, lambda future: future.result().cancel()
        )
        if item is not _END:
            await shield(wound_up())

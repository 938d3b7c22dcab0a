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
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from moot.calls.concurrency import GRACE_S, run_in_thread, shield
from moot.storage.sqlite import storage_error

T = TypeVar("T")


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


class _BackgroundTask(Generic[T]):
    """Task on a background loop. The caller calls `start` in a `try` block, and `cancel` if interrupted."""

    def __init__(
        self,
        loop: str,
        work: Callable[[], Coroutine[object, None, T]],
        end: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop, self._work, self._end = _loop(loop), work, end
        self._tasks, self.ended = list[asyncio.Task[T]](), threading.Event()

    def start(self) -> None:
        """Schedule the task. `end` is called on the background loop when it has ended."""
        self._loop.call_soon_threadsafe(self._create)

    def cancel(self) -> None:
        """Schedule the cancellation, after the start."""
        self._loop.call_soon_threadsafe(self._cancel)

    def result(self) -> T:
        """Return the result of the ended task, or raise its error. SQLite's errors say what to do."""
        try:
            return self._tasks[0].result()
        except sqlite3.Error as error:
            raise storage_error(error) from error

    def _create(self) -> None:
        self._tasks.append(asyncio.create_task(self._work()))
        self._tasks[0].add_done_callback(self._note_end)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        if not self._tasks:  # the interrupt came before the start was scheduled
            self._note_end(None)

    def _note_end(self, task: asyncio.Task[T] | None) -> None:
        if task and not task.cancelled():  # asyncio logs exceptions that nobody reads, as after an interrupt
            task.exception()
        self._end()
        self.ended.set()


def call_from_sync(
    function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, loop: str = BACKGROUND_LOOP
) -> T:
    """Run a coroutine function on a background event loop, and return its result.

    The caller may itself run inside an event loop, as in a notebook. Interrupting the caller cancels the
    coroutine, and waits until it has ended.
    """
    task = _BackgroundTask(loop, lambda: function(*arguments))
    try:
        task.start()
        task.ended.wait()
    except BaseException:
        task.cancel()
        task.ended.wait(GRACE_S + 1)  # a running call finishes, and its reply is stored
        raise
    return task.result()


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


async def _produce(
    make: Callable[[], AsyncIterator[T]],
    put: Callable[[object], object],
    holds: Callable[[T], bool],
    next_request: asyncio.Event,
) -> None:
    """Pass items to `put`, and wait for `next_request` after those that it `holds`."""
    task = asyncio.current_task()
    try:
        async for item in make():
            put(item)
            if holds(item):
                try:
                    await next_request.wait()
                except asyncio.CancelledError:
                    cast(asyncio.Task[None], task).cancel()  # again: the iterator itself cleans up
                next_request.clear()
    except asyncio.CancelledError as error:
        # If LangGraph is cancelled during its cleanup, the exception carries the unfinished tasks.
        if unfinished_tasks := [each for each in error.args if isinstance(each, asyncio.Task)]:
            await asyncio.wait(unfinished_tasks)
        raise


def iterate_from_sync(
    make: Callable[[], AsyncIterator[T]],
    loop: str = BACKGROUND_LOOP,
    *,
    holds: Callable[[T], bool] = lambda _: False,
) -> Generator[T, None, None]:
    """Run an async iterator on a background event loop.

    Closing or interrupting the generator cancels the iteration, and waits for its cleanup.

    Args:
        make: function that returns the iterator.
        loop: name of the background loop.
        holds: function that returns True for an item after which the iterator waits for the consumer. After
            other items it runs ahead.
    """
    items: queue.SimpleQueue[object] = queue.SimpleQueue()
    next_request = asyncio.Event()
    task = _BackgroundTask(
        loop, lambda: _produce(make, items.put, holds, next_request), lambda: items.put(_END)
    )
    try:
        task.start()
        while (item := items.get()) is not _END:
            is_waiting = holds(cast(T, item))
            yield cast(T, item)
            if is_waiting:
                _loop(loop).call_soon_threadsafe(next_request.set)
        task.result()
    finally:
        task.cancel()
        task.ended.wait()


async def iterate_from_async(
    make: Callable[[], AsyncIterator[T]], *, holds: Callable[[T], bool] = lambda _: False
) -> AsyncGenerator[T, None]:
    """Run an async iterator on a background event loop, and yield its items on the caller's.

    The arguments are those of `iterate_from_sync`.
    """
    items: asyncio.Queue[object] = asyncio.Queue()
    call_soon = asyncio.get_running_loop().call_soon_threadsafe
    next_request, ended = asyncio.Event(), asyncio.Event()
    task = _BackgroundTask(
        BACKGROUND_LOOP,
        lambda: _produce(make, lambda item: call_soon(items.put_nowait, item), holds, next_request),
        lambda: [call_soon(ended.set), call_soon(items.put_nowait, _END)],
    )
    try:
        task.start()
        while (item := await items.get()) is not _END:
            is_waiting = holds(cast(T, item))
            yield cast(T, item)
            if is_waiting:
                _loop(BACKGROUND_LOOP).call_soon_threadsafe(next_request.set)
        task.result()
    finally:
        task.cancel()
        if not ended.is_set():
            await shield(ended.wait())

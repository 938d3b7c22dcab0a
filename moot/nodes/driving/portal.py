"""Runs coroutines for callers without a loop, or with another, on one event loop of ours in a daemon thread.

anyio's `BlockingPortal` is no substitute. It cancels over and over until a task has ended: a write that had
begun, and 0.15 s to go, was cancelled 4,095 times meanwhile (anyio 4.16), where ours is told once. And an
exception of one call that is no `Exception` closes the portal for every other debate of the process.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

from moot.state.event_loop import in_thread, to_the_end
from moot.state.sqlite import storage_error

T = TypeVar("T")


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Tell a user what a failure of the database that holds the checkpoints means."""
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error) from error


PORTAL, MANY = "moot-portal", "moot-many"
"""Our event loops: what runs on the second may have its worker threads wait for the first."""


@lru_cache
def _loop(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=name, daemon=True).start()
    return loop


def call_from_sync(
    function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, loop: str = PORTAL
) -> T:
    """Run `function(*arguments)` on our loop, in the caller's context, and return its result.

    Safe inside a running event loop, as in a notebook; an interruption of the caller cancels the coroutine.
    """
    future = asyncio.run_coroutine_threadsafe(function(*arguments), _loop(loop))
    try:
        with _storage_errors():
            return future.result()
    except BaseException:
        future.cancel()
        raise


@asynccontextmanager
async def entered_in_thread(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave on worker threads what `contextmanager` made; it is left too where entering failed."""
    try:
        yield await in_thread(manager.__enter__)
    except BaseException as error:
        if not await in_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await in_thread(manager.__exit__, None, None, None)


_END = object()


def _never(item: object) -> bool:
    return False


async def _pumping(
    make: Callable[[], AsyncIterator[T]],
    put: Callable[[object], object],
    holds: Callable[[T], bool],
    asked: asyncio.Event,
) -> asyncio.Task[None]:
    """Begin to iterate on our loop; each item is put, and the end after them whatever becomes of it.

    After an item that `holds`, nothing more is asked of the iterator until the next is `asked` for.
    """

    async def pump() -> None:
        try:
            async for item in make():
                put(item)
                if holds(item):
                    await until_asked()
        except asyncio.CancelledError as error:
            # LangGraph hands over what it has left to wind up where it was cancelled while it did so.
            unfinished = [each for each in error.args if isinstance(each, asyncio.Task)]
            if unfinished:
                await asyncio.wait(unfinished)
            raise

    async def until_asked() -> None:
        try:
            await asked.wait()
        except asyncio.CancelledError:
            task.cancel()  # told anew where the iterator waits next, which is what winds up
        asked.clear()

    task = asyncio.create_task(pump())
    task.add_done_callback(lambda _: put(_END))
    return task


def iterate_from_sync(
    make: Callable[[], AsyncIterator[T]], loop: str = PORTAL, *, holds: Callable[[T], bool] = _never
) -> Generator[T, None, None]:
    """Iterate an async iterator on our loop from synchronous code.

    Whoever stops early, by closing the generator or by an interruption, cancels the iteration and waits until
    it has wound up.

    Args:
        make: makes the iterator.
        loop: the name of the loop that it runs on.
        holds: after which items the iterator goes on only once the next one is asked for; else it runs ahead.
    """
    arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
    item, asked = None, asyncio.Event()
    started = asyncio.run_coroutine_threadsafe(_pumping(make, arrived.put, holds, asked), _loop(loop))
    try:
        while (item := arrived.get()) is not _END:
            waited_for = holds(cast(T, item))
            yield cast(T, item)
            if waited_for:
                _loop(loop).call_soon_threadsafe(asked.set)
        with _storage_errors():
            started.result().result()
    finally:
        _loop(loop).call_soon_threadsafe(started.result().cancel)
        while item is not _END:
            item = arrived.get()


async def iterate_from_async(
    make: Callable[[], AsyncIterator[T]], *, holds: Callable[[T], bool] = _never
) -> AsyncGenerator[T, None]:
    """Iterate an async iterator on our loop from another one, as `iterate_from_sync` does from none."""
    arrived: asyncio.Queue[object] = asyncio.Queue()
    tell, item, asked = asyncio.get_running_loop().call_soon_threadsafe, None, asyncio.Event()

    async def wound_up() -> None:
        while await arrived.get() is not _END:
            pass

    started = asyncio.run_coroutine_threadsafe(
        _pumping(make, lambda item: tell(arrived.put_nowait, item), holds, asked), _loop(PORTAL)
    )
    try:
        while (item := await arrived.get()) is not _END:
            waited_for = holds(cast(T, item))
            yield cast(T, item)
            if waited_for:
                _loop(PORTAL).call_soon_threadsafe(asked.set)
        with _storage_errors():
            started.result().result()
    finally:  # told on our loop, once it has begun: this one is never blocked
        _loop(PORTAL).call_soon_threadsafe(started.add_done_callback, lambda begun: begun.result().cancel())
        if item is not _END:
            await to_the_end(wound_up())

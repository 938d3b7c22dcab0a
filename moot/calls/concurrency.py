"""Helpers for asyncio: stop, sleep, shield, and run blocking work inline or on a worker thread."""

import asyncio
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from moot.state.errors import InputError

T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Stop:
    """Counter of requests to stop, such as Ctrl-C. The first lets calls finish, the second cancels them."""

    times: int = 0


stop = Stop()
GRACE_S = 30.0
"""Number of seconds that running calls get to finish after a stop request."""
STOP_POLL_S = 0.2
"""Number of seconds between two checks for a stop request."""


def require_asyncio(what: str) -> None:
    """Raise an `InputError` if no event loop runs, or another one than asyncio's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InputError(
            f"{what} needs an asyncio event loop: under trio, call its synchronous version in a worker "
            "thread with `trio.to_thread.run_sync`"
        ) from None


async def sleep_until_stop(seconds: float) -> None:
    """Sleep for `seconds`. A request to stop the process raises `asyncio.CancelledError`."""
    deadline = time.monotonic() + seconds
    while (seconds_left := deadline - time.monotonic()) > 0:
        if stop.times:
            raise asyncio.CancelledError
        await asyncio.sleep(min(seconds_left, STOP_POLL_S))


async def drain(call: Coroutine[object, None, T]) -> T:
    """Await a call, and let it finish even if a person asks the process to stop.

    The provider charges for a running call in any case. A call that finishes while it is cancelled returns
    its reply, so that the caller can store the reply.
    """
    task, deadline = asyncio.ensure_future(call), math.inf
    while not task.done():
        try:
            await asyncio.wait([task], timeout=None if deadline == math.inf else 0.05)
        except asyncio.CancelledError:
            deadline = min(deadline, time.monotonic() + (GRACE_S if stop.times == 1 else 0))
        if time.monotonic() >= deadline or (stop.times > 1 and deadline < math.inf):
            task.cancel()
            while not task.done():  # LangGraph cancels a node twice
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
    return task.result()


async def shield(work: Awaitable[T]) -> T:
    """Wait until `work` has finished, even if the caller is cancelled in the meantime.

    The cancellation is raised afterwards. LangGraph cancels a node twice, once for its step and once for its
    run.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # retrieve the exception, because the cancellation is raised instead
        raise cancelled
    return task.result()


async def cancel_all(tasks: Collection[asyncio.Task[object]]) -> None:
    """Cancel the tasks and wait until all of them have finished."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def shielded(work: Callable[P, Coroutine[object, None, T]]) -> Callable[P, Coroutine[object, None, T]]:
    """Decorate a coroutine function so that cancelling the caller does not interrupt it."""

    @wraps(work)
    async def await_call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await shield(work(*args, **kwargs))

    return await_call


async def to_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread.

    Raises:
        RuntimeError: The function raised `StopIteration`, which a future cannot hold. Its caller would wait
            for ever.
    """

    def run() -> T:
        try:
            return function(*arguments)
        except StopIteration as error:
            raise RuntimeError(f"{function!r} raised StopIteration") from error

    return await asyncio.to_thread(run)


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread. The function finishes even if its caller is cancelled."""
    return await shield(to_thread(function, *arguments))


def async_version(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a coroutine function that runs a blocking function on a worker thread, and lets it finish."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_in_thread(partial(method, *args, **kwargs))

    call.__name__ = call.__qualname__ = f"a{method.__name__}"
    call.__doc__ = f"Async version of `{method.__name__}`."
    return call


class NonBlocking(threading.local):
    """Flag that is set while a function runs on the event loop, which must not wait for locks or disks."""

    active = False


class WouldBlock(Exception):
    """Error raised if a function would have to wait."""


non_blocking = NonBlocking()


async def run_inline(function: Callable[..., T], *arguments: object) -> T:
    """Run a function on the event loop, or on a worker thread if it would block.

    The function must be idempotent, because it may be started twice. A small write to SQLite takes 0.1 ms, a
    round trip to a worker thread 0.6 ms. Durable writes always use a worker thread, because syncing takes
    longer. So do all calls in LangGraph's development server, which forbids blocking calls on its event loop.
    """
    if "blockbuster" in sys.modules:  # imported by LangGraph's development server
        return await run_in_thread(function, *arguments)
    non_blocking.active = True
    try:
        return function(*arguments)
    except (WouldBlock, asyncio.InvalidStateError):  # the error of LangGraph's savers
        non_blocking.active = False
        return await run_in_thread(function, *arguments)
    finally:
        non_blocking.active = False

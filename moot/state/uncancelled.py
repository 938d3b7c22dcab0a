"""Work that must come to its end once it has begun, such as a write and its commit."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[object, None, T]) -> T:
    """Await work to its end however often the caller is cancelled meanwhile; the cancellation comes after it.

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

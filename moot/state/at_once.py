"""Small work of a database on an event loop, where it need not wait."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from moot.state.uncancelled import in_thread

T = TypeVar("T")


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

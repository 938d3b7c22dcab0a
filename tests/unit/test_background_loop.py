"""Calls and iterations that run async code on the background loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from moot.calls.concurrency import run_in_thread
from moot.runtime.background_loop import call_from_sync, iterate_from_async, iterate_from_sync
from tests.support.waiting import LONG_TIMEOUT_S

mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="unset")


async def _read_mark() -> str:
    return mark.get()


def test_a_coroutine_runs_in_the_callers_context() -> None:
    token = mark.set("mine")
    assert call_from_sync(_read_mark) == "mine"
    mark.reset(token)


def test_call_from_sync_works_inside_a_running_loop() -> None:
    async def outer() -> str:
        return call_from_sync(_read_mark)

    assert asyncio.run(outer()) == "unset"


def test_an_interrupted_call_waits_for_the_end_of_its_coroutine() -> None:
    ended: list[str] = []

    async def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(await asyncio.to_thread(lambda: "stored"))

    with pytest.raises(KeyboardInterrupt):
        call_from_sync(interrupted)
    assert ended == ["stored"]


@pytest.mark.parametrize("how", ["call", "iterate"])
def test_an_interrupt_while_the_call_is_handed_over_loses_no_coroutine(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    log: list[str] = []
    loop = call_from_sync(_running_loop)
    schedule = loop.call_soon_threadsafe

    async def stored() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append(await asyncio.to_thread(lambda: "stored"))

    async def items() -> AsyncIterator[None]:
        await stored()
        yield

    def interrupted(callback: Callable[..., object], *arguments: object, **options: Any) -> None:
        monkeypatch.setattr(loop, "call_soon_threadsafe", schedule)
        schedule(callback, *arguments, **options)
        call_from_sync(_running_loop)  # the coroutine has started now
        raise KeyboardInterrupt

    def never_scheduled(callback: Callable[..., object], *arguments: object, **options: Any) -> None:
        monkeypatch.setattr(loop, "call_soon_threadsafe", schedule)
        raise KeyboardInterrupt

    for interrupt in (interrupted, never_scheduled):
        monkeypatch.setattr(loop, "call_soon_threadsafe", interrupt)
        with pytest.raises(KeyboardInterrupt):
            call_from_sync(stored) if how == "call" else next(iterate_from_sync(items))
    assert log == ["stored"]


async def _running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_errors_reach_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        call_from_sync(fail)


def test_stop_iteration_in_a_thread_becomes_a_runtime_error() -> None:
    async def run() -> None:
        await asyncio.wait_for(run_in_thread(next, iter(())), 5)

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        asyncio.run(run())


def test_closing_an_iteration_early_waits_for_its_cleanup() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in range(10**9):
                yield n
                await asyncio.sleep(0)
        finally:
            log.append("wound up")

    iterator = iterate_from_sync(numbers)
    assert [next(iterator), next(iterator)] == [0, 1]
    iterator.close()
    assert log == ["wound up"]


def test_iteration_pauses_at_held_items_and_can_be_closed_there() -> None:
    log: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for n in range(10**9):
                log.append(f"makes {n}")
                yield n
                await asyncio.sleep(0)
        finally:
            log.append("wound up")

    async def third_is_the_last() -> None:
        async with aclosing(iterate_from_async(numbers, holds=lambda n: n % 2 == 0)) as items:
            assert [await anext(items) for _ in range(3)] == [0, 1, 2]
            log.append("has three")

    iterator = iterate_from_sync(numbers, holds=lambda n: n % 2 == 0)
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    log.append("has three")
    iterator.close()
    asyncio.run(third_is_the_last())
    assert log == 2 * ["makes 0", "makes 1", "makes 2", "has three", "wound up"]


def test_an_error_in_an_iteration_reaches_the_caller_after_its_items() -> None:
    async def two_then_fail() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise ValueError("third")

    iterator = iterate_from_sync(two_then_fail)
    assert [next(iterator), next(iterator)] == [1, 2]
    with pytest.raises(ValueError, match="third"):
        next(iterator)


def test_a_running_write_is_cancelled_once_and_completes() -> None:
    cancellations = 0
    started, written = threading.Event(), threading.Event()

    async def write() -> None:
        started.set()
        await asyncio.sleep(0.05)
        written.set()

    async def writing() -> AsyncIterator[int]:
        nonlocal cancellations
        yield 0
        work = asyncio.ensure_future(write())
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                cancellations += 1

    iterator = iterate_from_sync(writing)
    next(iterator)
    assert started.wait(LONG_TIMEOUT_S)
    iterator.close()
    assert written.is_set()
    assert cancellations == 1


def test_a_base_exception_ends_only_its_own_call() -> None:
    class Died(BaseException):
        """Stands for a signal that kills the process."""

    async def die() -> None:
        raise Died

    with pytest.raises(Died):
        call_from_sync(die)
    assert call_from_sync(_read_mark) == "unset"


def test_all_callers_share_one_background_loop() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def loops() -> AsyncIterator[asyncio.AbstractEventLoop]:
        yield asyncio.get_running_loop()

    async def elsewhere() -> list[asyncio.AbstractEventLoop]:
        return [each async for each in iterate_from_async(loops)]

    used_loops = {call_from_sync(loop), *iterate_from_sync(loops), *asyncio.run(elsewhere())}
    assert len(used_loops) == 1

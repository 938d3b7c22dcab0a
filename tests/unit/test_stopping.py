"""Stop requests: the first lets running calls finish, the second cancels them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from moot.calls import concurrency
from moot.calls.concurrency import drain, sleep_until_stop, stop
from moot.calls.model_calls import ModelCall, Reply
from moot.cli.running import handle_sigterm_as_interrupt
from moot.config import DebateConfig
from moot.config.boundary import Permissions
from moot.runtime.environment import Environment
from moot.runtime.run_node import EffectHandler, JournalPosition
from moot.state.entries import EntryUsage
from moot.storage.records import open_records
from tests.support.waiting import LONG_TIMEOUT_S


def _cancel_after(requests: int, *, twice: bool = False, ends: bool = True) -> str:
    """Cancel a running call as LangGraph does after this many stop requests; return its result.

    The call ends after the cancellations, or, unless `ends`, never.
    """

    async def scenario() -> str:
        begun, over = asyncio.Event(), asyncio.Event()

        async def call() -> str:
            begun.set()
            await over.wait()
            return "paid"

        waiting = asyncio.create_task(drain(call()))
        await begun.wait()
        stop.times = requests
        for _ in range(2):
            waiting.cancel()
            await asyncio.sleep(0)
        if twice:
            stop.times += 1
        if ends:
            over.set()
        await asyncio.wait([waiting], timeout=LONG_TIMEOUT_S)
        assert waiting.done()
        return await waiting

    return asyncio.run(scenario())


def test_a_running_call_finishes_after_the_first_stop_request() -> None:
    assert _cancel_after(1) == "paid"


@pytest.mark.parametrize(("requests", "twice"), [(0, False), (2, False), (1, True)])
def test_a_call_is_cancelled_unless_exactly_one_stop_is_requested(requests: int, twice: bool) -> None:
    with pytest.raises(asyncio.CancelledError):
        _cancel_after(requests, twice=twice, ends=False)


def test_a_call_that_finishes_while_it_is_cancelled_returns_its_reply() -> None:
    async def scenario() -> str:
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def call() -> str:
            return await reply

        waiting = asyncio.create_task(drain(call()))
        await asyncio.sleep(0.02)
        reply.set_result("paid")
        waiting.cancel()  # in the same cycle of the event loop
        await asyncio.sleep(0)
        waiting.cancel()
        return await waiting

    assert asyncio.run(scenario()) == "paid"


def test_a_received_reply_is_stored_although_its_run_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "blockbuster", sys)  # database calls use worker threads
    records, config = open_records(str(tmp_path / "m.sqlite")), DebateConfig()
    spend = records.budgets.spend

    def spend_slowly(debate: str, usage: EntryUsage) -> None:
        time.sleep(0.2)
        spend(debate, usage)

    monkeypatch.setattr(records.budgets, "spend", spend_slowly)
    call = ModelCall("summary", "offline", ({"role": "user", "content": "Sum up."},), 99)

    async def scenario() -> None:
        received = asyncio.Event()

        async def complete(*_: object, **__: object) -> Reply:
            received.set()
            return Reply(text="paid", usage={"prompt_tokens": 9})

        position = JournalPosition(records, "d1", 3, "turn", "c1")
        handler = EffectHandler(Environment(complete=complete), Permissions.of_operator(config), position)
        running = asyncio.create_task(handler.call_models([call]))
        await asyncio.wait_for(received.wait(), LONG_TIMEOUT_S)
        for _ in range(2):
            await asyncio.sleep(0.05)
            running.cancel()
        await asyncio.wait([running])

    asyncio.run(scenario())
    assert records.sql.execute("SELECT count(*) FROM moot_journal") == [(1,)]
    records.close()


def test_shielded_work_finishes_and_the_cancellation_is_raised_afterwards() -> None:
    async def scenario() -> list[str]:
        begun, release, finished = asyncio.Event(), asyncio.Event(), list[str]()

        async def work() -> None:
            begun.set()
            await release.wait()
            finished.append("work")

        running = asyncio.create_task(concurrency.shield(work()))
        await begun.wait()
        for _ in range(2):  # LangGraph cancels a node twice
            running.cancel()
            await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        return finished

    assert asyncio.run(scenario()) == ["work"]


def test_a_call_is_cancelled_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "GRACE_S", 0.05)
    with pytest.raises(asyncio.CancelledError):
        _cancel_after(1, ends=False)


def test_a_stop_request_ends_a_wait() -> None:
    async def scenario() -> None:
        wait = asyncio.create_task(sleep_until_stop(60))
        await asyncio.sleep(0.02)
        assert not wait.done()
        stop.times = 1
        await asyncio.wait_for(wait, 30)  # a wait of 60 s that does not end is a `TimeoutError`

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())


def test_stop_signals_are_counted_and_announced_once(capfd: pytest.CaptureFixture[str]) -> None:
    former = signal.getsignal(signal.SIGINT)
    with handle_sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)  # the second signal raises nothing, so that cleanup finishes
        assert stop.times == 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is former
    assert capfd.readouterr().err.count("running calls get 30 s to finish") == 1

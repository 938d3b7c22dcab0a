"""Stop requests: the first lets running calls finish, the second cancels them."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from moot.calls import effects
from moot.calls.effects import drain, sleep_until_stop, stop
from moot.cli.running import handle_sigterm_as_interrupt


async def _call(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "paid"


def _cancel_after(requests: int, *, twice: bool = False, takes_s: float = 0.3) -> str:
    """Cancel a running call as LangGraph does after this many stop requests; return its result."""

    async def scenario() -> str:
        waiting = asyncio.create_task(drain(_call(takes_s)))
        await asyncio.sleep(0.02)
        stop.times = requests
        waiting.cancel()
        await asyncio.sleep(0.02)
        waiting.cancel()
        if twice:
            stop.times += 1
        return await waiting

    return asyncio.run(scenario())


def test_a_running_call_finishes_after_the_first_stop_request() -> None:
    assert _cancel_after(1) == "paid"


@pytest.mark.parametrize(("requests", "twice"), [(0, False), (2, False), (1, True)])
def test_a_call_is_cancelled_unless_exactly_one_stop_is_requested(requests: int, twice: bool) -> None:
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        _cancel_after(requests, twice=twice, takes_s=20)
    assert time.monotonic() - began < 10


def test_a_call_is_cancelled_after_the_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "GRACE_S", 0.05)
    with pytest.raises(asyncio.CancelledError):
        _cancel_after(1)


def test_a_stop_request_ends_a_wait() -> None:
    async def scenario() -> None:
        wait = asyncio.create_task(sleep_until_stop(60))
        await asyncio.sleep(0.02)
        assert not wait.done()
        stop.times = 1
        await wait

    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scenario())
    assert time.monotonic() - began < 10


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

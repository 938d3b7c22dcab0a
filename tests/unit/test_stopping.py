"""Stop requests: the first lets running calls finish, the second cancels them."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from moot.calls import effects
from moot.calls.effects import drain, stop
from moot.cli.running import handle_sigterm_as_interrupt


async def _answer(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "paid"


def _cancelled_after(asked: int, *, twice: bool = False, takes_s: float = 0.3) -> str:
    """Cancel a call under way as LangGraph does, after so many requests to stop; return what it came to."""

    async def scenario() -> str:
        waiting = asyncio.create_task(drain(_answer(takes_s)))
        await asyncio.sleep(0.02)
        stop.times = asked
        waiting.cancel()
        await asyncio.sleep(0.02)
        waiting.cancel()
        if twice:
            stop.times += 1
        return await waiting

    return asyncio.run(scenario())


def test_a_call_under_way_lands_after_the_first_request() -> None:
    assert _cancelled_after(1) == "paid"


@pytest.mark.parametrize(("asked", "twice"), [(0, False), (2, False), (1, True)])
def test_a_call_is_cut_off_where_nobody_waits_for_it(asked: int, twice: bool) -> None:
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        _cancelled_after(asked, twice=twice, takes_s=20)
    assert time.monotonic() - began < 10


def test_a_call_that_never_ends_is_cut_off_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "GRACE_S", 0.05)
    with pytest.raises(asyncio.CancelledError):
        _cancelled_after(1)


def test_signals_are_counted_and_said(capfd: pytest.CaptureFixture[str]) -> None:
    former = signal.getsignal(signal.SIGINT)
    with handle_sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)  # the second lets what winds up wind up
        assert stop.times == 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is former
    assert capfd.readouterr().err.count("running calls get 30 s to finish") == 1

"""Estimates of what a debate costs, for the form of the live page."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

from moot.api import Debate, DebateConfig
from moot.calls.concurrency import run_in_thread
from moot.debates.dry_run import estimate, expected_cost
from moot.protocols.registry import turns_planned
from moot.state.entries import JsonObject
from moot.state.errors import InputError

PLAN_TIME_S = 20.0
"""Maximum time in seconds to spend on estimating one debate's cost."""
PLAN_WAIT_S = 5.0
"""Maximum time in seconds that an estimate waits for other estimates."""
LONG_PLAN = 1000
"""Size from which an estimate counts as long, measured as debaters times turns. On one core, 10 debaters with
60 turns take 2.5 s, and 2 debaters with 1,000 turns 5.4 s."""
LONG_CLAIMS = 200
"""Number of turns from which an estimate of the cost of finding claims counts as long. On a busy core, 100
messages took 2.6 s, and 1,000 messages 15.7 s."""
DISCONNECT_POLL_S = 0.25
"""Seconds between checks whether the client that asked for an estimate is still connected."""


class PlanCheck:
    """Check that stops a slow or abandoned estimate.

    An estimate is abandoned if its client has disconnected.
    """

    def __init__(self) -> None:
        self.gone = False
        """True if nobody waits for the estimate any more."""
        self._until = time.monotonic() + PLAN_TIME_S

    def __call__(self) -> None:
        """Raise an error if the estimate must stop.

        Raises:
            InputError: The client has disconnected, or the time is up.
        """
        if self.gone:
            raise InputError("the estimate was stopped because the client disconnected")
        if time.monotonic() > self._until:
            raise InputError(
                f"the cost of this debate cannot be estimated within {PLAN_TIME_S:g} s: use fewer debaters "
                "or turns, or run `moot plan`"
            )


@asynccontextmanager
async def _slot(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    """Limit how many estimates run at the same time.

    A slot is held during an `async with` block.

    Raises:
        HTTPException: No slot becomes free in time.
    """
    try:
        await asyncio.wait_for(slots.acquire(), PLAN_WAIT_S)
    except TimeoutError:
        raise HTTPException(503, "the server is busy with other estimates: try again later") from None
    try:
        yield
    finally:
        slots.release()


class Estimates:
    """Estimates for the clients of a server. Long estimates cannot delay short ones."""

    def __init__(self) -> None:
        self._slots = {True: asyncio.Semaphore(1), False: asyncio.Semaphore(1)}
        """Held while a debate is estimated, by whether the debate is long."""

    async def plan(
        self,
        config: DebateConfig,
        documents: Sequence[Mapping[str, str]],
        is_disconnected: Callable[[], Awaitable[bool]],
    ) -> JsonObject:
        """Return an estimate of the calls, tokens and cost of a debate.

        Args:
            config: configuration of the debate.
            documents: background documents, each with `name` and `content`.
            is_disconnected: returns whether the client has disconnected, which stops the estimate.

        Raises:
            InputError: the debate cannot be estimated, or not in time.
            HTTPException: the server is busy with other estimates.
        """
        is_long = len(config.debaters) * (turns_planned(config) or LONG_PLAN) >= LONG_PLAN

        def plan(check: PlanCheck) -> JsonObject:
            planned = estimate(config, check, documents=documents)
            if planned is None:
                raise InputError(
                    f"the cost of a debate with protocol {config.protocol!r} cannot be estimated"
                )
            cost = expected_cost(planned, config)
            return {"calls": planned.calls, **({"unpriced": cost} if isinstance(cost, list) else cost)}

        return await self._in_time(plan, is_disconnected, is_long=is_long)

    async def claims(self, debate: Debate, is_disconnected: Callable[[], Awaitable[bool]]) -> JsonObject:
        """Return what finding a debate's claims costs, as `cost`. It is `None` if this is not possible.

        Raises:
            InputError: the cost cannot be estimated in time.
            HTTPException: the server is busy with other estimates.
        """
        is_long = debate.row.turns >= LONG_CLAIMS
        return await self._in_time(
            lambda check: {"cost": debate.cost_of_claims(check)}, is_disconnected, is_long=is_long
        )

    async def _in_time(
        self,
        work: Callable[[PlanCheck], JsonObject],
        is_disconnected: Callable[[], Awaitable[bool]],
        *,
        is_long: bool,
    ) -> JsonObject:
        """Make an estimate on a thread, and stop it if it is slow or its client disconnects."""
        async with _slot(self._slots[is_long]):
            check = PlanCheck()
            working = asyncio.create_task(run_in_thread(work, check))
            try:
                while not (await asyncio.wait({working}, timeout=DISCONNECT_POLL_S))[0]:
                    check.gone = check.gone or await is_disconnected()
            finally:
                check.gone = True  # ends the estimate if the server stops
            return await working

"""Concurrent runs of many debates in one process."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from moot.calls.event_loop import cancel_all, run_in_thread
from moot.debates.continuation import verdict_failed
from moot.runtime.background_loop import BATCH_LOOP, iterate_from_sync
from moot.state.config import DebateConfig
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, MootError

if TYPE_CHECKING:
    from moot.api import Debates
    from moot.debates.stored_debate import Debate


@dataclass(frozen=True)
class PlannedDebate:
    """A debate that `run_many` starts or resumes."""

    id: str
    """Unique name of the debate in the database, which a later run uses to find it."""
    topic: str
    config: DebateConfig
    documents: Sequence[Mapping[str, str]] = field(default=(), kw_only=True)
    """Background documents, each with `name` and `content`."""
    transcript: Sequence[Mapping[str, str]] = field(default=(), kw_only=True)
    """Initial transcript entries, each with `speaker` and `content`."""


def planned_name(prefix: str, config: DebateConfig, *facts: str) -> str:
    """Return a name for a planned debate. Equal facts and configurations result in the same name."""
    content = json.dumps([*facts, config.fingerprint()], ensure_ascii=False)
    return f"{prefix}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


P = TypeVar("P", bound=PlannedDebate)


def run_many(
    debates: Debates, planned: Sequence[P], workers: int, refuse: Callable[[], str] = str
) -> Iterator[tuple[P, str]]:
    """Start or resume debates, at most `workers` at a time, and skip finished debates.

    Each debate has its own id. Other processes may work on the same debates.

    Args:
        debates: The database.
        planned: The debates to run.
        workers: Maximum number of debates at a time.
        refuse: Function that returns why no further debate may start, `""` if one may.

    Yields:
        Each planned debate when it ends, with its error; `""` if it is finished. Closing the iterator
        pauses the running debates.
    """
    slots = asyncio.Semaphore(workers)

    async def run(each: P) -> tuple[P, str]:
        async with slots:
            try:
                if not (refusal := await run_in_thread(refuse)):
                    await _run(debates, each)
            except MootError as error:
                return each, str(error)
            return each, refusal

    async def run_all() -> AsyncIterator[tuple[P, str]]:
        running = [asyncio.create_task(run(each)) for each in planned]
        try:
            for ended in asyncio.as_completed(running):
                yield await ended
        finally:
            await cancel_all(running)

    return iterate_from_sync(run_all, BATCH_LOOP)


async def _run(debates: Debates, planned: PlannedDebate) -> None:
    debate = None
    try:
        debate = await run_in_thread(create_planned_debate, debates, planned)
        await run_until_done(debate)
    except DebateBusy:  # another process may just have finished it
        if debate is None or not await run_in_thread(is_judged, debate):
            raise


async def run_until_done(debate: Debate) -> None:
    """Run a debate to its end. A debate that is over and judged does not change."""
    if not await run_in_thread(is_judged, debate):
        async for _ in debate.astream(tokens=False):
            pass


def create_planned_debate(debates: Debates, planned: PlannedDebate) -> Debate:
    """Return a planned debate from the database, or create it if it does not exist.

    Raises:
        DebateBusy: Another process is creating it.
    """
    try:
        given = {"documents": planned.documents, "transcript": planned.transcript}
        return debates.start(planned.topic, planned.config, name=planned.id, **given)
    except DebateExists as exists:
        try:
            return debates.get(planned.id)
        except DebateNotFound:  # another process is creating it
            raise DebateBusy(str(exists)) from None


def is_judged(debate: Debate) -> bool:
    """Return True if a debate is over and judging did not fail."""
    return debate.is_over() and not verdict_failed(debate.state().values)

"""Many debates at the same time in one process, with shared clients; each goes on where it was."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from moot.graph.continuation import verdict_failed
from moot.nodes.driving.portal import MANY, iterate_from_sync
from moot.state.config import DebateConfig
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, MootError
from moot.state.event_loop import cancel_all, in_thread

if TYPE_CHECKING:
    from moot.graph.api import Debates
    from moot.graph.stored_debate import Debate


@dataclass(frozen=True)
class PlannedDebate:
    """A debate that is to be had, or has been begun."""

    id: str
    """Its name in the database, the same for the same debate: by it a later run finds it."""
    topic: str
    config: DebateConfig


def planned_name(start: str, config: DebateConfig, *facts: str) -> str:
    """Return the name of a debate that is to be had: the same for equal facts and configurations."""
    said = json.dumps([*facts, config.fingerprint()], ensure_ascii=False)
    return f"{start}-{hashlib.sha256(said.encode()).hexdigest()[:10]}"


P = TypeVar("P", bound=PlannedDebate)


def run_many(debates: Debates, planned: Sequence[P], workers: int) -> Iterator[tuple[P, str]]:
    """Begin or go on with debates, so many at a time; one that is over and judged is left as it is.

    Each has an id of its own; other processes may work on the same ones.

    Yields:
        Each as it ends, with why it is not over, `""` where it is. Who stops early pauses those under way.
    """
    free = asyncio.Semaphore(workers)

    async def run(each: P) -> tuple[P, str]:
        async with free:
            try:
                await _run(debates, each)
            except MootError as error:
                return each, str(error)
            return each, ""

    async def run_all() -> AsyncIterator[tuple[P, str]]:
        running = [asyncio.create_task(run(each)) for each in planned]
        try:
            for ended in asyncio.as_completed(running):
                yield await ended
        finally:
            await cancel_all(running)

    return iterate_from_sync(run_all, MANY)


async def _run(debates: Debates, planned: PlannedDebate) -> None:
    debate = None
    try:
        debate = await in_thread(begin_debate, debates, planned)
        await bring_to_end(debate)
    except DebateBusy:  # another process may have been about to end it
        if debate is None or not await in_thread(is_judged, debate):
            raise


async def bring_to_end(debate: Debate) -> None:
    """Go on with a debate until it is over; one that is over and judged is left as it is."""
    if not await in_thread(is_judged, debate):
        async for _ in debate.astream(tokens=False):
            pass


def begin_debate(debates: Debates, planned: PlannedDebate) -> Debate:
    """Return a planned debate, begun now or before.

    Raises:
        DebateBusy: another process is about to make it.
    """
    try:
        return debates.start(planned.topic, planned.config, name=planned.id)
    except DebateExists as exists:
        try:
            return debates.get(planned.id)
        except DebateNotFound:  # another process is about to make it
            raise DebateBusy(str(exists)) from None


def is_judged(debate: Debate) -> bool:
    """Return whether nothing is left to do with a debate."""
    return debate.is_over() and not verdict_failed(debate.state().values)

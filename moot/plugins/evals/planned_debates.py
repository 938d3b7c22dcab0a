"""Many debates that run at the same time, in one process or in several on one database."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from moot.api import Debate, Debates, is_judged, run_until_done
from moot.calls.concurrency import cancel_all, run_in_thread
from moot.config import DebateConfig
from moot.runtime.background_loop import BATCH_LOOP, iterate_from_sync
from moot.state.errors import DebateBusy, MootError


@dataclass(frozen=True)
class PlannedDebate:
    """A debate for `run_many` to start, or to resume if the database already contains the debate."""

    id: str
    """Unique name of the debate. Later runs use it to find the debate in the database."""
    topic: str
    config: DebateConfig
    documents: Sequence[Mapping[str, str]] = field(default=(), kw_only=True)
    """Background documents, each with `name` and `content`."""
    transcript: Sequence[Mapping[str, str]] = field(default=(), kw_only=True)
    """Initial transcript entries, each with `speaker` and `content`."""


def planned_name(prefix: str, config: DebateConfig, *facts: str) -> str:
    """Return a planned debate's name. Equal facts and configurations give the same name."""
    content = json.dumps([*facts, config.fingerprint()], ensure_ascii=False)
    return f"{prefix}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


P = TypeVar("P", bound=PlannedDebate)
T = TypeVar("T")
R = TypeVar("R")


def run_many(
    debates: Debates, planned: Sequence[P], workers: int, refuse: Callable[[], str] = str
) -> Iterator[tuple[P, str]]:
    """Run several debates at the same time, and yield each one when it ends.

    A debate that was interrupted continues, and a finished debate is not run again. At most `workers` debates
    run at the same time. Each debate has its own id. Other processes may work on the same debates.

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

    return iterate_as_completed(planned, run)


def iterate_as_completed(items: Sequence[T], work: Callable[[T], Coroutine[object, None, R]]) -> Iterator[R]:
    """Run an async function on all items at the same time, and yield each result when it is there."""

    async def run_all() -> AsyncIterator[R]:
        tasks = [asyncio.create_task(work(each)) for each in items]
        try:
            for future in asyncio.as_completed(tasks):
                yield await future
        finally:
            await cancel_all(tasks)

    return iterate_from_sync(run_all, BATCH_LOOP)


async def _run(debates: Debates, planned: PlannedDebate) -> None:
    debate = None
    try:
        debate = await run_in_thread(create_planned_debate, debates, planned)
        await run_until_done(debate)
    except DebateBusy:  # another process may just have finished it
        if debate is None or not await run_in_thread(is_judged, debate):
            raise


def create_planned_debate(debates: Debates, planned: PlannedDebate) -> Debate:
    """Create a planned debate or return it. While another process creates it: `DebateBusy`."""
    return debates.start(
        planned.topic,
        planned.config,
        name=planned.id,
        documents=planned.documents,
        transcript=planned.transcript,
        if_exists="resume",
    )

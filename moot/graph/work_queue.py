"""Which worker has which debate, where machines share a Postgres database: the queue is procrastinate's.

It says who is to run which debate, and no more. Where a debate stands, its checkpoints and its journal say,
and who may write it, its lease: a worker that was replaced learns it from the lease, whatever the queue says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from moot.graph.many import bring_to_end
from moot.nodes.driving.portal import MANY, call_from_sync, iterate_from_sync
from moot.state.errors import DebateBusy, ModelError, MootError, StorageError
from moot.state.event_loop import cancel_all, in_thread
from moot.state.plugins import extra
from moot.state.redaction import shown_url

with extra("queue", "a queue of debates"):
    from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
    from procrastinate import exceptions as queue_errors
    from procrastinate.job_context import AbortReason
    from procrastinate.jobs import Job as Entry

if TYPE_CHECKING:
    from moot.graph.api import Debates

QUEUE, TASK = "moot", "moot.debate"
SHOWN = ("doing", "todo", "failed")
HEARTBEAT_S = 5.0
"""Seconds between two signs of life of a worker."""
STALLED_S = 20.0
"""Seconds after which one that gave none is replaced; its leases, of 30 s, are over soon after."""
POLL_S = 1.0
"""Seconds between two looks for what waits: what was put back is not told, as what is new is."""
AGAIN_S = 5
"""Seconds until a debate that somebody else runs is looked at again."""
MOST_ATTEMPTS = 10
"""Attempts at a debate that a provider or the database fails: the last comes a little over four hours in."""


@dataclass(frozen=True)
class QueuedDebate:
    """A debate in the queue; one that is over is not there any more."""

    debate: str
    """Its id."""
    status: str
    """`doing`, `todo` or `failed`."""
    priority: int
    """The highest comes first."""
    attempts: int
    number: int
    """The queue's own."""


class _Again(BaseRetryStrategy):
    """Whether a debate that a worker did not bring to its end stays in the queue."""

    def get_retry_decision(self, *, exception: BaseException, job: Entry) -> RetryDecision | None:
        if isinstance(exception, asyncio.CancelledError):  # this worker was stopped
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, DebateBusy):
            return RetryDecision(retry_in={"seconds": AGAIN_S})
        passes = isinstance(exception, StorageError) or (
            isinstance(exception, ModelError) and exception.retryable
        )
        if passes and job.attempts < MOST_ATTEMPTS:
            return RetryDecision(retry_in={"seconds": 15 * 2**job.attempts})
        return None


class WorkQueue:
    """The queue of a Postgres database."""

    def __init__(self, url: str) -> None:
        self._url = url
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # who works says what came of it

    def add(self, debates: Sequence[str], priority: int | None = None) -> int:
        """Queue debates, by id; return how many had not been waiting, or running, in it.

        Args:
            debates: ids. One that failed keeps its place, one that waits gets the priority.
            priority: the highest comes first; `None` is what it had, 0 for a new one.
        """

        async def add() -> int:
            async with self._open() as app:
                await app.job_manager.delete_old_jobs(0, QUEUE, include_cancelled=True, include_aborted=True)
                return sum([await _put(app, debate, priority) for debate in debates])

        return call_from_sync(add)

    def entries(self) -> list[QueuedDebate]:
        """Return what runs, waits or failed, in the order in which it is taken."""

        async def entries() -> list[QueuedDebate]:
            async with self._open() as app:
                return [
                    QueuedDebate(str(each.lock), str(each.status), each.priority, each.attempts, each.id or 0)
                    for each in await app.job_manager.list_jobs_async(queue=QUEUE)
                    if each.status in SHOWN
                ]

        def turn(each: QueuedDebate) -> tuple[int, int, int]:
            return SHOWN.index(each.status), -each.priority, each.number

        return sorted(call_from_sync(entries), key=turn)

    def cancel(self, debate: str) -> bool:
        """Take a debate out, also from whoever runs it, which pauses it; return whether it was in it."""

        async def cancel() -> bool:
            async with self._open() as app:
                take_out = app.job_manager.cancel_job_by_id_async
                found = await _under_way(app, debate)
                return any([await take_out(each.id or 0, abort=True, delete_job=True) for each in found])

        return call_from_sync(cancel)

    def work(self, debates: Debates, workers: int, *, drain: bool = False) -> Iterator[tuple[str, str]]:
        """Run what is in the queue, so many at a time; with `drain` until it is empty.

        Yields:
            The id of each debate as its run ends, with why it is not over, `""` where it is. Who stops early
            pauses those under way, which stay in the queue.
        """
        return iterate_from_sync(lambda: self._run(debates, workers, drain=drain), MANY)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[App]:
        """Open the queue, making its tables where they are missing."""
        app = App(connector=PsycopgConnector(conninfo=self._url, min_size=1, max_size=4))
        try:
            async with app.open_async():
                if not await app.check_connection_async():
                    with suppress(queue_errors.ConnectorException):  # another process is about to
                        await app.schema_manager.apply_schema_async()
                    if not await app.check_connection_async():
                        raise StorageError("the queue's tables cannot be made in this database")
                yield app
        except queue_errors.ConnectorException as error:
            raise StorageError(f"the queue failed: {shown_url(str(error.__cause__ or error))}") from error

    async def _run(self, debates: Debates, workers: int, *, drain: bool) -> AsyncIterator[tuple[str, str]]:
        ended: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()

        async def run(context: JobContext, debate: str) -> None:
            """Bring a debate to its end, and tell what came of it."""
            try:
                await bring_to_end(await in_thread(debates.get, debate))
            except asyncio.CancelledError:
                if context.abort_reason() is not AbortReason.USER_REQUEST:
                    raise
                ended.put_nowait((debate, "cancelled"))
                raise queue_errors.JobAborted from None
            except MootError as error:
                ended.put_nowait((debate, str(error)))
                raise
            ended.put_nowait((debate, ""))

        async with self._open() as app:
            app.task(name=TASK, queue=QUEUE, retry=_Again(), pass_context=True)(run)
            lasting = [_work(app, workers), _rescue(app), *([_wait_until_empty(app)] if drain else [])]
            under_way = [asyncio.create_task(each) for each in lasting]
            for task in under_way:
                task.add_done_callback(lambda _: ended.put_nowait(None))
            try:
                while (each := await ended.get()) is not None:
                    yield each
                for task in under_way:
                    if task.done():
                        await task
            finally:
                await cancel_all(under_way)


async def _work(app: App, workers: int) -> None:
    """Work for ever, anew where the connection is lost, or others took the worker for dead."""
    while True:
        with suppress(queue_errors.ConnectorException):
            await app.run_worker_async(
                queues=[QUEUE],
                concurrency=workers,
                shutdown_graceful_timeout=0,  # a debate that is stopped goes on where it was
                fetch_job_polling_interval=POLL_S,
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=HEARTBEAT_S,
                stalled_worker_timeout=STALLED_S,
            )
        await asyncio.sleep(1)


async def _wait_until_empty(app: App) -> None:
    """Wait until nothing runs or waits."""
    while True:
        await asyncio.sleep(0.5)
        if not await _under_way(app):
            return


async def _rescue(app: App) -> None:
    """Put back, over and over, what workers had that died or stand still."""
    while True:
        with suppress(queue_errors.ConnectorException):  # another worker did it, or the next round does
            stalled = app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_S)
            for each in await stalled:
                await app.job_manager.retry_job(each)
        await asyncio.sleep(HEARTBEAT_S)


async def _under_way(app: App, debate: str | None = None) -> list[Entry]:
    """Return what waits or runs of one debate or in all."""
    entries = await app.job_manager.list_jobs_async(queue=QUEUE, lock=debate)
    return [each for each in entries if each.status in ("todo", "doing")]


async def _put(app: App, debate: str, priority: int | None) -> bool:
    """Queue a debate; return whether it was not waiting or running."""
    manager, known = app.job_manager, await _under_way(app, debate)
    if not known:
        entries = await manager.list_jobs_async(queue=QUEUE, lock=debate, status="failed")
        if failed := [each.id or 0 for each in entries]:
            await manager.retry_job_by_id_async(failed[0], datetime.now(UTC), priority)
            return True
    elif priority is None or not await manager.cancel_job_by_id_async(known[0].id or 0, delete_job=True):
        return False
    deferrer = app.configure_task(
        TASK, queue=QUEUE, lock=debate, queueing_lock=debate, priority=priority or 0
    )
    with suppress(queue_errors.AlreadyEnqueued):  # by somebody else at this moment
        await deferrer.defer_async(debate=debate)
    return not known

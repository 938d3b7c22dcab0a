"""Queue of debates in a shared Postgres database, for workers on several machines; uses procrastinate.

The queue decides which worker runs which debate. The debate's checkpoints and journal hold its progress, and
its lease decides who may write it. A worker that was replaced stops because it loses the lease.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from moot.api import run_until_done
from moot.calls.concurrency import cancel_all, run_in_thread
from moot.runtime.background_loop import BATCH_LOOP, call_from_sync, iterate_from_sync
from moot.state.errors import DebateBusy, ModelError, MootError, StorageError
from moot.state.settings import redact_urls, require_extra

with require_extra("queue", "a queue of debates"):
    from procrastinate import (
        App,
        BaseRetryStrategy,
        JobContext,
        PsycopgConnector,
        RetryDecision,
        exceptions as queue_errors,
    )
    from procrastinate.job_context import AbortReason
    from procrastinate.jobs import Job as Entry
    from procrastinate.worker import Worker
    from psycopg import AsyncConnection, OperationalError
    from psycopg.rows import DictRow

    from moot.plugins.postgres import postgres

if TYPE_CHECKING:
    from moot.api import Debates

QUEUE, TASK = "moot", "moot.debate"
LOST = (queue_errors.ConnectorException, OperationalError)
"""Errors after which a worker waits for the server. The library reports some as errors of psycopg."""
SHOWN = ("doing", "todo", "failed")
HEARTBEAT_S = 5.0
"""Number of seconds between a worker's heartbeats."""
STALLED_S = 20.0
"""Number of seconds after which a silent worker is considered dead. The worker's leases of 30 s expire soon
after."""
POLL_S = 1.0
"""Number of seconds between polls of the queue. Polling is needed because retried debates send no
notification."""
RETRY_AFTER_S = 5
"""Number of seconds to wait for a debate that another process is running."""
MAX_ATTEMPTS = 10
"""Maximum number of times to run a debate that fails with temporary errors. The last attempt follows after
about 4 hours."""


@dataclass(frozen=True)
class QueuedDebate:
    """Debate in the work queue. Finished debates are removed from the queue."""

    debate: str
    """Id of the queued debate."""
    status: str
    """Status of the debate in the queue, one of `todo`, `doing` and `failed`."""
    priority: int
    """Priority of the debate in the queue. Debates with higher numbers run first."""
    attempts: int
    number: int
    """Id of the queue entry in the job queue library `procrastinate`."""


class _RetryStrategy(BaseRetryStrategy):
    """Strategy for retrying debates whose run failed or was interrupted."""

    def get_retry_decision(self, *, exception: BaseException, job: Entry) -> RetryDecision | None:
        if isinstance(exception, asyncio.CancelledError):  # the worker is shutting down
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, DebateBusy):
            return RetryDecision(retry_in={"seconds": RETRY_AFTER_S})
        temporary = isinstance(exception, StorageError) or (
            isinstance(exception, ModelError) and exception.retryable
        )
        if temporary and job.attempts < MAX_ATTEMPTS:
            return RetryDecision(retry_in={"seconds": 15 * 2**job.attempts})
        return None


class WorkQueue:
    """Queue of debates in a Postgres database, shared by several worker processes."""

    def __init__(self, url: str) -> None:
        self._url = url
        logging.getLogger("procrastinate").setLevel(logging.CRITICAL)  # `work` yields the errors

    def add(self, debates: Sequence[str], priority: int | None = None) -> int:
        """Add debates to the queue, and return the number of new entries.

        Args:
            debates: Ids of the debates. A failed debate is queued again, and a waiting debate gets the new
            priority.
            priority: Debates with higher numbers run first. `None`: the previous priority, 0 for a new entry.
        """

        async def add() -> int:
            async with self._open() as app:
                await app.job_manager.delete_old_jobs(0, QUEUE, include_cancelled=True, include_aborted=True)
                return sum([await _put(app, debate, priority) for debate in debates])

        return call_from_sync(add)

    def entries(self) -> list[QueuedDebate]:
        """Return the queued debates, ordered by status and priority."""

        async def entries() -> list[QueuedDebate]:
            async with self._open() as app:
                return [
                    QueuedDebate(str(each.lock), str(each.status), each.priority, each.attempts, each.id or 0)
                    for each in await app.job_manager.list_jobs_async(queue=QUEUE)
                    if each.status in SHOWN
                ]

        def order(each: QueuedDebate) -> tuple[int, int, int]:
            return SHOWN.index(each.status), -each.priority, each.number

        return sorted(call_from_sync(entries), key=order)

    def cancel(self, debate: str) -> bool:
        """Remove a debate from the queue, and pause it if it is running.

        Returns:
            True if the debate was in the queue.
        """

        async def cancel() -> bool:
            async with self._open() as app:
                cancel_job = app.job_manager.cancel_job_by_id_async
                entries = await _under_way(app, debate)
                return any([await cancel_job(each.id or 0, abort=True, delete_job=True) for each in entries])

        return call_from_sync(cancel)

    def work(self, debates: Debates, workers: int, *, drain: bool = False) -> Iterator[tuple[str, str]]:
        """Run queued debates concurrently, and yield the result of each run.

        At most `workers` run at the same time.

        Args:
            debates: The database.
            workers: Maximum number of debates at a time.
            drain: Stop when the queue is empty.

        Yields:
            The id of each debate when its run ends, with its error; `""` if it is finished. Closing the
            iterator pauses the running debates, which stay in the queue.
        """
        return iterate_from_sync(lambda: self._run(debates, workers, drain=drain), BATCH_LOOP)

    @asynccontextmanager
    async def _open(self, *, waits: bool = False) -> AsyncIterator[App]:
        """Open the queue, and create its database tables if necessary.

        With `waits`, wait for a server that is starting.
        """
        connector = PsycopgConnector(
            conninfo=postgres.address_with_timeouts(self._url),
            min_size=1,
            max_size=4,
            configure=_limit_idle_transactions,
        )
        app, pauses = App(connector=connector), postgres.reconnect_pauses() if waits else iter(())
        try:
            async with app.open_async():
                while True:
                    try:
                        await _create_tables(app)
                        break
                    except LOST:
                        if (pause := next(pauses, None)) is None or _is_cancelled():
                            raise
                    await asyncio.sleep(pause)
                yield app
        except LOST as error:
            raise StorageError(f"the queue failed: {redact_urls(str(error.__cause__ or error))}") from error

    async def _run(self, debates: Debates, workers: int, *, drain: bool) -> AsyncIterator[tuple[str, str]]:
        ended: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue()

        async def run(context: JobContext, debate: str) -> None:
            """Run a queued debate to its end.

            Its id and any error are put into the queue `ended`.
            """
            task = cast("asyncio.Task[None]", asyncio.current_task())
            task.set_name(debate)
            task.add_done_callback(_retrieve_error)
            try:
                with postgres.server_errors():
                    await run_until_done(await run_in_thread(debates.get, debate))
            except asyncio.CancelledError:
                if context.abort_reason() is not AbortReason.USER_REQUEST:
                    raise
                ended.put_nowait((debate, "cancelled"))
                raise queue_errors.JobAborted from None
            except MootError as error:
                ended.put_nowait((debate, str(error)))
                raise
            ended.put_nowait((debate, ""))

        async with self._open(waits=True) as app:
            app.task(name=TASK, queue=QUEUE, retry=_RetryStrategy(), pass_context=True)(run)
            current, missed = list[Worker](), set[int | None]()
            coroutines = [
                _repeat(lambda: _work(app, workers, current), 1),
                _repeat(lambda: _rescue(app, current, missed), HEARTBEAT_S),
            ]
            if drain:
                coroutines.append(_repeat(lambda: _is_empty(app), 0.5))
            under_way = [asyncio.create_task(each) for each in coroutines]
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


async def _create_tables(app: App) -> None:
    """Create the queue's tables if they do not exist."""
    if not await app.check_connection_async():
        with suppress(queue_errors.ConnectorException):  # another process creates them
            await app.schema_manager.apply_schema_async()
        if not await app.check_connection_async():
            raise StorageError(
                "the queue's tables cannot be created in this database: check that the "
                "database user may create tables"
            )


async def _limit_idle_transactions(connection: AsyncConnection[DictRow]) -> None:
    """Make the database end transactions that stay idle, such as those of a suspended worker."""
    await connection.execute(postgres.IDLE_TIMEOUT)
    await connection.commit()


def _is_cancelled() -> bool:
    """Return True if the current task was cancelled, even if an error replaced its cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _repeat(work: Callable[[], Awaitable[object]], pause_s: float) -> None:
    """Repeat some work until it returns True or the task is cancelled, also while the server is away."""
    while True:
        with suppress(*LOST):
            if await work():
                return
        if _is_cancelled():
            raise asyncio.CancelledError
        await asyncio.sleep(pause_s)


async def _work(app: App, workers: int, current: list[Worker]) -> None:
    """Run a queue worker until the database connection is lost. `current` holds the worker that runs."""
    current[:] = [
        Worker(
            app,
            queues=[QUEUE],
            concurrency=workers,
            shutdown_graceful_timeout=0,  # a stopped debate resumes later
            fetch_job_polling_interval=POLL_S,
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_S,
            stalled_worker_timeout=STALLED_S,
        )
    ]
    await current[0].run()  # type: ignore[no-untyped-call]  # of the library


async def _is_empty(app: App) -> bool:
    """Return True if the queue is empty and no debate is running."""
    return not await _under_way(app)


def _retrieve_error(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a task, which asyncio would log, for example after a lost connection."""
    if not task.cancelled():
        task.exception()


async def _rescue(app: App, current: Sequence[Worker], missed: set[int | None]) -> None:
    """Return to the queue the debates that are assigned and that nobody runs.

    These are the debates of dead workers, and those whose assignment or end this worker missed because the
    connection was lost. The latter must be found twice: between two queries, each debate is missed for a
    moment. `missed` keeps the entries that were found once.
    """
    abandoned = [*await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_S)]
    for worker in current:
        jobs = await app.job_manager.list_jobs_async(
            queue=QUEUE, status="doing", worker_id=worker.worker_id or 0
        )
        running = {task.get_name() for task in asyncio.all_tasks()}
        unknown = [each for each in jobs if each.lock not in running]
        abandoned += [each for each in unknown if each.id in missed]
        missed.clear()
        missed.update(each.id for each in unknown)
    for each in abandoned:
        await app.job_manager.retry_job(each)


async def _under_way(app: App, debate: str | None = None) -> list[Entry]:
    """Return all queue entries that are waiting or running.

    If `debate` is set, return only the entries of this debate.
    """
    entries = await app.job_manager.list_jobs_async(queue=QUEUE, lock=debate)
    return [each for each in entries if each.status in ("todo", "doing")]


async def _put(app: App, debate: str, priority: int | None) -> bool:
    """Add a debate to the queue, and return True if a new entry was created."""
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
    with suppress(queue_errors.AlreadyEnqueued):  # by another process at the same time
        await deferrer.defer_async(debate=debate)
    return not known

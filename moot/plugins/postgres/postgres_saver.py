"""Checkpointer for Postgres with Moot's records. This module needs the `postgres` extra."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncConnection, AsyncCursor, Error
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from typing_extensions import override

from moot.calls.concurrency import run_in_thread
from moot.plugins.postgres import postgres
from moot.state.errors import StorageError
from moot.state.langgraph_internals import PostgresCursorHook
from moot.storage.checked_saver import CheckedSaver
from moot.storage.records import Records
from moot.storage.servers import Permit

T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
Cursor = AbstractAsyncContextManager[AsyncCursor[DictRow]]

_permit: ContextVar[Permit | None] = ContextVar("permit", default=None)
"""Permit that is checked before the current task writes to the database. `None`: writes are not checked."""


def open_pool(url: str) -> Pool:
    """Return a connection pool that checks each connection before use and replaces lost connections."""
    return AsyncConnectionPool(
        postgres.address_with_timeouts(url),
        min_size=1,
        max_size=2,
        open=False,
        configure=_configure,
        check=AsyncConnectionPool.check_connection,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )


async def _configure(connection: AsyncConnection[DictRow]) -> None:
    await connection.execute(postgres.IDLE_TIMEOUT)


async def is_migrated(connection: AsyncConnection[DictRow], table: str, migrations: Sequence[object]) -> bool:
    """Return True if all of LangGraph's migrations have run in the database.

    LangGraph's `setup` then has nothing to create.

    Args:
        connection: connection to the database.
        table: table in which LangGraph records the migrations that have run.
        migrations: all migrations of the installed version of LangGraph.
    """
    cursor = await connection.execute("SELECT to_regclass(%s) IS NOT NULL AS created", (table,))
    if not (row := await cursor.fetchone()) or not row["created"]:
        return False
    cursor = await connection.execute(f"SELECT max(v) AS last FROM {table}".encode())  # noqa: S608  # of LangGraph
    row = await cursor.fetchone()
    return row is not None and row["last"] is not None and row["last"] >= len(migrations) - 1


class MootPostgresSaver(CheckedSaver, PostgresCursorHook, AsyncPostgresSaver):  # type: ignore[misc]  # `_cursor`
    """Postgres checkpointer with Moot's tables, leases and support for the LangGraph server."""

    def __init__(self, pool: Pool, serde: SerializerProtocol, records: Records) -> None:
        super().__init__(pool, serde=serde)
        self.records = records

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = partial(super().aput, config, checkpoint, metadata, new_versions)
        saved = await self._repeat_while_restarting(config, put)
        if "config" in checkpoint["channel_versions"] and metadata.get("step", 0) <= 1:
            await run_in_thread(self.records.catalogue.note_begun, str(config["configurable"]["thread_id"]))
        return saved

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        put = partial(super().aput_writes, config, writes, task_id, task_path)
        await self._repeat_while_restarting(config, put)

    async def _repeat_while_restarting(self, config: RunnableConfig, put: Callable[[], Awaitable[T]]) -> T:
        """Write a checkpoint, retrying while the database server restarts. Both writes are idempotent."""
        pauses = postgres.reconnect_pauses()
        while True:
            try:
                with self._permit_writes(config):
                    return await put()
            except StorageError as error:
                pause = next(pauses, None) if postgres.is_connection_lost(error.__cause__) else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    @contextmanager
    def _permit_writes(self, config: RunnableConfig) -> Iterator[None]:
        token = _permit.set(self.records.leases.permit_in(config))
        try:
            yield
        finally:
            _permit.reset(token)

    @override
    @asynccontextmanager
    async def open_cursor(
        self, original: Callable[..., Cursor], pipeline: bool = False
    ) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a database cursor if the run may write.

        Otherwise raise an error. Without a permit, nothing is checked.

        With a permit, all writes form one transaction.
        """
        permit, refused = _permit.get(), None
        try:
            if permit is None:
                async with original(pipeline=pipeline) as cursor:
                    yield cursor
                return
            async with original() as cursor, cursor.connection.transaction():
                statement, parameters = permit.statement
                await cursor.execute(f"{statement} FOR SHARE".replace("?", "%s").encode(), parameters)
                refused = [tuple(row.values()) for row in await cursor.fetchall()]
                if permit.allows(refused):
                    yield cursor
                    return
        except Error as error:
            raise postgres.server_error(error) from error
        raise await run_in_thread(permit.refusal, refused)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a debate's checkpoints and all of its rows in Moot's tables."""
        await run_in_thread(self.records.forget, str(thread_id))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints and pending writes of LangGraph server runs."""
        doomed = [str(run) for run in run_ids]
        async with self.cursor(pipeline=True) as cursor:
            await cursor.execute(
                "DELETE FROM checkpoint_writes AS w USING checkpoints AS c WHERE w.thread_id = c.thread_id "
                "AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id "
                "AND c.metadata ->> 'run_id' = ANY(%s)",
                (doomed,),
            )
            await cursor.execute("DELETE FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s)", (doomed,))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints, blobs and pending writes from one thread to another."""
        source, target = str(source_thread_id), str(target_thread_id)
        async with self.cursor() as cursor:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                await cursor.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = %s "
                    "AND table_schema = current_schema() AND column_name <> 'thread_id'",
                    (table,),
                )
                names = ", ".join(row["column_name"] for row in await cursor.fetchall())
                await cursor.execute(
                    f"INSERT INTO {table} (thread_id, {names}) "  # noqa: S608  # names of the table itself
                    f"SELECT %s, {names} FROM {table} WHERE thread_id = %s ON CONFLICT DO NOTHING",
                    (target, source),
                )
        await run_in_thread(self.records.copy, source, target)

"""The checkpointer for Postgres, with Moot's records; imported only where the `postgres` extra is wanted."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import anyio.to_thread
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncConnection, AsyncCursor, Error
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from typing_extensions import override

from moot.state.postgres import STANDSTILL, server_error
from moot.state.records import Records
from moot.state.sql import Permit

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

_permit: ContextVar[Permit | None] = ContextVar("permit", default=None)
"""What the transaction has to check that this task is about to write."""


def open_pool(url: str) -> Pool:
    """Return a pool that tries each connection before it is used, and replaces one that was lost."""
    return AsyncConnectionPool(
        url,
        min_size=1,
        max_size=2,
        open=False,
        configure=_configure,
        check=AsyncConnectionPool.check_connection,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )


async def _configure(connection: AsyncConnection[DictRow]) -> None:
    await connection.execute(STANDSTILL)


class MootPostgresSaver(AsyncPostgresSaver):
    """`AsyncPostgresSaver` with Moot's records, leases, and what the LangGraph server asks besides."""

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
        with self._permit_writes(config):
            return await super().aput(config, checkpoint, metadata, new_versions)

    @override
    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        with self._permit_writes(config):
            await super().aput_writes(config, writes, task_id, task_path)

    @contextmanager
    def _permit_writes(self, config: RunnableConfig) -> Iterator[None]:
        token = _permit.set(self.records.leases.permit_in(config))
        try:
            yield
        finally:
            _permit.reset(token)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a cursor; what is written with a permit is one transaction, if that is allowed."""
        permit, refused = _permit.get(), None
        try:
            if permit is None:
                async with super()._cursor(pipeline=pipeline) as cursor:
                    yield cursor
                return
            async with super()._cursor() as cursor, cursor.connection.transaction():
                statement, parameters = permit.statement
                await cursor.execute(f"{statement} FOR SHARE".replace("?", "%s").encode(), parameters)
                refused = [tuple(row.values()) for row in await cursor.fetchall()]
                if permit.allows(refused):
                    yield cursor
                    return
        except Error as error:
            raise server_error(error) from error
        raise await anyio.to_thread.run_sync(permit.refusal, refused)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a debate's checkpoints, journal and place in the catalogue."""
        await super().adelete_thread(thread_id)
        await anyio.to_thread.run_sync(self.records.forget, str(thread_id))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints of these server runs with their writes."""
        doomed = [str(run) for run in run_ids]
        async with self._cursor(pipeline=True) as cursor:
            await cursor.execute(
                "DELETE FROM checkpoint_writes AS w USING checkpoints AS c WHERE w.thread_id = c.thread_id "
                "AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id "
                "AND c.metadata ->> 'run_id' = ANY(%s)",
                (doomed,),
            )
            await cursor.execute("DELETE FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s)", (doomed,))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's checkpoints, blobs and writes to another thread."""
        source, target = str(source_thread_id), str(target_thread_id)
        async with self._cursor() as cursor:
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
        await anyio.to_thread.run_sync(self.records.copy, source, target)

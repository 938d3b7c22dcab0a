"""Checkpointers for SQLite (the default) and Postgres, with Moot's own tables in the same database."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint import base
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore, Op, Result

from moot.calls.concurrency import run_in_thread, run_inline, shielded
from moot.state.errors import StorageError
from moot.state.langgraph_internals import close_store
from moot.state.settings import database_url, is_postgres, sqlite_path
from moot.storage.checked_saver import CheckedSaver
from moot.storage.records import Records, open_records
from moot.storage.servers import server_of
from moot.storage.sqlite import BUSY_TIMEOUT_S, SqliteSql, Statement


class LazyStore(BaseStore):
    """Store in the checkpoint database, opened on first use and closed by the given exit stack."""

    def __init__(self, url: str | None, stack: AsyncExitStack) -> None:
        self._url, self._stack = url or database_url(), stack
        self._inner: BaseStore | None = None
        self._opening = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Raise `NotImplementedError`, because this store is only asynchronous."""
        raise NotImplementedError("this store is only asynchronous: use methods such as `aput` and `asearch`")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute several store operations in one batch."""
        async with self._opening:
            if self._inner is None:
                self._inner = await self._open()
        return await self._inner.abatch(ops)

    async def _open(self) -> BaseStore:
        if is_postgres(self._url):
            return await self._stack.enter_async_context(server_of(self._url).open_store(self._url))
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        opening = aiosqlite.connect(sqlite_path(self._url), timeout=30, isolation_level=None)
        connection = await self._stack.enter_async_context(opening)
        await connection.execute("PRAGMA journal_mode=WAL")
        store = AsyncSqliteStore(connection)
        self._stack.push_async_callback(close_store, store)
        await store.setup()
        return store


COMPRESS_FROM = 512
"""Minimum size in bytes of a serialized value that Moot compresses. Compression shrinks snapshots to a
fifth, but hardly shrinks small writes."""

MAX_INFLATED = 2**30
"""Maximum size in bytes of a value after decompression. Snapshots of ten thousand turns take about ten
million bytes."""

_PREFIX = "zlib+"


class CompressingSerializer(JsonPlusSerializer):
    """LangGraph serializer that compresses large values and can read uncompressed ones.

    Because a database could name any callable, only types on LangGraph's list of safe types are called.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: object) -> tuple[str, bytes]:
        """Return an object's type tag and bytes, compressed if they are many."""
        tag, blob = super().dumps_typed(obj)
        if len(blob) < COMPRESS_FROM:
            return tag, blob
        return _PREFIX + tag, zlib.compress(blob, 1)

    def loads_typed(self, data: tuple[str, bytes]) -> object:
        """Restore an object. A damaged or too large value is a `StorageError`."""
        tag, blob = data
        try:
            if tag.startswith(_PREFIX):
                inflating = zlib.decompressobj()
                tag, blob = tag.removeprefix(_PREFIX), inflating.decompress(blob, MAX_INFLATED)
                if inflating.unconsumed_tail:
                    raise StorageError(
                        "the database contains a value larger than 1 GiB, and Moot does not read such large "
                        "values: use another database"
                    )
            return super().loads_typed((tag, blob))
        except (TypeError, ValueError, AttributeError, NotImplementedError, zlib.error) as error:
            raise StorageError(
                f"a stored value of the debate is damaged ({error}): restore a backup of the database"
            ) from error


class MootSqliteSaver(CheckedSaver, AsyncSqliteSaver):
    """SQLite checkpointer with Moot's tables, compression and support for the LangGraph server.

    Deleting or copying a thread includes Moot's own records.
    """

    def __init__(self, conn: aiosqlite.Connection, records: Records) -> None:
        super().__init__(conn, serde=CompressingSerializer())
        self.records = records

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint.

        If the call is cancelled, it first waits for the commit, which releases the write lock.

        Raises:
            DebateBusy: Another run has taken the debate.
        """
        configurable = config["configurable"]
        metadata_json = json.dumps(base.get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        ids = (str(configurable["thread_id"]), configurable["checkpoint_ns"], checkpoint["id"])
        blob = self.serde.dumps_typed(checkpoint)
        row = (*ids, configurable.get("checkpoint_id"), *blob, metadata_json.encode("utf-8", "ignore"))
        # The first checkpoint with a configuration makes a debate, which is listed from now on.
        begins = "config" in checkpoint["channel_versions"] and metadata.get("step", 0) <= 1
        await self._write(config, [(_PUT, row), *([(_BEGIN, ids[:1])] if begins else [])])
        return {"configurable": dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), ids, strict=True))}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the pending writes of a task. If the call is cancelled, the method first waits for the commit.

        Raises:
            DebateBusy: Another run has taken the debate.
        """
        configurable = config["configurable"]
        task = (
            str(configurable["thread_id"]),
            configurable["checkpoint_ns"],
            configurable["checkpoint_id"],
            task_id,
            task_path,
        )
        conflict_action = "REPLACE" if all(name in base.WRITES_IDX_MAP for name, _ in writes) else "IGNORE"
        rows = [
            (*task, base.WRITES_IDX_MAP.get(name, number), name, *self.serde.dumps_typed(value))
            for number, (name, value) in enumerate(writes)
        ]
        await self._write(config, [(_PUT_WRITES.format(conflict_action), row) for row in rows])

    async def _write(self, config: RunnableConfig, statements: Sequence[Statement]) -> None:
        permit = self.records.leases.permit_in(config)
        await run_inline(self.records.sql.transact, statements, permit)

    @shielded
    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a debate's checkpoints and all of its rows in Moot's tables."""
        await run_in_thread(self.records.forget, str(thread_id))

    @shielded
    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints and pending writes of LangGraph server runs."""
        doomed = set(map(str, run_ids))
        await self.setup()
        async with self.lock, self.conn.cursor() as cursor:
            await cursor.execute("SELECT thread_id, checkpoint_ns, checkpoint_id, metadata FROM checkpoints")
            keys = [row[:3] for row in await cursor.fetchall() if json.loads(row[3]).get("run_id") in doomed]
            for table in ("checkpoints", "writes"):
                await cursor.executemany(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",  # noqa: S608  # constants of ours
                    keys,
                )
            await self.conn.commit()

    @shielded
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and pending writes from one thread to another."""
        source, target = str(source_thread_id), str(target_thread_id)
        await self.setup()
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("checkpoints", "writes"):
                await cursor.execute(f"PRAGMA table_info({table})")
                columns = [row[1] for row in await cursor.fetchall() if row[1] != "thread_id"]
                names = ", ".join(columns)
                await cursor.execute(
                    f"INSERT OR REPLACE INTO {table} (thread_id, {names}) "  # noqa: S608  # names of the table itself
                    f"SELECT ?, {names} FROM {table} WHERE thread_id = ?",
                    (target, source),
                )
            await self.conn.commit()
        await run_in_thread(self.records.copy, source, target)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete whole threads, or only the branches that do not lead to their latest checkpoint.

        The ancestors of the latest checkpoint are kept, because its delta channels are rebuilt from them.

        Raises:
            ValueError: `strategy` is neither `delete` nor `keep_latest`.
        """
        if strategy not in {"delete", "delete_all", "keep_latest"}:
            raise ValueError(f"unknown prune strategy {strategy!r}: use 'delete' or 'keep_latest'")
        for thread in map(str, thread_ids):
            if strategy == "keep_latest":
                await self._drop_dead_branches(thread)
            else:
                await self.adelete_thread(thread)

    @shielded
    async def _drop_dead_branches(self, thread: str) -> None:
        await self.setup()
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                await cursor.execute(_DEAD_BRANCHES.format(table=table), {"thread": thread})
            await self.conn.commit()


# The same statements as in `AsyncSqliteSaver`, which commits each statement separately.
_PUT = """
INSERT OR REPLACE INTO checkpoints
(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_BEGIN = "UPDATE moot_debates SET status = 'running' WHERE id = ? AND status = 'new'"
_PUT_WRITES = """
INSERT OR {} INTO writes
(thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DEAD_BRANCHES = """
WITH RECURSIVE kept(ns, id) AS (
    SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread GROUP BY checkpoint_ns
    UNION
    SELECT parent.checkpoint_ns, parent.parent_checkpoint_id FROM checkpoints AS parent
    JOIN kept ON parent.checkpoint_ns = kept.ns AND parent.checkpoint_id = kept.id
    WHERE parent.thread_id = :thread AND parent.parent_checkpoint_id IS NOT NULL
)
DELETE FROM {table}
WHERE thread_id = :thread AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT ns, id FROM kept)
"""


@asynccontextmanager
async def open_saver(url: str | None = None) -> AsyncIterator[base.BaseCheckpointSaver[str]]:
    """Open a checkpointer for the database at the given path or URL.

    Raises:
        InputError: The database cannot be opened.
        ConfigError: The URL is for Postgres and the `postgres` extra is not installed.
    """
    url = url or database_url()
    records = await run_in_thread(open_records, url)
    try:
        if isinstance(records.sql, SqliteSql):
            address = records.sql.address
            async with aiosqlite.connect(address, uri=True, timeout=BUSY_TIMEOUT_S) as connection:
                await connection.execute("PRAGMA synchronous=NORMAL")  # the journal holds any lost write
                saver = MootSqliteSaver(connection, records)
                await saver.setup()
                yield saver
        else:
            async with server_of(url).open_saver(url, records, CompressingSerializer()) as server_saver:
                yield server_saver
    finally:
        await run_in_thread(records.close)


make = open_saver
"""Function with which a LangGraph server opens the checkpointer. It is referenced in `langgraph.json`."""

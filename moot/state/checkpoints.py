"""Checkpointers: SQLite by default, Postgres by URL, each with Moot's records beside the checkpoints."""

import json
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import aiosqlite
import anyio.to_thread
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from moot.state.errors import StorageError
from moot.state.event_loop import at_once, uncancelled
from moot.state.plugins import extra
from moot.state.records import Records, open_records
from moot.state.settings import database_url
from moot.state.sql import Statement
from moot.state.sqlite import BUSY_TIMEOUT_S, SqliteSql

COMPRESS_FROM = 512
"""Blobs of at least this many bytes are compressed: snapshots shrink to a fifth, small writes would not."""

MAX_INFLATED = 2**30
"""Bytes; snapshots of ten thousand turns take some ten million."""

_PREFIX = "zlib+"


class CompressingSerializer(JsonPlusSerializer):
    """LangGraph's serialiser, compressing what it makes; reads plain blobs as well.

    Whoever wrote a database can name any callable in it: only LangGraph's list of safe types is ever called.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def dumps_typed(self, obj: object) -> tuple[str, bytes]:
        """Return the type tag and bytes of an object."""
        tag, blob = super().dumps_typed(obj)
        if len(blob) < COMPRESS_FROM:
            return tag, blob
        return _PREFIX + tag, zlib.compress(blob, 1)

    def loads_typed(self, data: tuple[str, bytes]) -> object:
        """Return the object behind a type tag and bytes."""
        tag, blob = data
        if tag.startswith(_PREFIX):
            inflating = zlib.decompressobj()
            tag, blob = tag.removeprefix(_PREFIX), inflating.decompress(blob, MAX_INFLATED)
            if inflating.unconsumed_tail:
                raise StorageError("the database holds a value of more than 1 GiB: do not trust it")
        return super().loads_typed((tag, blob))


class MootSqliteSaver(AsyncSqliteSaver):
    """`AsyncSqliteSaver` with Moot's records, compression, and what the LangGraph server asks besides.

    What the server deletes or copies, it deletes or copies with what Moot knows of it.
    """

    def __init__(self, conn: aiosqlite.Connection, records: Records) -> None:
        super().__init__(conn, serde=CompressingSerializer())
        self.records = records

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; a cancellation waits for the commit, or the write lock would stay taken.

        Raises:
            DebateBusy: another run has taken the debate.
        """
        place = config["configurable"]
        told = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        ids = (str(place["thread_id"]), place["checkpoint_ns"], checkpoint["id"])
        blob = self.serde.dumps_typed(checkpoint)
        row = (*ids, place.get("checkpoint_id"), *blob, told.encode("utf-8", "ignore"))
        await self._write(config, [(_PUT, row)])
        return {"configurable": dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), ids, strict=True))}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, object]], task_id: str, task_path: str = ""
    ) -> None:
        """Save a task's writes; a cancellation waits for the commit.

        Raises:
            DebateBusy: another run has taken the debate.
        """
        place = config["configurable"]
        task = (str(place["thread_id"]), place["checkpoint_ns"], place["checkpoint_id"], task_id, task_path)
        again = "REPLACE" if all(name in WRITES_IDX_MAP for name, _ in writes) else "IGNORE"
        rows = [
            (*task, WRITES_IDX_MAP.get(name, number), name, *self.serde.dumps_typed(value))
            for number, (name, value) in enumerate(writes)
        ]
        await self._write(config, [(_PUT_WRITES.format(again), row) for row in rows])

    async def _write(self, config: RunnableConfig, statements: Sequence[Statement]) -> None:
        permit = self.records.leases.permit_in(config)
        await at_once(self.records.sql.transact, statements, permit)

    @uncancelled
    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a debate's checkpoints, journal and place in the catalogue."""
        await super().adelete_thread(thread_id)
        await anyio.to_thread.run_sync(self.records.forget, str(thread_id))

    @uncancelled
    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints of these server runs."""
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

    @uncancelled
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's checkpoints and writes to another thread."""
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
        await anyio.to_thread.run_sync(self.records.copy, source, target)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete threads, or of each the branches that its latest checkpoint does not descend from.

        The ancestors of the latest checkpoint stay: its delta channels are rebuilt from them.

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

    @uncancelled
    async def _drop_dead_branches(self, thread: str) -> None:
        await self.setup()
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                await cursor.execute(_DEAD_BRANCHES.format(table=table), {"thread": thread})
            await self.conn.commit()


# As `AsyncSqliteSaver` writes them, which commits each by itself.
_PUT = """
INSERT OR REPLACE INTO checkpoints
(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
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
async def open_saver(url: str | None = None) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer of a database: a path, `sqlite:///path`, `postgresql://…`, or the default.

    Raises:
        InputError: the database cannot be opened.
        ConfigError: a Postgres URL without the `postgres` extra installed.
    """
    url = url or database_url()
    records = await anyio.to_thread.run_sync(open_records, url)
    try:
        if isinstance(records.sql, SqliteSql):
            address = records.sql.address
            async with aiosqlite.connect(address, uri=True, timeout=BUSY_TIMEOUT_S) as connection:
                await connection.execute("PRAGMA synchronous=NORMAL")  # what is lost, the journal has
                saver = MootSqliteSaver(connection, records)
                await saver.setup()
                yield saver
        else:
            with extra("postgres", "Postgres"):
                from moot.state.postgres_saver import MootPostgresSaver, open_pool
            async with open_pool(url) as pool:
                server_saver = MootPostgresSaver(pool, serde=CompressingSerializer(), records=records)
                await server_saver.setup()
                yield server_saver
    finally:
        await anyio.to_thread.run_sync(records.close)


make = open_saver
"""What `langgraph.json` names: it opens the default database's checkpointer."""

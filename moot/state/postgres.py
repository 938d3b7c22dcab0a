"""The checkpointer for Postgres, with Moot's records; imported only where the `postgres` extra is wanted."""

from collections.abc import Iterable

import anyio.to_thread
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from moot.state.records import Records


class MootPostgresSaver(AsyncPostgresSaver):
    """`AsyncPostgresSaver` with Moot's records and what the LangGraph server asks besides."""

    records: Records

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

"""Storage plug-in for databases at `postgresql://…`. It imports psycopg only when a database is opened."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from moot.state.settings import require_extra
from moot.storage.servers import Sql

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import BaseStore

    from moot.plugins.postgres.work_queue import WorkQueue
    from moot.storage.records import Records

EXTRA = ("postgres", "Postgres")
"""Extra that this module needs, and what needs it."""


def open_sql(url: str) -> Sql:
    """Open a connection for Moot's own tables.

    Raises:
        ConfigError: the `postgres` extra is not installed.
        InputError: the database cannot be opened.
    """
    with require_extra(*EXTRA):
        from moot.plugins.postgres.postgres import PostgresSql
    return PostgresSql(url)


@asynccontextmanager
async def open_saver(
    url: str, records: Records, serde: SerializerProtocol
) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open a checkpointer that creates its tables if necessary."""
    with require_extra(*EXTRA):
        from moot.plugins.postgres.postgres import server_errors
        from moot.plugins.postgres.postgres_saver import MootPostgresSaver, is_migrated, open_pool
    async with open_pool(url) as pool:
        saver = MootPostgresSaver(pool, serde=serde, records=records)
        with server_errors():
            async with pool.connection() as connection:
                ready = await is_migrated(connection, "checkpoint_migrations", saver.MIGRATIONS)
            if not ready:
                await saver.setup()
        yield saver


@asynccontextmanager
async def open_store(url: str) -> AsyncIterator[BaseStore]:
    """Open a LangGraph store that creates its tables if necessary."""
    with require_extra(*EXTRA):
        from langgraph.store.postgres.aio import AsyncPostgresStore

        from moot.plugins.postgres.postgres import address_with_timeouts
        from moot.plugins.postgres.postgres_saver import is_migrated
    from moot.state.langgraph_internals import close_store

    store: Any
    async with AsyncPostgresStore.from_conn_string(address_with_timeouts(url)) as store:
        try:
            if not await is_migrated(store.conn, "store_migrations", store.MIGRATIONS):
                await store.setup()
            yield store
        finally:
            await close_store(store)


def open_queue(url: str) -> WorkQueue:
    """Return the queue of debates in the database.

    Raises:
        ConfigError: the `queue` extra is not installed.
    """
    from moot.plugins.postgres.work_queue import WorkQueue

    return WorkQueue(url)


def address_of(connection: Any) -> str:
    """Return the database address of a psycopg connection or pool.

    Return `""` for any other object.
    """
    if not type(connection).__module__.startswith("psycopg"):
        return ""
    from psycopg import conninfo, pq

    if (info := getattr(connection, "info", None)) is not None:
        return conninfo.make_conninfo(**info.get_parameters(), password=info.password or None)
    known = {default.keyword.decode() for default in pq.Conninfo.get_defaults()}
    options = _resolved(connection.kwargs) or {}
    return conninfo.make_conninfo(
        _resolved(connection.conninfo) or "", **{key: options[key] for key in options.keys() & known}
    )


def _resolved(setting: Any) -> Any:
    """Return a setting of a connection pool.

    The setting may also be a function or a coroutine function that returns the value.
    """
    value = setting() if callable(setting) else setting
    if not inspect.iscoroutine(value):
        return value
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, value).result()

"""LangGraph's store beside the checkpoints: what outlives a debate. Opened when it is first used."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from langgraph.store.base import BaseStore, Op, Result

from moot.state.plugins import extra
from moot.state.settings import database_url, is_postgres, sqlite_path


class LateStore(BaseStore):
    """A store that opens its database at the first operation: most debates never use it."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self._url, self._stack = url, stack
        self._inner: BaseStore | None = None
        self._opening = asyncio.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Refuse: every node of a debate runs on an event loop.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("use the asynchronous methods of this store")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one batch."""
        async with self._opening:
            if self._inner is None:
                self._inner = await self._stack.enter_async_context(_opened(self._url))
        return await self._inner.abatch(ops)


@asynccontextmanager
async def open_store(url: str | None = None) -> AsyncIterator[BaseStore]:
    """Open the store of a database: the same file or server that holds the checkpoints."""
    async with AsyncExitStack() as stack:
        yield LateStore(url or database_url(), stack)


def _opened(url: str) -> AbstractAsyncContextManager[BaseStore]:
    return _postgres(url) if is_postgres(url) else _sqlite(url)


@asynccontextmanager
async def _sqlite(url: str) -> AsyncIterator[BaseStore]:
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    async with aiosqlite.connect(sqlite_path(url), timeout=30, isolation_level=None) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        store: Any = AsyncSqliteStore(connection)
        await store.setup()
        try:
            yield store
        finally:
            await _wind_up(store)


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[BaseStore]:
    with extra("postgres", "Postgres"):
        from langgraph.store.postgres.aio import AsyncPostgresStore
    async with AsyncPostgresStore.from_conn_string(url) as store:
        await store.setup()
        try:
            yield store
        finally:
            await _wind_up(store)


async def _wind_up(store: object) -> None:
    """End the store's background task, which would otherwise outlive the loop that it runs on."""
    task: asyncio.Task[None] | None = getattr(store, "_task", None)
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

"""LangGraph's store beside the checkpoints: what outlives a debate. Opened when it is first used."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any, cast

from langgraph.store.base import BaseStore, Op, Result

from moot.state.plugins import extra
from moot.state.settings import database_url, is_postgres, sqlite_path


class LateStore(BaseStore):
    """The store of a database, in the file or server that holds the checkpoints.

    It opens at the first operation, since most debates never use it, and closes with the stack given to it.
    """

    def __init__(self, url: str | None, stack: AsyncExitStack) -> None:
        self._url, self._stack = url or database_url(), stack
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
                self._inner = await self._open()
        return await self._inner.abatch(ops)

    async def _open(self) -> BaseStore:
        store: Any
        if is_postgres(self._url):
            with extra("postgres", "Postgres"):
                from langgraph.store.postgres.aio import AsyncPostgresStore
            store = await self._stack.enter_async_context(AsyncPostgresStore.from_conn_string(self._url))
        else:
            import aiosqlite
            from langgraph.store.sqlite.aio import AsyncSqliteStore

            opening = aiosqlite.connect(sqlite_path(self._url), timeout=30, isolation_level=None)
            connection = await self._stack.enter_async_context(opening)
            await connection.execute("PRAGMA journal_mode=WAL")
            store = AsyncSqliteStore(connection)
        self._stack.push_async_callback(_wind_up, store)
        await store.setup()
        return cast(BaseStore, store)


async def _wind_up(store: Any) -> None:
    """End the store's background task, which would otherwise outlive the loop that it runs on."""
    store._task.cancel()
    await asyncio.gather(store._task, return_exceptions=True)

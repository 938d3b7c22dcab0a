"""The journal beside LangGraph's own checkpointers: a step that stopped midway repeats no completed call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from moot import DebateConfig, ModelError, build_graph
from moot.calls.effects import ModelCall, Reply
from tests.support.fakes import FakeModel, answer
from tests.support.postgres_server import new_database, postgres_server

pytestmark = pytest.mark.slow

Saver = Callable[[str], AbstractAsyncContextManager[Any]]
THREAD: Any = {"configurable": {"thread_id": "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5"}}
CONFIG = DebateConfig(turns=2, judge={"enabled": False})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@asynccontextmanager
async def async_sqlite(database: str) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(database) as saver:
        yield saver


@asynccontextmanager
async def async_postgres(database: str) -> AsyncIterator[Any]:
    async with AsyncPostgresSaver.from_conn_string(database) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def async_postgres_pool(database: str) -> AsyncIterator[Any]:
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(database, kwargs=settings, open=False) as pool:
        saver = AsyncPostgresSaver(pool)  # type: ignore[arg-type]  # rows are dictionaries
        await saver.setup()
        yield saver


@pytest.mark.parametrize("opened", [async_sqlite, async_postgres, async_postgres_pool])
def test_a_completed_call_of_a_stopped_step_is_not_repeated(
    opened: Saver, server: str, tmp_path: Path
) -> None:
    database = str(tmp_path / "own.sqlite") if opened is async_sqlite else new_database(server)
    down = [True]

    def second_is_down(call: ModelCall) -> Reply:
        if down[0] and call.call_index == 1:
            return Reply(error="down", status=500)
        return answer(call)

    model = FakeModel(second_is_down)

    async def story() -> Any:
        async with opened(database) as saver:
            graph: Any = build_graph(saver, environment=model.environment())
            with pytest.raises(ModelError):
                await graph.ainvoke({"topic": "Trams?"}, THREAD, context=CONFIG)
        down[0] = False
        async with opened(database) as saver:  # as another process would open it
            graph = build_graph(saver, environment=model.environment())
            return await graph.ainvoke(None, THREAD, context=CONFIG)

    assert asyncio.run(story())["status"] == "done"
    asked = Counter(call.call_index for call in model.calls if call.purpose == "turn")
    assert asked == {0: 1, 1: 2}

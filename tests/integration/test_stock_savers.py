"""The journal with LangGraph's own checkpointers: an interrupted step repeats no completed call."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from moot import DebateConfig, ModelError, build_graph
from moot.calls.model_calls import ModelCall, Reply
from moot.storage.records import open_records, records_of
from tests.support.fakes import FakeModel, fake_reply
from tests.support.openai_answers import Json
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.waiting import wait_until

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
def test_failed_step_does_not_repeat_completed_calls(opened: Saver, server: str, tmp_path: Path) -> None:
    database = str(tmp_path / "own.sqlite") if opened is async_sqlite else new_database(server)
    down = [True]

    def second_is_down(call: ModelCall) -> Reply:
        if down[0] and call.call_index == 1:
            return Reply(error="down", status=500)
        return fake_reply(call)

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


async def _address(database: str) -> str:
    return database


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(lambda database: {"kwargs": conninfo_to_dict(database)}, id="keywords"),
        pytest.param(lambda database: {"conninfo": lambda: database}, id="function"),
        pytest.param(lambda database: {"conninfo": partial(_address, database)}, id="coroutine"),
    ],
)
def test_journal_uses_the_pools_database_for_every_kind_of_address(
    settings: Callable[[str], Any], server: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = new_database(server)

    async def tables() -> list[Any]:
        pool = AsyncConnectionPool(**settings(database), open=False)
        records_of(AsyncPostgresSaver(pool)).close()
        return rows(database, "SELECT 1 FROM information_schema.tables WHERE table_name = 'moot_journal'")

    assert asyncio.run(tables())
    assert "stores no journal" not in caplog.text


PROGRAM = """
import asyncio, sys
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from moot import DebateConfig, build_graph

kind, database, thread = sys.argv[1:]
opened = globals()[kind].from_conn_string(database)
config = DebateConfig(turns=2, model="m", judge={"enabled": False})
place = {"configurable": {"thread_id": thread}}


def run_options(snapshot):
    # A resumed debate has its configuration and its grants from the database.
    start, options = (None, {}) if snapshot.next else ({"topic": "Trams?"}, {"context": config})
    return {"input": start, "config": place, **options}


def run():
    with opened as saver:
        if kind == "PostgresSaver":
            saver.setup()
        graph = build_graph(saver)
        print(graph.invoke(**run_options(graph.get_state(place)))["status"])


async def arun():
    async with opened as saver:
        await saver.setup()
        graph = build_graph(saver)
        print((await graph.ainvoke(**run_options(await graph.aget_state(place))))["status"])


asyncio.run(arun()) if kind.startswith("Async") else run()
"""


@pytest.mark.parametrize("kind", ["SqliteSaver", "AsyncSqliteSaver", "PostgresSaver", "AsyncPostgresSaver"])
def test_no_completed_call_is_repeated_after_a_kill(kind: str, server: str, tmp_path: Path) -> None:
    database = str(tmp_path / "own.sqlite") if "Sqlite" in kind else new_database(server)
    thread = THREAD["configurable"]["thread_id"]
    killed = threading.Event()

    def plan(request: Json, number: int) -> ServerReply | None:
        if number == 1:  # the second of two openings, which are written at the same time
            killed.wait(120)
        return None

    with OpenAIServer(plan) as models:
        own = {"OPENAI_BASE_URL": models.base_url, "OPENAI_API_KEY": "k", "HOME": str(tmp_path)}
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MOOT_")}
        words = [sys.executable, "-c", PROGRAM, kind, database, thread]

        def replies() -> int:
            if "Sqlite" in kind and not Path(database).exists():
                return 0
            records = open_records(database)
            try:
                return len(records.journal.replies(thread))
            finally:
                records.close()

        with subprocess.Popen(words, env={**kept, **own}, stdout=subprocess.DEVNULL) as process:
            assert wait_until(lambda: len(models.chats) == 2 and replies() == 1)
            process.kill()
        killed.set()
        resumed = subprocess.run(words, env={**kept, **own}, capture_output=True, text=True, check=False)
        assert resumed.returncode == 0, resumed.stderr
        assert "journal" not in resumed.stderr
        prompts = Counter(str(chat["messages"]) for chat in models.chats)
    assert resumed.stdout.strip() == "done"
    assert sorted(prompts.values()) == [1, 2]  # only the call that was cut off is made again

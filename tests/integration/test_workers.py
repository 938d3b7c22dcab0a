"""Debates that workers run from a Postgres queue. Killed or suspended workers do not change the result."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moot import open_debates
from moot.config.debate_config import LimitsConfig
from moot.plugins.postgres import work_queue
from moot.plugins.postgres.work_queue import WorkQueue
from moot.storage.leases import LEASE_S
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.waiting import LONG_TIMEOUT_S, wait_until
from tests.support.worker_fleet import CONFIG, Fleet, enqueue_debates, planned_debates, run_serially
from tests.support.writer_log import install_writer_log

pytestmark = pytest.mark.slow
TOPICS = [f"Should city {number} ban cars?" for number in range(4)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    lines = [{"topic": topic, "id": f"d{number}"} for number, topic in enumerate(TOPICS)]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "c.json").write_text(json.dumps(CONFIG.to_json()))
    return Moot(tmp_path)


def test_other_workers_finish_debates_of_killed_and_suspended_workers(
    moot: Moot, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, debates = new_database(server), planned_debates(4)
    serial = run_serially(debates, moot.db, monkeypatch)
    queue = enqueue_debates(debates, url)
    with OpenAIServer(latency=0.15) as model:
        fleet = Fleet(moot.folder, url, model)
        killed, stopped = fleet.start(), fleet.start()
        assert wait_until(lambda: fleet.last_written_debates(killed) and fleet.last_written_debates(stopped))
        fleet.signal(killed, signal.SIGKILL)
        fleet.signal(stopped, signal.SIGSTOP)
        assigned = fleet.last_written_debates(stopped)
        # Age the heartbeats and the leases beyond their timeouts of 20 s and 30 s.
        rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '21 s'")
        rows(url, "UPDATE moot_leases SET expires = expires - %s", LEASE_S + 1)
        last = fleet.start("--drain", "--quiet")
        assert wait_until(lambda: set(assigned) <= set(fleet.last_written_debates(last)))
        fleet.signal(stopped, signal.SIGCONT)
        assert fleet.running[last].wait(LONG_TIMEOUT_S) == 0, fleet.running[last].errors()
        fleet.signal(stopped, signal.SIGTERM)
        assert fleet.running[stopped].wait(LONG_TIMEOUT_S) == 130
        fleet.stop_all()
    assert queue.entries() == []
    serial.check(url, model.requests, repeated=4)  # calls in progress in a killed or stopped worker


def test_a_debate_whose_assignment_a_worker_missed_is_run(
    moot: Moot, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "HEARTBEAT_S", 0.1)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    url = new_database(server)
    queue = enqueue_debates(planned_debates(1), url)
    [queued] = queue.entries()
    rows(url, "UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 day'")

    def assign() -> None:
        """Assign the debate to the worker without its knowledge, as if the answer to its query was lost."""
        assigned = "UPDATE procrastinate_jobs SET status = 'doing', worker_id = w.id"
        wait_until(lambda: rows(url, f"{assigned} FROM procrastinate_workers w RETURNING 1"))

    with OpenAIServer() as model, open_debates(url) as debates:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        thread = threading.Thread(target=assign)
        thread.start()
        runs: Any = queue.work(debates, 1)
        with closing(runs) as ended:
            assert next(ended) == (queued.debate, "")
        thread.join()


def test_highest_priority_runs_first_and_cancelled_debates_are_paused(moot: Moot, server: str) -> None:
    url = new_database(server)
    key: Any = {"OPENAI_API_KEY": "k", "MOOT_DB": url}
    assert moot("batch", "topics.jsonl", "--queue", "--config", "c.json", **key).code == 0
    assert moot("jobs", "retry", "d3", "--priority", "5", **key).code == 0
    assert moot("jobs", "cancel", "d0", **key).code == 0
    listed = moot("jobs", "list", "--json", **key).json
    assert [(each["name"], each["status"], each["priority"]) for each in listed] == [
        ("d3", "todo", 5),
        ("d1", "todo", 0),
        ("d2", "todo", 0),
    ]
    install_writer_log(url)
    with OpenAIServer(latency=0.2) as model:
        fleet = Fleet(moot.folder, url, model)
        one = fleet.running[fleet.start("--drain")]
        assert wait_until(lambda: len(model.requests) >= 2)
        assert TOPICS[3] in json.dumps(model.chats[:2])
        assert moot("jobs", "cancel", "d3", **key).code == 0
        assert one.wait(LONG_TIMEOUT_S) == 0
        assert "d3: cancelled" in one.errors()
    with open_debates(url) as debates:
        assert {row.name: row.status for row in debates.rows()} == {
            "d0": "paused", "d1": "done", "d2": "done", "d3": "paused",
        }  # fmt: skip


def test_worker_respects_its_operators_limit_on_imported_debates(
    moot: Moot, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    url, limit = new_database(server), 3000
    operators_file = moot.folder / "operator.json"
    operators_file.write_text(json.dumps({"limits": {"total_tokens": limit}}))
    config = CONFIG.model_copy(update={"turns": 200, "limits": LimitsConfig(total_tokens=10**9)})
    with open_debates(url) as debates:
        document = debates.start(TOPICS[0], config).document()
        imported = debates.import_document(document, name="imported")
        assert WorkQueue(url).add([imported.id, imported.fork(name="fork").id]) == 2
    install_writer_log(url)
    with OpenAIServer() as model:
        fleet = Fleet(moot.folder, url, model)
        worker = fleet.running[fleet.start("--drain", MOOT_CONFIG=str(operators_file), MOOT_MODEL="m")]
        assert worker.wait(LONG_TIMEOUT_S) == 0, worker.errors()
        assert model.chats, worker.errors()
    with open_debates(url) as debates:
        rows_by_name = {name: debates.get(name).row for name in ("imported", "fork")}
        assert {row.status for row in rows_by_name.values()} == {"limit"}
        assert all(limit <= row.tokens < limit + 1000 for row in rows_by_name.values())


def test_queue_commands_require_a_postgres_database(moot: Moot) -> None:
    for words in (["worker"], ["batch", "topics.jsonl", "--queue"], ["jobs", "list"]):
        refused = moot(*words)
        assert refused.code == 2
        assert "postgresql://" in refused.err


@pytest.mark.timeout(120)  # without the mend, the event loop itself does not end
def test_a_worker_that_cannot_sign_off_from_the_database_ends(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    url = new_database(server)
    enqueue_debates(planned_debates(1), url)

    async def ends_when_cancelled() -> bool:
        with open_debates(url) as debates:
            runs = WorkQueue(url)._run(debates, 1, drain=False)
            assert (await anext(runs))[1] == ""
            rows(url, "DROP FUNCTION procrastinate_unregister_worker_v1")
            task = asyncio.ensure_future(anext(runs))
            await asyncio.sleep(0)  # it waits for the next debate
            task.cancel()
            await asyncio.wait([task], timeout=30)
            return task.cancelled()

    with OpenAIServer() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        assert asyncio.run(ends_when_cancelled())


def test_queue_connections_have_an_idle_transaction_timeout(server: str) -> None:
    async def timeout() -> object:
        async with WorkQueue(new_database(server))._open() as app:
            row = await app.connector.execute_query_one_async("SHOW idle_in_transaction_session_timeout")
            return row["idle_in_transaction_session_timeout"]

    assert asyncio.run(timeout()) == "10s"

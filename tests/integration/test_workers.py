"""Debates that workers take from a Postgres queue, killed, suspended or not: the same as a serial run."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moot import open_debates
from moot.storage.leases import LEASE_S
from moot.work_queue import WorkQueue
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.patience import LONG_TIMEOUT_S, until
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.transcripts import message_texts
from tests.support.worker_fleet import CONFIG, Fleet, enqueue_debates, plan_debate, run_alone
from tests.support.writer_log import epochs_do_not_overlap, keep_log

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


def test_what_killed_and_stopped_workers_had_others_bring_to_the_same_end(
    moot: Moot, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, debates = new_database(server), plan_debate(4)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with OpenAIServer() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        serially = run_alone(debates, str(moot.db))
        serial = {request.body for request in model.requests}
    queue = enqueue_debates(debates, url)
    with OpenAIServer(latency=0.15) as model:
        fleet = Fleet(moot.folder, url, model)
        killed, stopped = fleet.start(), fleet.start()
        assert until(lambda: fleet.writing(killed) and fleet.writing(stopped))
        fleet.signal(killed, signal.SIGKILL)
        fleet.signal(stopped, signal.SIGSTOP)
        had = fleet.writing(stopped)
        # As long ago as it takes to count: 20 s without a sign of life, 30 s since the lease was renewed.
        rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '21 s'")
        rows(url, "UPDATE moot_leases SET expires = expires - %s", LEASE_S + 1)
        last = fleet.start("--drain", "--quiet")
        assert until(lambda: set(had) <= set(fleet.writing(last)))
        fleet.signal(stopped, signal.SIGCONT)
        assert fleet.running[last].wait(LONG_TIMEOUT_S) == 0, fleet.running[last].errors()
        fleet.signal(stopped, signal.SIGTERM)
        assert fleet.running[stopped].wait(LONG_TIMEOUT_S) == 130
        paid = Counter(request.body for request in model.requests)
        fleet.stop_all()
    assert epochs_do_not_overlap(url)
    assert queue.entries() == []
    with open_debates(url) as there:
        assert {row.name: message_texts(there.get(row.id).document()) for row in there.rows()} == serially
    assert paid.keys() == serial
    assert sum(paid.values()) <= len(serial) + 4, "what was under way in a killed or stopped worker, no more"


def test_the_highest_priority_comes_first_and_what_is_cancelled_is_paused(moot: Moot, server: str) -> None:
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
    keep_log(url)
    with OpenAIServer(latency=0.2) as model:
        fleet = Fleet(moot.folder, url, model)
        one = fleet.running[fleet.start("--drain")]
        assert until(lambda: len(model.requests) >= 2)
        assert TOPICS[3] in json.dumps(model.chats[:2])
        assert moot("jobs", "cancel", "d3", **key).code == 0
        assert one.wait(LONG_TIMEOUT_S) == 0
        assert "d3: cancelled" in one.errors()
    with open_debates(url) as debates:
        assert {row.name: row.status for row in debates.rows()} == {
            "d0": "paused", "d1": "done", "d2": "done", "d3": "paused",
        }  # fmt: skip


def test_a_file_here_is_no_queue(moot: Moot) -> None:
    for words in (["worker"], ["batch", "topics.jsonl", "--queue"], ["jobs", "list"]):
        refused = moot(*words)
        assert refused.code == 2
        assert "postgresql://" in refused.err


def test_the_server_ends_an_idle_transaction_of_the_queue_so_that_it_locks_no_rows(server: str) -> None:
    async def timeout() -> object:
        async with WorkQueue(new_database(server))._open() as app:
            row = await app.connector.execute_query_one_async("SHOW idle_in_transaction_session_timeout")
            return row["idle_in_transaction_session_timeout"]

    assert asyncio.run(timeout()) == "10s"

"""Debates that workers take from a Postgres database, killed, stopped or not: each as if it ran alone."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.graph.many import PlannedDebate, begun, run_many
from moot.graph.work_queue import WorkQueue
from moot.state.leases import LEASE_S
from tests.support.fencing import keep_log, one_at_a_time, writers
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.transcripts import said
from tests.support.warm_process import WarmProcess

pytestmark = pytest.mark.slow
SETTINGS = {"model": "m", "turns": 3, "seed": 1, "judge": {"enabled": False}}
CONFIG = DebateConfig.model_validate(SETTINGS)
TOPICS = [f"Should city {number} ban cars?" for number in range(4)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    lines = [{"topic": topic, "id": f"d{number}"} for number, topic in enumerate(TOPICS)]
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "c.json").write_text(json.dumps(SETTINGS))
    return Moot(tmp_path)


def _until(true: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _worker(moot: Moot, url: str, server: OpenAIServer, name: str, *words: str) -> WarmProcess:
    model: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
    return moot.start("worker", "--workers", "2", *words, PGAPPNAME=name, MOOT_DB=url, **model)


def _writing(url: str, name: str) -> list[str]:
    return [debate for debate, log in writers(url).items() if log[-1][1] == {name}]


def test_what_killed_and_stopped_workers_had_others_bring_to_the_same_end(
    moot: Moot, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(server)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    planned = [PlannedDebate(f"d{number}", topic, CONFIG) for number, topic in enumerate(TOPICS)]
    with OpenAIServer() as model, open_debates(str(moot.db)) as debates:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        assert [error for _, error in run_many(debates, planned, 4) if error] == []
        alone = {row.name: said(debates.get(row.id).document()) for row in debates.rows()}
        serial = {request.body for request in model.requests}
    with open_debates(url) as debates:
        queue = WorkQueue(url)
        assert queue.add([begun(debates, each).id for each in planned]) == len(planned)
        assert queue.add([row.id for row in debates.rows()]) == 0
    keep_log(url)
    with OpenAIServer(latency=0.15) as model:
        killed, stopped = (_worker(moot, url, model, name) for name in ("killed", "stopped"))
        _until(lambda: _writing(url, "killed") and _writing(url, "stopped"))
        killed.kill()
        stopped.send_signal(signal.SIGSTOP)
        had = _writing(url, "stopped")
        # As long ago as it takes to count: 20 s without a sign of life, 30 s since the lease was renewed.
        rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '21 s'")
        rows(url, "UPDATE moot_leases SET expires = expires - %s", LEASE_S + 1)
        with _worker(moot, url, model, "last", "--drain", "--quiet") as last:
            _until(lambda: set(had) <= set(_writing(url, "last")))
            stopped.send_signal(signal.SIGCONT)
            assert last.wait(60) == 0, last.errors()
        stopped.send_signal(signal.SIGTERM)
        assert stopped.wait(30) == 130
        paid = Counter(request.body for request in model.requests)
    assert one_at_a_time(url)
    assert queue.entries() == []
    with open_debates(url) as debates:
        assert {row.name: said(debates.get(row.id).document()) for row in debates.rows()} == alone
    assert paid.keys() == serial
    assert sum(paid.values()) <= len(serial) + 4, "what was under way in a killed or stopped worker, no more"


def test_the_highest_priority_comes_first_and_what_is_cancelled_is_paused(moot: Moot, server: str) -> None:
    url = new_database(server)
    key: Any = {"OPENAI_API_KEY": "k", "MOOT_DB": url}
    assert moot("enqueue", "topics.jsonl", "--config", "c.json", **key).code == 0
    assert moot("jobs", "retry", "d3", "--priority", "5", **key).code == 0
    assert moot("jobs", "cancel", "d0", **key).code == 0
    listed = moot("jobs", "list", "--json", **key).json
    assert [(each["name"], each["status"], each["priority"]) for each in listed] == [
        ("d3", "todo", 5),
        ("d1", "todo", 0),
        ("d2", "todo", 0),
    ]
    keep_log(url)
    with OpenAIServer(latency=0.2) as model, _worker(moot, url, model, "one", "--drain") as one:
        _until(lambda: len(model.requests) >= 2)
        assert TOPICS[3] in json.dumps(model.chats[:2])
        assert moot("jobs", "cancel", "d3", **key).code == 0
        assert one.wait(60) == 0
        assert "d3: cancelled" in one.errors()
    with open_debates(url) as debates:
        assert {row.name: row.status for row in debates.rows()} == {
            "d0": "paused", "d1": "done", "d2": "done", "d3": "paused",
        }  # fmt: skip


def test_a_file_here_is_no_queue(moot: Moot) -> None:
    for words in (["worker"], ["enqueue", "topics.jsonl"], ["jobs", "list"]):
        refused = moot(*words)
        assert refused.code == 2
        assert "postgresql://" in refused.err

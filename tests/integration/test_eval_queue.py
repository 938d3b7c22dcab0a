"""An evaluation that workers run from a Postgres queue. One worker is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moot import open_debates
from moot.storage.leases import LEASE_S
from tests.integration.test_eval_commands import ARMS, CALLS, expected_rows, ok
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.scripted_answers import DEBATE_YAML, DEFAULT_SCRIPT, jsonl, question_rows
from tests.support.waiting import LONG_TIMEOUT_S, wait_until
from tests.support.worker_fleet import Fleet
from tests.support.writer_log import install_writer_log

pytestmark = pytest.mark.slow
ITEMS = 4


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


def test_killed_worker_does_not_change_evaluation_results(tmp_path: Path, server: str) -> None:
    (tmp_path / "set.jsonl").write_text(jsonl(question_rows(ITEMS)))
    (tmp_path / "debate.yaml").write_text(DEBATE_YAML)
    moot, url = Moot(tmp_path), new_database(server)
    with OpenAIServer(DEFAULT_SCRIPT.reply, latency=0.1) as model:
        variables: Any = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k", "MOOT_MODEL": "m"}

        def enqueue() -> Any:
            return ok(
                moot("eval", "run", "set.jsonl", *ARMS, "--queue", "--json", "--db", url, **variables)
            ).json["run"]

        queued = enqueue()
        assert (queued["queued"], len(queued["missing"])) == (3 * ITEMS, 4 * ITEMS)
        assert len(model.requests) == ITEMS, "the questions of the debates, asked as they are created"
        install_writer_log(url)
        fleet = Fleet(tmp_path, url, model)
        killed = fleet.start()
        assert wait_until(lambda: len(model.requests) > 4 and bool(fleet.last_written_debates(killed)))
        fleet.signal(killed, signal.SIGKILL)
        # Age the heartbeat and the lease beyond their timeouts of 20 s and 30 s.
        rows(url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '21 s'")
        rows(url, "UPDATE moot_leases SET expires = expires - %s", LEASE_S + 1)
        assert fleet.running[fleet.start("--drain", "--quiet")].wait(LONG_TIMEOUT_S) == 0
        votes = enqueue()
        assert (votes["queued"], len(votes["missing"])) == (ITEMS, ITEMS), "the votes with an equal budget"
        assert fleet.running[fleet.start("--drain", "--quiet")].wait(LONG_TIMEOUT_S) == 0
        report = ok(moot("eval", "report", "set", "--json", "--db", url)).json
        asked = len(model.requests)
        assert enqueue()["missing"] == []
        assert len(model.requests) == asked
        fleet.stop_all()
    expected = expected_rows(DEFAULT_SCRIPT, ITEMS)
    assert {row["arm"]: row["correct"] for row in report["arms"]} == {
        row["arm"]: expected[row["arm"]] for row in report["arms"]
    }
    with open_debates(url) as debates:
        completed = sum(len(debates.records.journal.replies(row.id)) for row in debates.rows())
    assert completed == ITEMS * (1 + 5 + 2 * CALLS)
    assert asked - completed <= 2 * 5, (
        "only calls in progress in the killed worker's two debates are repeated"
    )

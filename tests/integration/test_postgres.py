"""Debates in a real Postgres server. The tests start the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from moot import DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.cli.commands.doctor import inspect_database
from moot.config.model_settings import ModelSettings
from moot.debates.lifecycle import prune, shrink
from moot.models.registry import Models
from moot.plugins.postgres.postgres import IDLE_TIMEOUT, PostgresSql, wait_for_server
from moot.state.errors import DebateBusy, DebateNotFound, InputError
from moot.storage.checkpoints import open_saver
from moot.storage.journal import JournalKey
from moot.storage.rate_limiter import OPEN_AFTER_FAILURES
from moot.storage.records import open_records
from tests.support.fakes import FakeModel
from tests.support.history import forks_and_prompts
from tests.support.postgres_server import new_database, postgres_server, rows
from tests.support.transcripts import message_texts

pytestmark = pytest.mark.slow

TOPIC = "Should cities ban private cars from their centres?"
KEY = JournalKey("d1", 3, "turn", 0, 1, "digest")
FOUR_TURNS = DebateConfig(turns=4, seed=1, openings="sequential")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def url(server: str) -> str:
    return new_database(server)


def test_a_debate_runs_and_is_listed_shown_and_deleted(url: str) -> None:
    with open_debates(url) as debates:
        debate = debates.start(TOPIC, FOUR_TURNS, name="cars")
        document = debate.run()
        assert document["verdict"]["status"] == "ok"
        assert [(row.name, row.status, row.turns) for row in debates.rows()] == [("cars", "done", 4)]
        assert {key[1] for key in debates.records.journal.replies(debate.id)} == {"turn", "judge"}
    with open_debates(url) as debates:
        assert debates.get("cars").document() == document
        debates.get("cars").delete()
        with pytest.raises(DebateNotFound):
            debates.get("cars")
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "moot_journal", "moot_debates"):
        assert rows(url, f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608  # the list above


def test_debate_has_the_same_messages_as_in_sqlite(url: str, tmp_path: Path) -> None:
    with open_debates(url) as debates:
        there = debates.start(TOPIC, FOUR_TURNS).run()
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        here = debates.start(TOPIC, FOUR_TURNS).run()
    assert message_texts(there) == message_texts(here)


KILLED_SCRIPT = """
import os, signal, sys
from moot import DebateConfig, open_debates
from moot.runtime.environment import Environment
from tests.support.fakes import fake_reply
from tests.support.transcripts import message_texts

url, last = sys.argv[1], int(sys.argv[2])
calls = 0

async def complete(call, models, *, config=None):
    global calls
    calls += 1
    if calls == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return fake_reply(call)

with open_debates(url, environment=Environment(complete=complete)) as debates:
    debates.start("Should we?", DebateConfig(turns=4), name="killed").run()
"""


@pytest.mark.parametrize("last", [1, 3, 5, 6], ids=lambda last: f"in call {last}")
def test_a_killed_debate_is_resumed_and_no_finished_call_is_repeated(
    url: str, last: int, tmp_path: Path
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_SCRIPT, url, str(last)], check=False)
    assert done.returncode == -signal.SIGKILL
    finished = [digest for (digest,) in rows(url, "SELECT digest FROM moot_journal")]
    model = FakeModel()
    with open_debates(url, environment=model.environment()) as debates:
        document = debates.get("killed").run()
    whole = FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        uninterrupted = debates.start("Should we?", DebateConfig(turns=4)).run()
    assert message_texts(document) == message_texts(uninterrupted)
    assert len(finished) >= min(last - 1, 4)  # the two judge calls run at the same time
    called = Counter([*finished, *(call.digest for call in model.calls)])
    assert called == Counter(call.digest for call in whole.calls)


HOLDER_SCRIPT = """
import sys
from moot import open_debates
with open_debates(sys.argv[1]) as debates, debates.records.leases.hold(debates.get("held").id):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_process_cannot_run_a_debate_until_the_first_dies(url: str) -> None:
    with open_debates(url) as debates:
        debate = debates.start(TOPIC, FOUR_TURNS, name="held")
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER_SCRIPT, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(DebateBusy, match="in use"):
                debate.run()
            holder.kill()
    with open_debates(url) as debates:
        document = debates.get("held").run()
    assert document["status"] == "done"


def test_fork_makes_new_calls_and_leaves_its_source_unchanged(url: str) -> None:
    with open_debates(url) as debates:
        source = debates.start(TOPIC, FOUR_TURNS)
        original = source.run()
        fork = source.fork(after=2)
        forked = fork.run()
        assert source.document() == original
        assert sum(key[1] == "turn" for key in debates.records.journal.replies(fork.id)) == 2
    assert message_texts(forked)[:3] == message_texts(original)[:3]
    assert len(forked["transcript"]) == 5


def test_copied_thread_is_an_independent_debate(url: str) -> None:
    async def copy(source: str, target: str) -> tuple[Any, Any]:
        async with open_saver(url) as saver:
            await saver.acopy_thread(source, target)
            graph = build_graph(saver)
            states = [
                await graph.aget_state({"configurable": {"thread_id": key}}) for key in (source, target)
            ]
            return states[0].values, states[1].values

    with open_debates(url) as debates:
        source = debates.start(TOPIC, FOUR_TURNS)
        source.run()
        target = str(uuid.uuid4())
        original, copied = asyncio.run(copy(source.id, target))
        assert copied == original
        assert debates.get(target).row.parent == source.id
        assert len(debates.get(target).run(turns=1)["transcript"]) == 6
        assert len(source.document()["transcript"]) == 5


def test_deleting_a_thread_deletes_its_rows_in_all_tables(url: str) -> None:
    with open_debates(url) as debates:
        debate = debates.start(TOPIC, DebateConfig(turns=2), name="cars")
        debate.run()

    async def delete() -> None:
        async with open_saver(url) as saver:
            await saver.adelete_thread(debate.id)

    asyncio.run(delete())
    for table in ("checkpoints", "moot_journal", "moot_debates"):
        assert rows(url, f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608  # the list above


def test_rollback_of_a_run_restores_the_state_before_it(url: str) -> None:
    async def roll_back() -> tuple[Any, Any]:
        thread: Any = {"configurable": {"thread_id": str(uuid.uuid4())}}
        async with open_saver(url) as saver:
            graph = build_graph(saver)
            await graph.ainvoke({"topic": TOPIC}, thread, context=FOUR_TURNS)
            before = await graph.aget_state(thread)
            run = uuid.uuid4()
            doomed: Any = {**thread, "run_id": run, "metadata": {"run_id": str(run)}}
            await graph.ainvoke({"messages": [HumanMessage("Never mind")]}, doomed)
            await saver.adelete_for_runs([str(run)])
            return before, await graph.aget_state(thread)

    before, after = asyncio.run(roll_back())
    assert after.values == before.values
    assert after.next == ()


def test_unreachable_server_raises_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot open database"):
        open_debates(f"postgresql://postgres@/none?host={tmp_path}")


def test_a_worker_waits_for_a_server_that_cannot_be_reached_yet(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, failures, said = psycopg.connect, [psycopg.OperationalError("starting up")] * 2, list[str]()

    def connect_later(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return connect(*arguments, **options)

    monkeypatch.setattr(psycopg, "connect", connect_later)
    wait_for_server(lambda: open_records(url), said.append).close()
    assert said == ["cannot open database: starting up: waiting up to 60 s for the server"]


def test_checkpointer_of_the_server_reads_its_url_from_moot_db(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moot.storage.checkpoints import make

    async def name() -> str:
        async with make() as saver:
            return type(saver).__name__

    monkeypatch.setitem(os.environ, "MOOT_DB", url)
    assert asyncio.run(name()) == "MootPostgresSaver"


def test_cross_debate_memory_works_in_postgres(url: str) -> None:
    config = DebateConfig.model_validate(
        {
            "turns": 2,
            "judge": {"enabled": False},
            "debaters": [{"name": "Ada", "identity": "ada"}, {"name": "Bo"}],
            "memory": {"cross_debate": True},
        }
    )
    memories = []
    for _ in range(2):
        with open_debates(url, environment=FakeModel().environment()) as debates:
            debate = debates.start(TOPIC, config)
            debate.run()
            memories.append(debate.state().values["cross_debate_memory"])
    assert memories[0] == {}
    assert memories[1]["ada"][0]["topic"] == TOPIC


class _DisconnectingModel(FakeModel):
    """Closes all connections to the server at each message, and then tries a second run of the debate."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.refused = url, 0

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        if call.stream_as:
            await asyncio.to_thread(self._disconnect)
        return await super().complete(call, models, config=config)

    def _disconnect(self) -> None:
        rows(self.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        with open_debates(self.url, environment=FakeModel().environment()) as second:
            try:
                second.get("lost").run()
            except DebateBusy:
                self.refused += 1


def test_debate_survives_lost_connections_and_refuses_a_second_writer(url: str) -> None:
    model = _DisconnectingModel(url)
    with open_debates(url, environment=model.environment()) as debates:
        document = debates.start(TOPIC, FOUR_TURNS, name="lost").run()
    assert document["status"] == "done"
    assert len(document["transcript"]) == 5
    assert model.refused == 4
    assert max(Counter(call.digest for call in model.calls).values()) == 1


SUSPENDED_SCRIPT = """
import sys, time
from moot import DebateConfig, open_debates
from tests.support.fakes import FakeModel, fake_reply
from tests.support.waiting import wait_until

def reply(call):
    print(call.purpose, flush=True)
    if call.stream_as:
        sys.stdin.readline()
    return fake_reply(call)

with open_debates(sys.argv[1], environment=FakeModel(reply).environment()) as debates:
    debates.get("still").run()
"""


def test_idle_transaction_times_out_and_releases_its_rows(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.plugins.postgres.postgres.IDLE_TIMEOUT", IDLE_TIMEOUT.replace("10s", "200ms"))
    stopped = PostgresSql(url)
    for statement in ("CREATE TABLE held (n integer)", "INSERT INTO held VALUES (1)", "BEGIN"):
        stopped.execute(statement)
    stopped.execute("UPDATE held SET n = 2")
    rows(url, "UPDATE held SET n = 3")
    assert stopped.execute("SELECT n FROM held") == [(3,)]
    stopped.close()


@pytest.mark.timeout(60)  # the connection once waited for itself
def test_a_replaced_run_is_refused_and_its_connection_stays_usable(url: str) -> None:
    with closing(open_records(url)) as records:
        first = records.leases.acquire("d1")
        records.sql.execute("UPDATE moot_leases SET expires = 0")
        second = records.leases.acquire("d1")
        with pytest.raises(DebateBusy, match="'d1' was taken over by"):
            records.fenced_by(first).journal.put(KEY, "c1", Reply(text="too late"))
        records.fenced_by(second).journal.put(KEY, "c2", Reply(text="paid"))
        assert rows(url, "SELECT base_checkpoint FROM moot_journal") == [("c2",)]


def test_run_suspended_past_its_lease_writes_nothing_when_it_resumes(url: str) -> None:
    with open_debates(url, environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, FOUR_TURNS, name="still")
        stopped = subprocess.Popen(
            [sys.executable, "-c", SUSPENDED_SCRIPT, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with stopped:
            assert stopped.stdout is not None
            assert stopped.stdin is not None
            assert stopped.stderr is not None
            stopped.stdout.readline()
            stopped.send_signal(signal.SIGSTOP)
            with pytest.raises(DebateBusy):
                debate.run()
            debates.records.sql.execute("UPDATE moot_leases SET expires = 0")
            document = debate.run()
            journal = debates.records.journal.replies(debate.id)
            stopped.send_signal(signal.SIGCONT)
            stopped.stdin.close()
            assert "DebateBusy: debate 'still' was taken over by" in stopped.stderr.read()
        assert debate.document() == document
        assert debates.records.journal.replies(debate.id) == journal
    assert rows(url, "SELECT epoch, token FROM moot_leases WHERE debate = %s", debate.id) == [(3, "")]


def test_forks_replays_and_prompts_work_after_pruning(url: str) -> None:
    with open_debates(url, environment=FakeModel().environment()) as debates:
        debate = debates.start(TOPIC, FOUR_TURNS, name="d")
        debate.run()
        before = forks_and_prompts(debate)
        dropped, stored = prune(debate.session)
        assert 0 < dropped < stored
        assert forks_and_prompts(debate) == before
        assert shrink(debates.records.sql, pruned=True)
        assert message_texts(debates.replay("d").run()) == message_texts(before["document"])
        assert len(debate.run(turns=1)["transcript"]) == 6
        assert all(each.ok for each in inspect_database(debates))


def test_endpoint_waits_rates_and_slots_are_shared_by_connections(url: str) -> None:
    opened = [open_records(url) for _ in range(3)]
    first, second, third = (each.rate_limiter for each in opened)
    first.record_wait("here", 20.0)
    assert 19 < second.wait_s("here") <= 20
    for _ in range(OPEN_AFTER_FAILURES):
        first.record_failure("there")
    assert second.circuit_is_open("there")
    opened[0].sql.execute("UPDATE moot_endpoints SET until = 1")
    assert [first.wait_s("there"), second.wait_s("there")] == [0.0, pytest.approx(5, abs=0.5)]
    rates = ModelSettings(requests_per_minute=60)
    assert [each.reserve_s("here", rates, 1) for each in (first, second, first)] == [
        pytest.approx(wait, abs=0.3) for wait in (0, 0, 1)
    ]
    second.record_wait("long", 50_000.0)
    assert 3590 < first.wait_s("long") <= 3600
    assert list(second.endpoint_waits(60)) == ["long"]
    opened[0].sql.execute("UPDATE moot_endpoints SET until = 4e9, tokens = 4e9 WHERE endpoint = 'long'")
    assert not first.circuit_is_open("long")
    assert second.endpoint_waits(60) == {}
    first.record_wait("long", 3000.0)
    opened[0].sql.execute("UPDATE moot_endpoints SET until = 1 WHERE endpoint = 'probe long'")
    assert [third.wait_s("long"), first.wait_s("long") > 2900] == [0.0, True]
    assert first.acquire_slot("here", 1)
    assert second.acquire_slot("here", 1) is None
    for each in opened:
        each.close()

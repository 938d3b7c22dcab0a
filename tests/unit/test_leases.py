"""Leases: only one run at a time writes a debate."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from moot import DebateConfig, build_graph, open_debates
from moot.calls.model_calls import Reply
from moot.state.errors import DebateBusy, InputError
from moot.storage.checkpoints import open_saver
from moot.storage.journal import JournalKey
from moot.storage.leases import LEASE_S, ProcessIdentity, this_process
from moot.storage.records import Records, open_records
from tests.support.fakes import FakeModel
from tests.support.waiting import wait_until

KEY = JournalKey("d1", 3, "turn", 0, 1, "digest")
OTHER_MACHINE = ProcessIdentity("another/boot/space", 7, "1")


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    opened = open_records(str(tmp_path / "m.sqlite"))
    yield opened
    opened.close()


def _set_holder(records: Records, holder: ProcessIdentity) -> None:
    records.sql.execute("UPDATE moot_leases SET holder = ?", (holder.to_text(),))


def _expire(records: Records) -> None:
    records.sql.execute("UPDATE moot_leases SET expires = expires - ?", (LEASE_S + 1,))


def test_replaced_run_cannot_write(records: Records) -> None:
    first = records.leases.acquire("d1")
    stale = records.fenced_by(first)
    stale.journal.put(KEY, "c1", Reply(text="paid"))
    _expire(records)
    stale.journal.put(KEY, "c2", Reply(text="paid late, while nobody else has it"))
    second = records.leases.acquire("d1")
    assert (first.epoch, second.epoch) == (1, 2)
    with pytest.raises(DebateBusy, match=f"'d1' was taken over by process {os.getpid()} while this run"):
        stale.journal.put(KEY, "c3", Reply(text="too late"))
    with pytest.raises(DebateBusy):
        stale.catalogue.update("d1", status="paused")
    with pytest.raises(DebateBusy):
        stale.follow_ups.note_revisit("d1", {"revisit": "2027-01-01"})
    records.leases.release(first)  # has no effect: the lease belongs to `second`
    assert records.leases.is_held("d1")
    assert records.sql.execute("SELECT base_checkpoint FROM moot_journal ORDER BY base_checkpoint") == [
        ("c1",),
        ("c2",),
    ]


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        (replace(this_process(), started="0"), False),  # another process has the same id
        (replace(this_process(), pid=2**22 + 1), False),
        (this_process(), True),
        (OTHER_MACHINE, True),
    ],
    ids=["reused process id", "ended process", "running process", "other machine"],
)
def test_lease_of_a_dead_local_process_is_free_at_once(
    records: Records, holder: ProcessIdentity, refused: bool
) -> None:
    records.leases.acquire("d1")
    _set_holder(records, holder)
    assert records.leases.is_held("d1") == refused
    if refused:
        with pytest.raises(DebateBusy, match=f"in use by {holder.name}"):
            records.leases.acquire("d1")
        _expire(records)
        assert not records.leases.is_held("d1")
    assert records.leases.acquire("d1").epoch == 2


@pytest.mark.parametrize("damaged", ["", "x", "null", "[]", '{"pid": 1}'])
def test_a_lease_with_a_damaged_holder_ends_when_it_expires(records: Records, damaged: str) -> None:
    records.leases.acquire("d1")
    records.sql.execute("UPDATE moot_leases SET holder = ?, token = 'x'", (damaged,))
    with pytest.raises(DebateBusy):
        records.leases.acquire("d1")
    _expire(records)
    assert records.leases.acquire("d1").epoch == 2


def test_a_clock_that_jumps_ahead_takes_no_lease_from_a_live_process(records: Records) -> None:
    records.leases.acquire("d1")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        _set_holder(records, replace(this_process(), pid=other.pid, started=started))
        _expire(records)
        with pytest.raises(DebateBusy, match=f"in use by process {other.pid}"):
            records.leases.acquire("d1")
        other.send_signal(signal.SIGSTOP)
        assert wait_until(lambda: not records.leases.is_held("d1"))
        other.kill()


def test_a_deleted_debate_leaves_no_lease(records: Records) -> None:
    with records.leases.hold("d1") as lease:
        records.forget("d1")
        with pytest.raises(DebateBusy, match="was deleted while"):
            records.fenced_by(lease).catalogue.update("d1", status="paused")
    with records.leases.hold("d1"):
        pass
    assert not records.sql.execute("SELECT * FROM moot_leases")


def test_a_lease_of_a_killed_process_and_no_debate_is_deleted(records: Records) -> None:
    records.leases.acquire("d1")
    records.leases.acquire("d2")
    records.sql.execute("UPDATE moot_leases SET expires = 0 WHERE debate = 'd1'")
    records.leases.delete_orphans()
    assert records.sql.execute("SELECT debate FROM moot_leases") == [("d2",)]


def test_zombie_process_counts_as_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE, text=True) as ended:
        assert ended.stdout is not None
        ended.stdout.read()
        stat = Path(f"/proc/{ended.pid}/stat")
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        assert replace(this_process(), pid=ended.pid).is_dead()


def test_is_held_does_not_change_the_lease(records: Records, tmp_path: Path) -> None:
    before = records.sql.execute("SELECT * FROM moot_leases")
    assert not records.leases.is_held("d1")
    assert records.sql.execute("SELECT * FROM moot_leases") == before
    lease = records.leases.acquire("d1")
    row = records.sql.execute("SELECT * FROM moot_leases")
    others = open_records(str(tmp_path / "m.sqlite"))
    assert others.leases.is_held("d1")
    others.close()
    assert records.sql.execute("SELECT * FROM moot_leases") == row
    records.leases.release(lease)
    assert not records.leases.is_held("d1")


def test_lease_is_renewed_only_while_its_run_exists(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moot.storage.leases.RENEW_S", 0.01)
    lease: Any = records.leases.acquire("d1")
    _expire(records)
    while not records.leases.is_held("d1"):
        pass
    del lease  # an abandoned run: nothing can release its lease
    _expire(records)
    assert records.leases.acquire("d1").epoch == 2


def test_only_the_holder_can_enter_a_lease_again(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "m.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start("Why?", DebateConfig(turns=1))
        with debate.session.writing() as held:
            with held.writing():
                held.note_status("paused")
            with pytest.raises(DebateBusy):
                debate.run()
            with pytest.raises(DebateBusy):
                debate.session.update({"last_inbox_number": 0})
            assert debate.is_running()
        assert debate.run()["status"] == "done"


def test_graph_run_keeps_its_lease_and_writes_nothing_once_replaced(tmp_path: Path) -> None:
    model = FakeModel()

    async def scenario() -> None:
        async with open_saver(str(tmp_path / "m.sqlite")) as saver:
            graph = build_graph(saver, environment=model.environment())
            thread: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}
            config = DebateConfig(turns=3)
            records: Records = saver.records  # type: ignore[attr-defined]
            async with aclosing(graph.astream({"topic": "T?"}, thread, context=config)) as parts:  # type: ignore[type-var]
                await anext(parts)
                with pytest.raises(DebateBusy):
                    await graph.ainvoke(None, thread, context=config)
                with pytest.raises(DebateBusy):
                    await graph.aupdate_state(thread, {"last_inbox_number": 1})
                _expire(records)
                assert (await graph.ainvoke(None, thread, context=config))["status"] == "done"
                ended, rows = await graph.aget_state(thread), records.sql.execute("SELECT * FROM checkpoints")
                with pytest.raises(DebateBusy, match="taken over"):
                    async for _ in parts:
                        pass
            assert await graph.aget_state(thread) == ended
            assert records.sql.execute("SELECT * FROM checkpoints") == rows

    asyncio.run(scenario())


def test_a_debate_whose_state_is_lost_cannot_be_forked(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        debate = debates.start("Trams?", DebateConfig())
        debate.session.records.sql.execute("UPDATE checkpoints SET thread_id = 'x'")
        with pytest.raises(InputError, match="never started"):
            debate.fork()

"""Journal, catalogue and leases, on a real SQLite file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moot.calls.effects import Reply
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, InputError
from moot.storage.catalogue import DebateRow, thread_id_of
from moot.storage.journal import Journal, JournalKey
from moot.storage.records import Records, open_records
from moot.storage.sqlite import SqliteSql

KEY = JournalKey("debate", 3, "turn", 0, 1, "digest")
ROW = DebateRow(
    id=thread_id_of("one"),
    name="one",
    topic="Should we?",
    protocol="round-robin",
    status="new",
    turns=0,
    tokens=0,
    cost_usd=0.0,
    parent="",
    created_at="2026-01-01",
    updated_at="2026-01-01",
)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    opened = open_records(str(tmp_path / "moot.sqlite"))
    yield opened
    opened.close()


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[SqliteSql]:
    opened = SqliteSql(tmp_path / "journal.sqlite")
    yield opened
    opened.close()


def _journal(sql: SqliteSql, children: dict[str, list[str]]) -> Journal:
    def has_other_child(debate: str, checkpoint: str, present: str) -> bool:
        return any(child != present for child in children.get(checkpoint, []))

    return Journal(sql, has_other_child)


def test_a_reply_is_served_to_the_same_request_on_the_same_checkpoint(sql: SqliteSql) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(KEY, "c1") == Reply(text="yes")


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, debate="x"),
        replace(KEY, step=4),
        replace(KEY, node="judge"),
        replace(KEY, batch=1),
        replace(KEY, call_index=0),
        replace(KEY, digest="else"),
    ],
)
def test_a_reply_is_never_given_to_another_request(sql: SqliteSql, other: JournalKey) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(other, "c1") is None


def test_after_a_crash_that_lost_the_checkpoint_the_reply_is_served(sql: SqliteSql) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "lost", Reply(text="yes"))
    assert journal.get(KEY, "made-anew") == Reply(text="yes")


def test_after_an_update_in_place_the_reply_is_served(sql: SqliteSql) -> None:
    journal = _journal(sql, {"c1": ["updated"]})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(KEY, "updated") == Reply(text="yes")


def test_a_fork_of_a_branch_that_went_on_samples_anew(sql: SqliteSql) -> None:
    journal = _journal(sql, {"c1": ["next", "fork"]})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(KEY, "fork") is None
    assert journal.get(KEY, "c1") is None  # run again from the very checkpoint that went on


def test_the_first_reply_of_a_key_stays(sql: SqliteSql) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="first"))
    journal.put(KEY, "c1", Reply(text="second"))
    assert journal.get(KEY, "c1") == Reply(text="first")


def test_a_catalogued_debate_is_found_by_name_id_and_beginning(records: Records) -> None:
    records.catalogue.add(ROW)
    for name in ("one", ROW.id, ROW.id[:6]):
        assert records.catalogue.find(name) == ROW


def test_an_unknown_debate_is_not_found(records: Records) -> None:
    with pytest.raises(DebateNotFound, match="'nine'"):
        records.catalogue.find("nine")


def test_an_ambiguous_beginning_asks_for_more(records: Records) -> None:
    for last in "12":
        records.catalogue.add(replace(ROW, id=f"abcd{last}", name=f"n{last}"))
    with pytest.raises(InputError, match="2 debate ids"):
        records.catalogue.find("abcd")


def test_a_taken_name_is_refused_with_the_command_that_goes_on(records: Records) -> None:
    records.catalogue.add(ROW)
    with pytest.raises(DebateExists, match="moot resume one"):
        records.catalogue.add(replace(ROW, id="another"))


def test_rows_come_with_the_latest_first_and_can_be_updated_and_deleted(records: Records) -> None:
    records.catalogue.add(ROW)
    records.catalogue.add(replace(ROW, id="b", name="b", updated_at="2026-01-02"))
    records.catalogue.update("b", status="done", turns=4)
    assert [(row.name, row.status) for row in records.catalogue.rows()] == [("b", "done"), ("one", "new")]
    records.catalogue.delete("b")
    assert [row.name for row in records.catalogue.rows()] == ["one"]


def test_a_name_always_stands_for_the_same_uuid() -> None:
    assert thread_id_of("my debate") == thread_id_of("my debate")
    assert thread_id_of(ROW.id) == ROW.id


HOLD = """
import sys
from moot.storage.records import open_records
records = open_records(sys.argv[1])
lease = records.leases.acquire("d1")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_with_the_holders_pid_and_a_killed_holder_lets_go(tmp_path: Path) -> None:
    path = str(tmp_path / "moot.sqlite")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        ours = open_records(path)
        ours.catalogue.add(replace(ROW, id="d1", name="my talk"))
        with pytest.raises(DebateBusy, match=f"'my talk' is in use by process {holder.pid}") as caught:
            ours.leases.acquire("d1")
        assert caught.value.pid == holder.pid
        assert "moot pause 'my talk'" in str(caught.value)
        second = ours.leases.acquire("d2")  # another debate of the same file is free
        holder.kill()
        holder.wait()
    with ours.leases.hold("d1"):
        pass
    ours.leases.release(second)
    ours.close()


def test_a_debate_that_a_dead_process_left_running_is_listed_as_paused(records: Records) -> None:
    records.catalogue.add(replace(ROW, status="running"))
    assert [row.status for row in records.rows()] == ["paused"]
    assert records.find("one").status == "paused"
    with records.leases.hold(ROW.id):
        assert [row.status for row in records.rows()] == ["running"]
        assert records.find("one").status == "running"


@pytest.mark.parametrize(("model", "mode"), [("dear", 2), ("offline", 1)])
def test_a_reply_that_was_paid_survives_a_loss_of_power(
    sql: SqliteSql, monkeypatch: pytest.MonkeyPatch, model: str, mode: int
) -> None:
    seen: list[int] = []
    connection = sql._connection

    class Watched:
        def execute(self, statement: str, parameters: object = ()) -> object:
            if statement.startswith("INSERT"):
                seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])
            return connection.execute(statement, parameters)  # type: ignore[arg-type]  # as they were given

        def close(self) -> None:
            connection.close()

    monkeypatch.setattr(sql, "_connection", Watched())
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="yes", model=model))
    assert [*seen, connection.execute("PRAGMA synchronous").fetchone()[0]] == [mode, 1]

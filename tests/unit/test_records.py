"""Journal, catalogue and leases, on a real SQLite file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.state.errors import DebateBusy, DebateExists, DebateNotFound, InputError
from moot.storage.catalogue import DebateRow, thread_id_of
from moot.storage.journal import Journal, JournalKey
from moot.storage.records import Records, open_records
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel, fake_reply

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


def test_reply_is_returned_to_the_same_request_on_the_same_checkpoint(sql: SqliteSql) -> None:
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
def test_reply_is_not_returned_to_another_request(sql: SqliteSql, other: JournalKey) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(other, "c1") is None


def test_reply_is_returned_after_a_crash_that_lost_the_checkpoint(sql: SqliteSql) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "lost", Reply(text="yes"))
    assert journal.get(KEY, "made-anew") == Reply(text="yes")


def test_reply_is_returned_after_a_state_update(sql: SqliteSql) -> None:
    journal = _journal(sql, {"c1": ["updated"]})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(KEY, "updated") == Reply(text="yes")


def test_reply_is_not_returned_to_a_fork_of_a_continued_branch(sql: SqliteSql) -> None:
    journal = _journal(sql, {"c1": ["next", "fork"]})
    journal.put(KEY, "c1", Reply(text="yes"))
    assert journal.get(KEY, "fork") is None
    assert journal.get(KEY, "c1") is None  # a second run from the continued checkpoint


def test_journal_keeps_the_first_reply_of_a_key(sql: SqliteSql) -> None:
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="first"))
    journal.put(KEY, "c1", Reply(text="second"))
    assert journal.get(KEY, "c1") == Reply(text="first")


def test_debate_is_found_by_name_id_and_id_prefix(records: Records) -> None:
    records.catalogue.add(ROW)
    records.catalogue.note_begun(ROW.id)
    for name in ("one", ROW.id, ROW.id[:6]):
        assert records.catalogue.find(name) == replace(ROW, status="running")


def test_row_that_is_not_a_debate_yet_is_found_by_its_whole_name_only(records: Records) -> None:
    records.catalogue.add(ROW)
    assert records.catalogue.find("one") == records.catalogue.find(ROW.id) == ROW
    for beginning in ("on", ROW.id[:6]):
        with pytest.raises(DebateNotFound, match=f"'{beginning}'"):
            records.catalogue.find(beginning)


@pytest.mark.parametrize(
    "config", [DebateConfig(turns=1), DebateConfig(protocol="council", rounds=1)], ids=["turns", "council"]
)
def test_debate_in_its_first_call_is_found_by_its_id_prefix(tmp_path: Path, config: DebateConfig) -> None:
    database, found = str(tmp_path / "moot.sqlite"), list[DebateRow]()

    def reply(call: ModelCall) -> Reply:
        with closing(open_records(database)) as other:
            found.append(other.catalogue.find(ROW.id[:6]))
        return fake_reply(call)

    with open_debates(database, environment=FakeModel(reply).environment()) as debates:
        debates.start("A long topic? " * 200, config, name="one").run()
    assert (found[0].name, found[0].status, found[0].tokens) == ("one", "running", 0)


def test_an_unknown_debate_is_not_found(records: Records) -> None:
    with pytest.raises(DebateNotFound, match="'nine'"):
        records.catalogue.find("nine")


def test_ambiguous_id_prefix_is_rejected(records: Records) -> None:
    for last in "12":
        records.catalogue.add(replace(ROW, id=f"abcd{last}", name=f"n{last}", status="running"))
    with pytest.raises(InputError, match=r"^'abcd' is the beginning of n1, n2: write more of the one"):
        records.catalogue.find("abcd")


def test_existing_name_is_rejected_with_the_way_to_continue(records: Records) -> None:
    records.catalogue.add(ROW)
    with pytest.raises(DebateExists, match=r"start\(…, if_exists=\"resume\"\)"):
        records.catalogue.add(replace(ROW, id="another"))


def test_rows_list_the_latest_first_and_can_be_updated_and_deleted(records: Records) -> None:
    records.catalogue.add(ROW)
    records.catalogue.add(replace(ROW, id="b", name="b", updated_at="2026-01-02"))
    records.catalogue.update("b", status="done", turns=4)
    assert [(row.name, row.status) for row in records.catalogue.rows()] == [("b", "done"), ("one", "new")]
    records.catalogue.delete("b")
    assert [row.name for row in records.catalogue.rows()] == ["one"]


def test_thread_id_of_a_name_is_always_the_same() -> None:
    assert thread_id_of("my debate") == thread_id_of("my debate")
    assert thread_id_of(ROW.id) == ROW.id


HOLDER_SCRIPT = """
import sys
from moot.storage.records import open_records
records = open_records(sys.argv[1])
lease = records.leases.acquire("d1")
print("held", flush=True)
sys.stdin.read()
"""


def test_lease_blocks_other_processes_until_its_holder_dies(tmp_path: Path) -> None:
    path = str(tmp_path / "moot.sqlite")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER_SCRIPT, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
        second = ours.leases.acquire("d2")  # the lease of another debate in the same file is free
        holder.kill()
        holder.wait()
    with ours.leases.hold("d1"):
        pass
    ours.leases.release(second)
    ours.close()


def test_running_debate_without_a_lease_is_listed_as_paused(records: Records) -> None:
    records.catalogue.add(replace(ROW, status="running"))
    assert [row.status for row in records.rows()] == ["paused"]
    assert records.find("one").status == "paused"
    with records.leases.hold(ROW.id):
        assert [row.status for row in records.rows()] == ["running"]
        assert records.find("one").status == "running"


@pytest.mark.parametrize(("model", "mode"), [("dear", 2), ("offline", 1)])
def test_journal_syncs_the_disk_for_replies_of_charged_models(
    sql: SqliteSql, monkeypatch: pytest.MonkeyPatch, model: str, mode: int
) -> None:
    modes: list[int] = []
    connection = sql._connection

    class Watched:
        def execute(self, statement: str, parameters: object = ()) -> object:
            if statement.startswith("INSERT"):
                modes.append(connection.execute("PRAGMA synchronous").fetchone()[0])
            return connection.execute(statement, parameters)  # type: ignore[arg-type]  # the arguments of the caller

        def close(self) -> None:
            connection.close()

    monkeypatch.setattr(sql, "_connection", Watched())
    journal = _journal(sql, {})
    journal.put(KEY, "c1", Reply(text="yes", model=model))
    assert [*modes, connection.execute("PRAGMA synchronous").fetchone()[0]] == [mode, 1]

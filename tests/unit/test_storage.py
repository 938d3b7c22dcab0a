"""Databases that are shared, read-only, damaged, newer, or made by another program."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import cast

import ormsgpack
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG

from moot import DebateConfig, open_debates
from moot.cli.terminal import write_file
from moot.state.errors import ConfigError, DebateBusy, InputError, StorageError
from moot.state.settings import sqlite_path
from moot.storage import checkpoints, sqlite
from moot.storage.checkpoints import CompressingSerializer
from moot.storage.records import Records, open_records, records_of
from moot.storage.sqlite import DATABASE_VERSION, Permit, SqliteSql
from tests.support.fakes import FakeModel
from tests.support.waiting import LONG_TIMEOUT_S


def _debate(path: Path, name: str = "d") -> None:
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        debates.start("Which queue?", DebateConfig(turns=2), name=name).run()


def test_opening_a_new_database_waits_for_another_writer(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE first (x)")
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO first VALUES (1)")
        committing = threading.Event()

        def commit() -> None:
            committing.set()
            other.execute("COMMIT")

        done = threading.Timer(0.1, commit)  # a slow machine commits before the opening waits, and passes
        done.start()
        records = open_records(str(path))
        assert committing.is_set()
        assert records.sql.execute("SELECT x FROM first") == [(1,)]
        records.close()
        done.join()


@pytest.mark.parametrize("durable", [False, True])
def test_an_interrupt_at_any_point_leaves_the_database_usable(durable: bool, tmp_path: Path) -> None:
    """Python handles Ctrl-C where a function starts, and where a call has returned."""
    records = open_records(str(tmp_path / "m.sqlite"))
    sql = cast(SqliteSql, records.sql)
    sql.execute("CREATE TABLE mine (x)")
    insert, permit = (
        ("INSERT INTO mine VALUES (1)", ()),
        Permit(("SELECT 1", ()), bool, lambda _: DebateBusy("")),
    )
    points, interrupted = 0, True
    while interrupted:
        interrupted, left = False, points

        def interrupt(frame: FrameType, event: str, called: object) -> None:
            nonlocal interrupted, left
            if event in ("call", "c_return") and frame.f_code.co_filename == sqlite.__file__:
                left -= 1
                if left < 0 and not interrupted:
                    interrupted = True
                    raise KeyboardInterrupt

        before = len(sql.execute("SELECT x FROM mine"))
        try:
            sys.setprofile(interrupt)
            sql.transact([insert], permit, durable=durable)
        except KeyboardInterrupt:
            # Another thread can write while the exception is handled, as during the cleanup of a run.
            with ThreadPoolExecutor() as pool:
                assert pool.submit(sql.transact, [insert], None).result(timeout=LONG_TIMEOUT_S) == []
        finally:
            sys.setprofile(None)
        assert len(sql.execute("SELECT x FROM mine")) - before in (1, 2)
        assert sql.execute("PRAGMA synchronous") == [(1,)]
        points += 1
    assert points > 10
    records.close()


def test_space_is_required_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteSql(tmp_path / "m.sqlite")) as sql:
        sql.require_space(65_536)
        usage = shutil.disk_usage(tmp_path)._replace(free=100_000)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(StorageError, match="needs 64 KiB for the next replies: the disk is full"):
            sql.require_space(65_536)


def test_only_the_owner_can_read_the_database_files(tmp_path: Path) -> None:
    records = open_records(str(tmp_path / "m.sqlite"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    records.close()
    assert set(modes.values()) == {0o600}
    assert "m.sqlite-wal" in modes


@pytest.mark.parametrize(
    ("content", "says"), [(b"what is this? " * 99, "not an SQLite database"), (None, "cannot open")]
)
def test_a_path_that_is_not_a_database_is_rejected(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "m.sqlite"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        open_records(str(path))


def test_a_run_stopped_by_a_full_disk_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.sqlite"
    environment = FakeModel().environment()
    with open_debates(str(path), environment=environment) as debates:
        debate = debates.start("Which queue?", DebateConfig(turns=8), name="d")
        sql = debates.records.sql
        pages = sql.execute("PRAGMA page_count")[0][0]
        sql.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="the disk is full: free some space"):
            debate.run()
        sql.execute("PRAGMA max_page_count = 1000000")
        assert debate.run()["status"] == "done"


@contextmanager
def _unwritable(folder: Path) -> Iterator[None]:
    """Make a folder read-only. Skip the test for the superuser, who can write everywhere."""
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    folder.chmod(0o500)
    try:
        yield
    finally:
        folder.chmod(0o700)


def test_a_debate_in_a_read_only_folder_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    _debate(folder / "m.sqlite")
    with _unwritable(folder), open_debates(str(folder / "m.sqlite")) as debates:
        assert len(debates.get("d").document()["transcript"]) == 3


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY])
def test_a_database_without_write_access_is_read_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = tmp_path / "m.sqlite"
    _debate(path)

    def refused(connection: object) -> None:
        if connection not in immutable:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorcode = code
            raise error

    immutable: list[object] = []
    connect = sqlite3.connect

    def connecting(address: str, **options: object) -> sqlite3.Connection:
        connection = connect(address, **options)  # type: ignore[call-overload]  # as it was called
        if "immutable" in address:
            immutable.append(connection)
        return connection  # type: ignore[no-any-return]  # of the stub

    monkeypatch.setattr("moot.storage.sqlite._switch_to_wal", refused)
    monkeypatch.setattr("moot.storage.sqlite.sqlite3.connect", connecting)
    before = path.read_bytes()
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        assert [row.status for row in debates.rows()] == ["done"]
        assert len(debates.get("d").document()["transcript"]) == 3
        with pytest.raises(StorageError, match="read-only: allow writing"):
            debates.get("d").say("Anyone?")
    assert path.read_bytes() == before


def test_a_database_of_a_newer_version_is_rejected_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {DATABASE_VERSION + 1}")
    with pytest.raises(InputError, match=r"newer version of Moot .*update Moot"):
        open_records(str(path))
    with closing(sqlite3.connect(path)) as file:
        assert not file.execute("SELECT * FROM sqlite_master").fetchall()


def test_a_database_stores_its_version(tmp_path: Path) -> None:
    records = open_records(str(tmp_path / "m.sqlite"))
    assert records.sql.version() == DATABASE_VERSION
    records.close()


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (1, r"a newer version of Moot .*: update Moot"),
        (3, r"another version of Moot .*start the debate again"),
    ],
    ids=["newer", "older"],
)
def test_a_state_of_another_schema_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int, says: str
) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "m.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Which queue?", DebateConfig(turns=2))
        monkeypatch.setattr("moot.state.conversation.SCHEMA_VERSION", known)
        for use in (debate.run, debate.document):
            with pytest.raises(InputError, match=says):
                use()
    assert not model.calls


def test_tables_with_an_additional_column_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    _debate(path)
    with closing(sqlite3.connect(path)) as file:
        for table in ("moot_journal", "moot_inbox", "moot_debates", "moot_failed_runs"):
            file.execute(f"ALTER TABLE {table} ADD COLUMN later TEXT")
    _debate(path, "e")
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        assert debates.get("e").say("Anyone?") == 1


def test_loading_a_checkpoint_calls_no_stored_function(tmp_path: Path) -> None:
    marker = tmp_path / "owned"
    blob = ormsgpack.packb(
        ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, ormsgpack.packb(("os", "system", f"touch {marker}")))
    )
    serializer = CompressingSerializer()
    for tag, value in (("msgpack", blob), ("zlib+msgpack", zlib.compress(blob))):
        serializer.loads_typed((tag, value))
        serializer.with_msgpack_allowlist([]).loads_typed((tag, value))
    assert not marker.exists()


def test_a_decompression_bomb_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_INFLATED", 1000)
    with pytest.raises(StorageError, match="use another database"):
        CompressingSerializer().loads_typed(("zlib+msgpack", zlib.compress(b"\0" * 10_000)))


def test_write_file_does_not_follow_a_planted_symlink(tmp_path: Path) -> None:
    victim, output = tmp_path / "victim", tmp_path / "out.json"
    victim.write_text("precious")
    (tmp_path / "out.json.part").symlink_to(victim)
    write_file(output, "{}")
    assert victim.read_text() == "precious"
    assert output.read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.json.part", "victim"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_follows_the_umask_and_an_existing_one_keeps_its_mode(
    tmp_path: Path, mask: int, mode: int
) -> None:
    new, existing = tmp_path / "new.html", tmp_path / "existing.html"
    existing.touch()
    existing.chmod(0o640)
    before = os.umask(mask)
    try:
        write_file(new, "text")
        write_file(existing, "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == mode
    assert stat.S_IMODE(existing.stat().st_mode) == 0o640
    assert existing.read_text() == "text"


def test_a_connection_is_closed_if_its_database_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    path.write_bytes(b"no database " * 99)
    with pytest.raises(InputError):
        SqliteSql(path)
    if sys.platform == "linux":
        opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.exists()]
        assert str(path) not in opened


def test_records_of_another_checkpointer_are_closed_with_it() -> None:
    saver = InMemorySaver()
    records: Records = records_of(saver)
    del saver
    gc.collect()
    with pytest.raises(StorageError, match="closed"):
        records.sql.execute("SELECT 1")


@pytest.mark.parametrize("database", [":memory:", "sqlite:///:memory:"])
def test_in_memory_database_is_kept_until_it_is_closed_and_leaves_no_file(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_debates(database) as debates:
        debates.start("Trams?", DebateConfig(turns=2), name="trams").run()
        assert debates.get("trams").is_over()
        assert list(tmp_path.rglob("moot.sqlite"))
    assert not list(tmp_path.iterdir())
    assert not list(Path.cwd().glob(":memory:*"))


def test_in_memory_database_on_the_command_line_is_an_error() -> None:
    with pytest.raises(ConfigError, match="give a file path"):
        sqlite_path(":memory:")

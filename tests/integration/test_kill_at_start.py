"""A process killed at any write while it starts or imports a debate."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from moot import DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.debates import lifecycle
from moot.debates.session import DebateSession
from moot.state.errors import DebateNotFound, InputError
from moot.storage.catalogue import Catalogue
from moot.storage.checkpoints import MootSqliteSaver
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel, fake_reply
from tests.support.waiting import LONG_TIMEOUT_S

LONG_TOPIC = "Which queue?\n\nWe send 40 jobs a second."
"""Topic in which a model finds the question."""
CONFIG = DebateConfig(protocol="council", rounds=1, model="dear")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


STARTING = ((MootSqliteSaver, "aput"), (MootSqliteSaver, "aput_writes"), (Catalogue, "update"))
DELETING = ((SqliteSql, "execute"), (SqliteSql, "transact"))
"""Methods that write while a debate is created or deleted."""


def _database_copies(folder: Path, patch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> list[Path]:
    """Copy the database before each call of the methods; return the copies."""
    copies: list[Path] = []

    def copy_database() -> None:
        copies.append(folder / f"killed-{len(copies)}.sqlite")
        with (
            closing(sqlite3.connect(folder / "whole.sqlite")) as source,
            closing(sqlite3.connect(copies[-1])) as copy,
        ):
            source.backup(copy)
            with copy:  # expire the lease of the killed process
                copy.execute("UPDATE moot_leases SET expires = 0")

    for kind, name in methods or STARTING:
        write = getattr(kind, name)

        def copy_then_write(*arguments: object, write: object = write, **named: object) -> object:
            copy_database()
            return write(*arguments, **named)  # type: ignore[operator]  # the wrapped method

        patch.setattr(kind, name, copy_then_write)
    return copies


def test_a_killed_start_leaves_a_complete_debate_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = FakeModel().environment()
    with monkeypatch.context() as patch:
        copies = _database_copies(tmp_path, patch)
        with open_debates(str(tmp_path / "whole.sqlite"), environment=environment) as debates:
            debates.start("Which queue?", CONFIG, name="early")
    fates = []
    for copy in copies:
        with open_debates(str(copy), environment=environment) as debates:
            shown = [row.name for row in debates.rows()]
            try:
                debate = debates.get("early")
            except DebateNotFound:
                assert not shown
                fates.append("gone")
                continue
            assert debate.config().to_json() == CONFIG.to_json()
            fates.append("whole")
    assert fates == sorted(fates), "a debate that was stored is gone later"
    assert {"gone", "whole"} == set(fates)


def test_a_killed_import_leaves_a_debate_that_a_resume_completes_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = FakeModel().environment()
    talk = "\n\n".join(f"{who}: It is so, for reason {n}." for n in range(60) for who in ("Ann", "Bob"))
    with monkeypatch.context() as patch:
        copies = _database_copies(tmp_path, patch)
        with open_debates(str(tmp_path / "whole.sqlite"), environment=environment) as debates:
            whole = debates.import_transcript(talk, topic="Is it so?", name="early").document()
    fates = []
    for copy in copies:
        with open_debates(str(copy), environment=environment) as debates:
            shown = [row.name for row in debates.rows()]
            try:
                debate = debates.get("early")
            except DebateNotFound:
                fates.append(False)
                assert not shown
                continue
            fates.append(True)
            assert debate.row.status == "done" or debate.state().tasks, "ended, but shown as paused"
            debate.run()
            document = debate.document()
            assert document["transcript"] == whole["transcript"]
            assert document["summaries"] == whole["summaries"]
            assert [row.status for row in debates.rows()] == ["done"]
    assert fates == sorted(fates), "a transcript that was stored is gone later"
    assert {False, True} == set(fates)


def test_a_killed_deletion_leaves_the_whole_debate_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fates = []
    with open_debates(str(tmp_path / "whole.sqlite"), environment=FakeModel().environment()) as debates:
        debate = debates.start("Which queue?", CONFIG, name="early")
        whole = debate.run()["transcript"]
        with monkeypatch.context() as patch:
            copies = _database_copies(tmp_path, patch, *DELETING)
            debate.delete()
    for copy in copies:
        with open_debates(str(copy), environment=FakeModel().environment()) as debates:
            tables = [*debates.records.sql.checkpoint_tables, *(t.name for t in debates.records.tables())]
            rows = [debates.records.sql.execute(f"SELECT count(*) FROM {table}")[0][0] for table in tables]  # noqa: S608  # names of tables
            fates.append(bool(debates.rows()))
            assert debates.get("early").document()["transcript"] == whole if fates[-1] else not any(rows)
    assert fates == sorted(fates, reverse=True)
    assert {False, True} == set(fates)


def test_a_debate_is_created_anew_while_another_thread_deletes_its_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting, discard = threading.Event(), lifecycle._discard

    def slow_discard(session: DebateSession) -> None:
        deleting.set()
        time.sleep(0.3)  # the other thread starts meanwhile
        discard(session)

    environment = FakeModel().environment()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=environment) as debates:
        left = debates.start("Which queue?", CONFIG, name="early")
        debates.records.catalogue.update(left.id, status="new")
        debates.records.sql.execute("DELETE FROM checkpoints")
        monkeypatch.setattr(lifecycle, "_discard", slow_discard)
        other = threading.Thread(target=lambda: debates.start("Which queue?", CONFIG, name="late"))
        other.start()
        assert deleting.wait(LONG_TIMEOUT_S)
        early = debates.start("Which queue?", CONFIG, name="early", if_exists="resume")
        other.join()
        assert early.run()["status"] == "done"
        assert {row.name: row.status for row in debates.rows()} == {"early": "done", "late": "paused"}


def test_a_new_debate_calls_no_model_before_it_is_stored(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start(LONG_TOPIC, CONFIG, name="early")
        assert debate.session.state().next == ("read_topic",)
        assert [row.name for row in debates.rows()] == ["early"]
    assert not model.calls


def test_a_graph_lists_a_debate_before_its_first_call(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite"), environment=FakeModel().environment()) as debates:
        listed: list[str] = []

        def reply(call: ModelCall) -> Reply:
            listed.extend(row.status for row in debates.rows())
            return fake_reply(call)

        model = FakeModel(reply)
        saver: Any = debates.graph.checkpointer
        graph = build_graph(saver, environment=model.environment())
        thread: Any = {"configurable": {"thread_id": str(uuid4())}}
        graph.invoke({"topic": LONG_TOPIC}, thread, context=CONFIG, interrupt_after=["read_topic"])
    assert listed[0] == "running"


def test_a_debate_without_a_configuration_cannot_run(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Which queue?", CONFIG)
        saver = debates.graph.checkpointer
        assert isinstance(saver, MootSqliteSaver)
        with closing(sqlite3.connect(tmp_path / "moot.sqlite")) as file, file:
            file.execute("DELETE FROM checkpoints WHERE rowid > (SELECT min(rowid) FROM checkpoints)")
            file.execute("DELETE FROM writes")
        with pytest.raises(InputError, match="never started"):
            debate.run()
    assert not model.calls

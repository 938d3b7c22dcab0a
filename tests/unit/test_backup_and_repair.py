"""Backups that can be resumed, checks that find damage, and repairs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from moot import DebateConfig, open_debates
from moot.cli.commands.doctor import inspect_database, inspect_installation
from moot.runtime.background_loop import call_from_sync
from moot.state.errors import InputError
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel
from tests.support.transcripts import message_texts


def test_backup_of_a_running_debate_is_complete_and_can_be_resumed(tmp_path: Path) -> None:
    whole, environment = FakeModel(), FakeModel().environment()
    with open_debates(str(tmp_path / "w.sqlite"), environment=whole.environment()) as debates:
        expected = debates.start("Why?", DebateConfig(turns=4)).run()
    copy = tmp_path / "copy.sqlite"
    with open_debates(str(tmp_path / "m.sqlite"), environment=environment) as debates:
        debate = debates.start("Why?", DebateConfig(turns=4), name="d")
        for number, event in enumerate(debate.stream()):
            if event["event"] == "entry" and number > 2 and not copy.exists():
                assert isinstance(debates.records.sql, SqliteSql)
                debates.records.sql.back_up(copy)
        with pytest.raises(InputError, match="already exists"):
            debates.records.sql.back_up(copy)  # type: ignore[attr-defined]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".copy*"))
    model = FakeModel()
    with open_debates(str(copy), environment=model.environment()) as debates:
        assert debates.get("d").row.status == "paused"
        assert message_texts(debates.get("d").run()) == message_texts(expected)
    assert 0 < len(model.calls) < len(whole.calls)


def test_doctor_reports_exactly_the_damaged_debates(tmp_path: Path) -> None:
    assert all(check.ok for check in inspect_installation())
    path = tmp_path / "m.sqlite"
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        for name in ("whole", "broken", "doubled"):
            debates.start("Why?", DebateConfig(turns=2), name=name).run()
        checks = list(inspect_database(debates))
        assert all(each.ok for each in checks), checks
        assert {each.what: each.message for each in checks}["debates"] == "3"
        with debates.get("doubled").session.writing() as held:
            entry = held.state().values["full_transcript"][1]
            gap = StateUpdate({"full_transcript": [{**entry, "id": "m000009", "seq": 9}]}, "close")
            call_from_sync(CompiledStateGraph.abulk_update_state, held.graph, held.run_config, [[gap]])
        with closing(sqlite3.connect(path)) as file, file:
            broken = debates.get("broken").id
            file.execute("DELETE FROM checkpoints WHERE thread_id = ?", (broken,))
        wrong = {each.what: each.message for each in inspect_database(debates) if not each.ok}
        assert wrong.keys() == {"broken", "doubled"}
        assert wrong["broken"] == "the configuration is missing"


def test_repair_fixes_wrong_list_rows_and_leftovers_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        small = DebateConfig.model_validate({"turns": 6, "memory": {"budget": {"messages": 160}}})
        debate = debates.start("Why?", small, name="d")
        document = debate.run()
        debates.import_document(document, name="copy")
        debate.fork(after=2, name="fork")
        unsummarized = {**small.to_json(), "protocol": "vote", "turns": None}  # a vote needs no summary
        debates.start("Why?", DebateConfig.model_validate(unsummarized), name="vote").run()
        sql = debates.records.sql
        assert all(each.ok for each in inspect_database(debates))
        sql.execute("UPDATE moot_debates SET status = 'running', turns = 3 WHERE name = 'd'")
        sql.execute("INSERT INTO moot_grants VALUES ('gone', 'model', 'm')")
        sql.execute("INSERT INTO moot_debates SELECT 'x', 'unbegun', '', '', 'new', 0, 0, 0, '', '', '' "
                    "FROM moot_debates WHERE name = 'd'")  # fmt: skip
        wrong = {each.what: each for each in inspect_database(debates) if each.repair}
        assert {what: each.ok for what, each in wrong.items()} == {
            "d": False,
            "moot_grants": False,
            "unbegun": True,  # a killed command leaves such a row
        }
        assert wrong["d"].message == "the list shows turns 3 instead of 6, status paused instead of done"
        for each in wrong.values():
            assert each.repair is not None
            each.repair()
        assert not any(each.repair or not each.ok for each in inspect_database(debates))
        assert debates.get("d").document() == document
        sql.execute("UPDATE moot_journal SET reply = '{' WHERE debate = ? AND step = 1", (debate.id,))
        (unreadable,) = [each for each in inspect_database(debates) if not each.ok]
        assert "journal cannot be read" in unreadable.message

"""Backups that are whole and can be gone on with, and a check-up that finds what is broken."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateUpdate

from moot import DebateConfig, open_debates
from moot.graph.checkup import look_at_database, look_at_installation
from moot.nodes.driving.portal import call_from_sync
from moot.state.backups import back_up
from moot.state.errors import InputError
from moot.state.sql import SqliteSql
from tests.support.fakes import FakeModel
from tests.support.transcripts import said


def test_a_backup_of_a_running_debate_is_whole_and_goes_on(tmp_path: Path) -> None:
    whole, environment = FakeModel(), FakeModel().environment()
    with open_debates(str(tmp_path / "w.sqlite"), environment=whole.environment()) as debates:
        expected = debates.start("Why?", DebateConfig(turns=4)).run()
    copy = tmp_path / "copy.sqlite"
    with open_debates(str(tmp_path / "m.sqlite"), environment=environment) as debates:
        debate = debates.start("Why?", DebateConfig(turns=4), name="d")
        for number, event in enumerate(debate.stream()):
            if event["event"] == "entry" and number > 2 and not copy.exists():
                assert isinstance(debates.records.sql, SqliteSql)
                back_up(debates.records.sql, copy)
        with pytest.raises(InputError, match="exists already"):
            back_up(debates.records.sql, copy)  # type: ignore[arg-type]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob(".copy*"))
    model = FakeModel()
    with open_debates(str(copy), environment=model.environment()) as debates:
        assert debates.get("d").row.status == "paused"
        assert said(debates.get("d").run()) == said(expected)
    assert 0 < len(model.calls) < len(whole.calls)


def test_a_check_up_names_what_is_broken_and_nothing_else(tmp_path: Path) -> None:
    assert all(found.ok for found in look_at_installation())
    path = tmp_path / "m.sqlite"
    with open_debates(str(path), environment=FakeModel().environment()) as debates:
        for name in ("whole", "broken", "doubled"):
            debates.start("Why?", DebateConfig(turns=2), name=name).run()
        found = list(look_at_database(debates))
        assert all(each.ok for each in found), found
        assert {each.what: each.says for each in found}["debates"] == "3"
        with debates.get("doubled").session.writing() as held:
            entry = held.state().values["full_transcript"][1]
            gap = StateUpdate({"full_transcript": [{**entry, "id": "m000009", "seq": 9}]}, "close")
            call_from_sync(CompiledStateGraph.abulk_update_state, held.graph, held.run_config, [[gap]])
        with sqlite3.connect(path) as file:
            broken = debates.get("broken").id
            file.execute("DELETE FROM checkpoints WHERE thread_id = ?", (broken,))
        wrong = {each.what: each.says for each in look_at_database(debates) if not each.ok}
        assert wrong.keys() == {"broken", "doubled"}
        assert wrong["broken"] == "it has no configuration"

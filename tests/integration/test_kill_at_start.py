"""Debates killed in their first milliseconds, at every write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.state.errors import DebateNotFound, InputError
from moot.storage.catalogue import Catalogue
from moot.storage.checkpoints import MootSqliteSaver
from tests.support.fakes import FakeModel

CHOSEN = DebateConfig(protocol="council", rounds=1, model="dear")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def _photographed(folder: Path, patch: pytest.MonkeyPatch) -> list[Path]:
    """Return the copies of the database that are made before each write of catalogue or checkpoints."""
    copies: list[Path] = []

    def photograph() -> None:
        copies.append(folder / f"killed-{len(copies)}.sqlite")
        with (
            closing(sqlite3.connect(folder / "whole.sqlite")) as source,
            closing(sqlite3.connect(copies[-1])) as copy,
        ):
            source.backup(copy)
            with copy:  # whose lease is a dead process's
                copy.execute("UPDATE moot_leases SET expires = 0")

    for kind, name in ((MootSqliteSaver, "aput"), (MootSqliteSaver, "aput_writes"), (Catalogue, "update")):
        write = getattr(kind, name)

        def watched(*arguments: object, write: object = write, **named: object) -> object:
            photograph()
            return write(*arguments, **named)  # type: ignore[operator]  # the method that it stands for

        patch.setattr(kind, name, watched)
    return copies


def test_whenever_its_maker_dies_a_debate_has_its_configuration_or_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = FakeModel().environment()
    with monkeypatch.context() as patch:
        copies = _photographed(tmp_path, patch)
        with open_debates(str(tmp_path / "whole.sqlite"), environment=environment) as debates:
            debates.start("Which queue?", CHOSEN, name="early")
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
            assert debate.config().to_json() == CHOSEN.to_json()
            fates.append("whole")
    assert fates == sorted(fates), "a debate that is there stays there"
    assert {"gone", "whole"} == set(fates)


def test_whenever_its_importer_dies_a_transcript_is_wholly_there_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = FakeModel().environment()
    talk = "\n\n".join(f"{who}: It is so, for reason {n}." for n in range(60) for who in ("Ann", "Bob"))
    with monkeypatch.context() as patch:
        copies = _photographed(tmp_path, patch)
        with open_debates(str(tmp_path / "whole.sqlite"), environment=environment) as debates:
            whole = debates.import_transcript(talk, topic="Is it so?", name="early").document()
    fates = []
    for copy in copies:
        with open_debates(str(copy), environment=environment) as debates:
            try:
                fates.append(debates.get("early").document()["summaries"] == whole["summaries"])
            except DebateNotFound:
                fates.append(False)
            assert [row.status for row in debates.rows()] == ["done"] * fates[-1]
    assert fates == sorted(fates), "what is there stays there"
    assert len(copies) > 5


def test_a_state_without_a_configuration_is_never_gone_on_with(tmp_path: Path) -> None:
    model = FakeModel()
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Which queue?", CHOSEN)
        saver = debates.graph.checkpointer
        assert isinstance(saver, MootSqliteSaver)
        with closing(sqlite3.connect(tmp_path / "moot.sqlite")) as file, file:
            file.execute("DELETE FROM checkpoints WHERE rowid > (SELECT min(rowid) FROM checkpoints)")
            file.execute("DELETE FROM writes")
        with pytest.raises(InputError, match="never started"):
            debate.run()
    assert not model.calls

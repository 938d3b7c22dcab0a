"""A database that refuses writes at any moment: clear advice, and the same end after recovery."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moot import DebateConfig, open_debates
from moot.cli.commands.doctor import inspect_database
from moot.state.errors import StorageError
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel
from tests.support.transcripts import message_texts

CONFIG = DebateConfig(turns=3, memory={"keep_recent": 1, "summarize_every": 1})
TurnResult = list[tuple[str, str, str]]
ORDERS = 2
"""Calls at one time, of the judge, at most."""
STEP = 11
WRITES = 60
"""Of a debate, at least; what ends it after the last writes nothing that matters."""
"""Every write is tried with `MOOT_EVERY_WRITE`, which takes half a minute."""


class Refusing:
    """Lets so many transactions through, and has SQLite itself refuse to write from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        transaction = SqliteSql._transaction

        @contextmanager
        def counted(sql: SqliteSql, durable: bool) -> Iterator[None]:
            self.left -= 1
            if self.left < 0:
                sql._connection.execute("PRAGMA query_only=ON")
            with transaction(sql, durable):
                yield

        monkeypatch.setattr(SqliteSql, "_transaction", counted)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[TurnResult, int]:
    """What is said uninterrupted, and in how many calls."""
    model, path = FakeModel(), tmp_path_factory.mktemp("whole") / "m.sqlite"
    with open_debates(str(path), environment=model.environment()) as debates:
        return message_texts(debates.start("Which queue?", CONFIG).run()), len(model.calls)


def run_on(path: Path, model: FakeModel) -> TurnResult:
    """Run the debate, which is begun where it is not there, and return what is said."""
    with open_debates(str(path), environment=model.environment()) as debates:
        debate = debates.get("d") if debates.rows() else debates.start("Which queue?", CONFIG, name="d")
        spoken = message_texts(debate.run())
        assert all(each.ok for each in inspect_database(debates))
        return spoken


def stopped_by(path: Path, model: FakeModel) -> str:
    """Run the debate and return what stopped it, in words."""
    try:
        run_on(path, model)
    except StorageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("first", range(STEP) if os.environ.get("MOOT_EVERY_WRITE") else [3])
def test_a_database_that_becomes_read_only_at_any_write_says_so_and_goes_on_after(
    first: int, tmp_path: Path, whole: tuple[TurnResult, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = []
    for number in range(first, 400, STEP):
        path, model = tmp_path / f"{number}.sqlite", FakeModel()
        with monkeypatch.context() as patch:
            refusing = Refusing(patch, number)
            words.append(stopped_by(path, model))
        if refusing.left >= 0:
            break
        assert run_on(path, model) == whole[0], number
        assert len(model.calls) <= whole[1] + ORDERS, number  # those whose replies could not be written
    last = max(number for number, each in enumerate(words) if each)
    assert all("read-only: allow writing" in each for each in words[: last + 1])
    assert last * STEP > WRITES

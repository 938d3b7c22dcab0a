"""A database that becomes read-only during a debate: the error says so, and the debate resumes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.cli.commands.doctor import inspect_database
from moot.state.errors import StorageError
from moot.storage.sqlite import SqliteSql
from tests.support.fakes import FakeModel
from tests.support.transcripts import message_texts

# Without a seed, each debate quotes with a random fence, so no two debates have the same prompts.
CONFIG = DebateConfig(turns=3, seed=1, memory={"keep_recent": 1, "summarize_every": 1})
MessageTexts = list[tuple[str, str, str]]
PARALLEL_CALLS = 2
"""Largest number of calls in progress at one time: the two orders of the judge."""
STEP = 11
"""Distance between two tested writes. `MOOT_EVERY_WRITE` tests every write, which takes half a minute."""
MIN_WRITES = 60
"""Least number of writes of a debate, without those that only end it."""


class RefusingDatabase:
    """Allows `after` transactions, and then makes the SQLite connection read-only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        locked = SqliteSql._locked

        def counted(sql: SqliteSql, work: Callable[[], Any], durable: bool) -> Any:
            self.left -= 1
            if self.left < 0:
                sql._connection.execute("PRAGMA query_only=ON")
            return locked(sql, work, durable)

        monkeypatch.setattr(SqliteSql, "_locked", counted)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[MessageTexts, int]:
    """Return the messages of an uninterrupted debate, and its number of calls."""
    model, path = FakeModel(), tmp_path_factory.mktemp("whole") / "m.sqlite"
    with open_debates(str(path), environment=model.environment()) as debates:
        return message_texts(debates.start("Which queue?", CONFIG).run()), len(model.calls)


def run_debate(path: Path, model: FakeModel) -> MessageTexts:
    """Start the debate or continue it, and return its messages."""
    with open_debates(str(path), environment=model.environment()) as debates:
        debate = debates.get("d") if debates.rows() else debates.start("Which queue?", CONFIG, name="d")
        texts = message_texts(debate.run())
        assert all(each.ok for each in inspect_database(debates))
        return texts


def error_of_run(path: Path, model: FakeModel) -> str:
    """Run the debate, and return the message of the error that stopped it."""
    try:
        run_debate(path, model)
    except StorageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("first", range(STEP) if os.environ.get("MOOT_EVERY_WRITE") else [3])
def test_debate_reports_a_read_only_database_and_resumes_after_repair(
    first: int, tmp_path: Path, uninterrupted: tuple[MessageTexts, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = []
    for number in range(first, 400, STEP):
        path, model = tmp_path / f"{number}.sqlite", FakeModel()
        with monkeypatch.context() as patch:
            database = RefusingDatabase(patch, number)
            errors.append(error_of_run(path, model))
        if database.left >= 0:
            break
        assert run_debate(path, model) == uninterrupted[0], number
        # A call is repeated if its reply was not stored.
        assert len(model.calls) <= uninterrupted[1] + PARALLEL_CALLS, number
    last = max(number for number, each in enumerate(errors) if each)
    assert all("read-only: allow writing" in each for each in errors[: last + 1])
    assert last * STEP > MIN_WRITES

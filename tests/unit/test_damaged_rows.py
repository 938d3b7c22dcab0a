"""Damaged rows of every SQLite table: errors say what to do, and other debates and lists still work."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from moot.api import Debate, Debates, open_debates
from moot.cli.commands.doctor import inspect_database
from moot.config import DebateConfig
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.state.errors import MootError, StorageError
from moot.storage.rate_limiter import SharedBudget

VALUES = (None, "x", b"\xc1\xff", "[]", '{"v": 4}', 7, 2**62)
COLUMNS = {
    "moot_debates": "id name topic protocol status turns tokens cost_usd parent created_at updated_at",
    "moot_leases": "debate namespace epoch token holder expires",
    "moot_journal": "step node batch call_index digest base_checkpoint reply",
    "moot_inbox": "number kind speaker content at",
    "moot_failed_runs": "run step node error at usage",
    "moot_grants": "kind value",
    "moot_results": "model winner decision question confidence",
    "moot_follow_ups": "revisit rating note decision forecasts at",
    "moot_budgets": "max_tokens max_cost tokens cost",
    "moot_budget_debates": "debate budget",
    "checkpoints": "thread_id checkpoint_ns checkpoint_id parent_checkpoint_id type checkpoint metadata",
    "writes": "checkpoint_id task_id idx channel type value",
}
"""Columns of each table in which a damaged value is tried."""


def fill(debates: Debates) -> None:
    """Store the debates `damaged` and `other`, and a row of `damaged` in every table."""
    for name in ("damaged", "other"):
        debates.start("Trams?", DebateConfig(turns=2), name=name).run()
    debate, records = debates.get("damaged"), debates.records
    debate.ask("What was said?")
    debate.say("Hurry.")
    records.budgets.set("group", SharedBudget(max_tokens=10**9))
    records.budgets.add("group", [debate.id])
    at = "2026-11-24T10:00:00.000+00:00"
    rows: dict[str, tuple[str | int, ...]] = {
        "moot_failed_runs": (debate.id, "run", 1, "turn", "boom", at, '{"calls": 1}'),
        "moot_follow_ups": (debate.id, "2027-01-01", "right", "", "Trams.", "[]", at),
        "moot_grants": (debate.id, "model", "m"),
    }
    for table, row in rows.items():
        marks = ", ".join("?" * len(row))
        records.sql.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608  # of this test


@pytest.fixture(scope="module")
def intact_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a database with a row in each table."""
    path = tmp_path_factory.mktemp("whole") / "d.sqlite"
    with open_debates(str(path)) as debates:
        fill(debates)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
    return path


def damage(intact_db: Path, folder: Path, table: str, column: str, value: object) -> Path | None:
    """Return a copy of the database with a damaged value, or `None` if the column cannot hold it."""
    copy = Path(shutil.copy(intact_db, folder / f"{uuid.uuid4()}.sqlite"))
    key = {"moot_debates": "id", "checkpoints": "thread_id", "writes": "thread_id"}.get(table, "debate")
    where = f"{key} = (SELECT id FROM moot_debates WHERE name = 'damaged')"  # noqa: S608  # of this test
    where = "1" if table == "moot_budgets" else where
    newest = f"rowid = (SELECT max(rowid) FROM {table} WHERE {where})"  # noqa: S608  # of this test
    with closing(sqlite3.connect(copy)) as file:
        for rows in (where, newest):  # a unique column holds the value only once
            with suppress(sqlite3.IntegrityError), file:
                file.execute(f"UPDATE {table} SET {column} = ? WHERE {rows}", (value,))  # noqa: S608  # of this test
                return copy
    return None


@contextmanager
def damaged_copy(intact_db: Path, folder: Path, table: str, column: str, value: object) -> Iterator[Debates]:
    path = damage(intact_db, folder, table, column, value)
    assert path
    with open_debates(str(path)) as debates:
        yield debates


def check_damaged(debates: Debates) -> None:
    """Use a database with a damaged debate: lists and the other debate work, other steps may be refused."""
    records = debates.records
    other = debates.get("other")
    document = other.document()
    assert [entry["kind"] for entry in document["transcript"]] == ["topic", "speech", "speech"]
    assert "other" in [row.name for row in debates.rows()]
    records.results.all()
    records.follow_ups.revisit_dates()
    assert list(inspect_database(debates))
    with suppress(StorageError):  # it names the debate
        records.follow_ups.feedback()
    for step in _debate_steps(debates):
        with suppress(MootError):
            step()
    assert debates.get("other").document() == document


def _debate_steps(debates: Debates) -> Iterator[Callable[[], object]]:
    """Yield the operations that users run on the damaged debate."""
    with suppress(MootError):
        debate = debates.get("damaged")
        yield debate.document
        yield debate.is_running
        yield lambda: reconstruct_prompt(debate.session, 1)
        yield lambda: debate.run(turns=1)
        yield lambda: debate.ask("What was said?")
        yield debate.judge
        yield debate.fork
        yield debate.delete


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), [(t, c) for t, names in COLUMNS.items() for c in names.split()])
def test_damaged_row_raises_only_moot_errors_and_spares_other_debates(
    intact_db: Path, tmp_path: Path, table: str, column: str
) -> None:
    for value in VALUES:
        if path := damage(intact_db, tmp_path, table, column, value):
            with open_debates(str(path)) as debates:
                check_damaged(debates)


@pytest.mark.parametrize("value", ["x", b"\xc1\xff", "[]", 7], ids=repr)
def test_damaged_metadata_of_a_checkpoint_says_to_restore_a_backup(
    intact_db: Path, tmp_path: Path, value: object
) -> None:
    with damaged_copy(intact_db, tmp_path, "checkpoints", "metadata", value) as debates:
        debate = debates.get("damaged")
        for step in (debate.document, debate.run, debate.fork):
            with pytest.raises(StorageError, match="restore a backup, or delete the debate") as raised:
                step()
            assert raised.value.exit_code == 3
        debates.get("other").run(turns=1)
        debate.delete()
        assert [row.name for row in debates.rows()] == ["other"]


@pytest.mark.parametrize("reply", ["x", "[]", "7", '{"v": 4}', '{"usage": 7}'])
def test_a_damaged_reply_in_the_journal_says_to_restore_a_backup(
    intact_db: Path, tmp_path: Path, reply: str
) -> None:
    with (
        damaged_copy(intact_db, tmp_path, "moot_journal", "reply", reply) as debates,
        pytest.raises(StorageError, match=r"a stored reply is damaged .* restore a backup"),
    ):
        reconstruct_prompt(debates.get("damaged").session, 1)


@pytest.mark.parametrize("forecasts", ["x", "[7]", '{"v": 4}'])
def test_error_of_damaged_feedback_names_its_debate(intact_db: Path, tmp_path: Path, forecasts: str) -> None:
    with damaged_copy(intact_db, tmp_path, "moot_follow_ups", "forecasts", forecasts) as debates:
        error = (
            f"the feedback on the debate {debates.get('damaged').id} is damaged .* give the feedback again"
        )
        with pytest.raises(StorageError, match=error):
            debates.records.follow_ups.feedback()


@pytest.mark.parametrize("column", ["epoch", "token", "holder", "expires"])
@pytest.mark.parametrize("value", ["x", b"\xc1\xff", 2**62], ids=repr)
def test_a_damaged_lease_is_replaced_by_the_next_run(
    intact_db: Path, tmp_path: Path, column: str, value: object
) -> None:
    with damaged_copy(intact_db, tmp_path, "moot_leases", column, value) as debates:
        assert _run_one_turn(debates.get("damaged")) == 3


def _run_one_turn(debate: Debate) -> int:
    debate.run(turns=1)
    return debate.row.turns


def test_list_shows_a_damaged_number_as_zero(intact_db: Path, tmp_path: Path) -> None:
    with damaged_copy(intact_db, tmp_path, "moot_debates", "turns", "x") as debates:
        assert {row.name: row.turns for row in debates.rows()} == {"damaged": 0, "other": 2}


def test_damaged_shared_budget_stops_its_debates(intact_db: Path, tmp_path: Path) -> None:
    with (
        damaged_copy(intact_db, tmp_path, "moot_budgets", "max_tokens", "x") as debates,
        pytest.raises(StorageError, match="shared budget"),
    ):
        debates.get("damaged").run(turns=1)

"""Damaged rows of every Postgres table: steps may raise a `MootError`, and other debates still work."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import sql

from moot.api import open_debates
from tests.support.postgres_server import new_database, postgres_server
from tests.unit.test_damaged_rows import COLUMNS, check_damaged, fill

VALUES = ("", "x", "[]", b"\xc1\xff", 7, -1, 2**62, None, json.dumps({"v": 4, "id": 7, "channel_values": []}))
TABLES = {
    **{table: names for table, names in COLUMNS.items() if table.startswith("moot_")},
    "checkpoints": "thread_id checkpoint_ns checkpoint_id parent_checkpoint_id type checkpoint metadata",
    "checkpoint_blobs": "thread_id checkpoint_ns channel version type blob",
    "checkpoint_writes": "checkpoint_id task_id task_path idx channel type blob",
}
"""Columns of each table in which a damaged value is tried."""
KEYS = {"moot_debates": "id", "checkpoints": "thread_id", "checkpoint_blobs": "thread_id"}
KEYS["checkpoint_writes"] = "thread_id"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture(scope="module")
def intact_db(server: str) -> str:
    """Create a database with a row in each table, and return its name."""
    url = new_database(server)
    with open_debates(url) as debates:
        fill(debates)
    with psycopg.connect(url) as connection:
        return connection.info.dbname


@contextmanager
def copied_database(server: str, intact_db: str) -> Iterator[str]:
    """Yield the address of a copy of the database. The copy is dropped afterwards."""
    name = f"moot_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(intact_db))
        )
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def damage(url: str, table: str, column: str, value: object) -> bool:
    """Store a damaged value in a column. Return False if the column cannot hold it."""
    key = KEYS.get(table, "debate")
    where: sql.Composable = sql.SQL("TRUE")
    if table != "moot_budgets":
        where = sql.SQL("{} = (SELECT id FROM moot_debates WHERE name = 'damaged')").format(
            sql.Identifier(key)
        )
    newest = sql.SQL("ctid = (SELECT max(ctid) FROM {} WHERE {})").format(sql.Identifier(table), where)
    for rows in (where, newest):  # a unique column holds the value only once
        statement = sql.SQL("UPDATE {} SET {} = %s WHERE {}").format(
            sql.Identifier(table), sql.Identifier(column), rows
        )
        with suppress(psycopg.Error), psycopg.connect(url) as connection:
            return connection.execute(statement, (value,)).rowcount > 0
    return False


@pytest.mark.heavy
@pytest.mark.parametrize("table", TABLES)
def test_damaged_row_raises_only_moot_errors_and_spares_other_debates(
    server: str, intact_db: str, table: str
) -> None:
    tried = 0
    for column in TABLES[table].split():
        for value in VALUES:
            with copied_database(server, intact_db) as url:
                if damage(url, table, column, value):
                    tried += 1
                    with open_debates(url) as debates:
                        check_damaged(debates)
    assert tried

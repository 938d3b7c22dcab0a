"""The little SQL that Moot's own tables need, alike for SQLite and Postgres.

Calls block; asynchronous code runs them on a worker thread.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from moot.state.errors import InputError

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for another connection's, seconds."""


Value = str | float | None
Row = tuple[Any, ...]
"""What a row holds, its statement says."""


class Sql(Protocol):
    """One connection, safe to use from several threads; every statement is committed at once."""

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run one statement with `?` placeholders, commit, and return its rows."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class DebateTable:
    """One of Moot's own tables; its rows belong to debates."""

    name: ClassVar[str]
    columns: ClassVar[str]
    """As `CREATE TABLE` takes them."""
    debate: ClassVar[str] = "debate"
    """The column that holds the debate's id."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        sql.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({self.columns})")

    def delete(self, debate: str) -> None:
        """Forget a debate's rows."""
        self._sql.execute(f"DELETE FROM {self.name} WHERE {self.debate} = ?", (debate,))  # noqa: S608  # constants of ours


class SqliteSql:
    """A SQLite file, or `:memory:`."""

    def __init__(self, path: str | Path) -> None:
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")  # survives any death of the process
        except sqlite3.Error as error:
            raise InputError(f"cannot open database {str(path)!r}: {error}") from error
        self._lock = threading.Lock()

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run one statement, which commits by itself."""
        with self._lock:
            return self._connection.execute(statement, parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


class PostgresSql:
    """A Postgres server, over one autocommitting connection."""

    def __init__(self, url: str) -> None:
        import psycopg

        try:
            self._connection = psycopg.connect(url, autocommit=True)
        except psycopg.Error as error:
            raise InputError(f"cannot open database: {error}") from error
        self._lock = threading.Lock()

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Run one statement, which commits by itself."""
        with self._lock, self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

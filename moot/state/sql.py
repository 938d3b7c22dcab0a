"""The little SQL that Moot's own tables need, alike for SQLite and Postgres.

Calls block; asynchronous code runs them on a worker thread.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from moot.state.errors import InputError

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for another connection's, seconds."""


class Sql(Protocol):
    """One connection, safe to use from several threads; every statement is committed at once."""

    dialect: str

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement with `?` placeholders, commit, and return its rows."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class SqliteSql:
    """A SQLite file, or `:memory:`."""

    dialect = "sqlite"

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

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, which commits by itself."""
        with self._lock:
            return self._connection.execute(statement, parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


class PostgresSql:
    """A Postgres server, over one autocommitting connection."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        import psycopg

        try:
            self._connection = psycopg.connect(url, autocommit=True)
        except psycopg.Error as error:
            raise InputError(f"cannot open database: {error}") from error
        self._lock = threading.Lock()

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, which commits by itself."""
        with self._lock, self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

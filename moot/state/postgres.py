"""Postgres: the connection of Moot's own tables; imported only where the `postgres` extra is wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
from typing_extensions import override

from moot.state.errors import InputError, StorageError
from moot.state.event_loop import Waits, haste
from moot.state.redaction import shown_url
from moot.state.sql import Permit, Row, Sql, Statement, Value
from moot.state.sqlite import DISK_FULL

T = TypeVar("T")

STANDSTILL = "SET idle_in_transaction_session_timeout = '10s'"
"""What a connection begins with: who is stopped amid a write would hold its lease's row for ever."""

_ADVICE = {
    "53100": DISK_FULL,
    "53300": "it has too many connections: close some, or allow more",
    "25006": "it takes no writes: wait, or give the address of the server that does",
}
"""By SQLSTATE; a standby, and a server that was failed over from, say the last."""
_LOST = (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout)


def server_error(error: psycopg.Error) -> StorageError:
    """Return what a Postgres server's failure means to a user, and what to do."""
    said, words = error.diag.message_primary or str(error), _ADVICE.get(error.sqlstate or "")
    return StorageError(f"the database failed ({shown_url(said).strip()})" + (f": {words}" if words else ""))


class PostgresSql(Sql):
    """A Postgres server, over one autocommitting connection, made anew where it is lost."""

    clock = "extract(epoch FROM clock_timestamp())"
    version_query = "SELECT obj_description(to_regclass('moot_debates'), 'pg_class')"
    version_note = "COMMENT ON TABLE moot_debates IS '{}'"

    def __init__(self, url: str) -> None:
        self._url, self._lock = url, threading.Lock()
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise InputError(f"cannot open database: {shown_url(str(error))}") from error

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self._url, autocommit=True)
        connection.execute(STANDSTILL)
        return connection

    @override
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        return self._retry(lambda: self._run(statement, parameters))

    @override
    def transact(
        self, statements: Sequence[Statement], permit: Permit, *, durable: bool = False
    ) -> list[Row]:
        statement, parameters = permit.statement

        def run() -> tuple[list[Row], list[Row] | None]:
            with self._connection.transaction():
                rows = self._run(f"{statement} FOR SHARE", parameters)
                last = [self._run(*each) for each in statements][-1] if permit.allows(rows) else None
            return rows, last

        rows, last = self._retry(run)
        if last is None:
            raise permit.refusal(rows)
        return last

    def _retry(self, run: Callable[[], T]) -> T:
        """Run on the connection, once more on a new one where that is lost; what is run may be run twice."""
        if haste.now:
            raise Waits
        try:
            with self._lock:
                try:
                    return run()
                except _LOST:
                    if not self._connection.closed:
                        raise
                    self._connection = self._connect()
                    return run()
        except psycopg.Error as error:
            raise server_error(error) from error

    def _run(self, statement: str, parameters: Sequence[Value]) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    @override
    def close(self) -> None:
        with self._lock:
            self._connection.close()

"""The little SQL that Moot's own tables need, alike for SQLite and Postgres.

Calls block; asynchronous code runs them on a worker thread.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from moot.state.errors import DebateBusy, InputError
from moot.state.event_loop import Waits, haste
from moot.state.redaction import shown_url
from moot.state.storage_failures import primary_code, remedy, server_error, storage_error

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for another connection's, seconds."""
STANDSTILL = "SET idle_in_transaction_session_timeout = '10s'"
"""What a Postgres connection begins with: who is stopped amid a write would hold its lease's row for ever."""


DATABASE_VERSION = 2
"""Version of Moot's tables: higher ones are written by newer builds, which may mean other things by them."""

T = TypeVar("T")


Value = str | bytes | float | None
Row = tuple[Any, ...]
"""What a row holds, its statement says."""


Statement = tuple[str, Sequence[Value]]
"""SQL with `?` placeholders, and what stands for them."""


class Permission(Protocol):
    """Whether a transaction may write, as rows of the database say within it."""

    @property
    def statement(self) -> Statement:
        """What reads the rows."""
        ...

    def allows(self, rows: Sequence[Row]) -> bool:
        """Return whether these rows say so."""
        ...

    def refusal(self, rows: Sequence[Row]) -> DebateBusy:
        """Return the error of a transaction that these rows forbid."""
        ...


class Sql(Protocol):
    """One connection, safe to use from several threads; every statement is committed at once."""

    read_only: bool
    """Whether nothing can be written."""
    clock: str
    """SQL for the time, seconds since 1970, by the database's own clock."""

    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement with `?` placeholders, commit, and return its rows.

        `durable` has what is committed survive a loss of power too, which takes SQLite 3 ms instead of 0.3.
        """
        ...

    def transact(
        self, statements: Sequence[Statement], permission: Permission, *, durable: bool = False
    ) -> list[Row]:
        """Run statements in one transaction, if that is allowed, and return the last one's rows.

        Raises:
            DebateBusy: it is not allowed.
        """
        ...

    def version(self) -> int:
        """Return the version of Moot's tables, 0 for none."""
        ...

    def set_version(self, version: int) -> None:
        """Note the version of Moot's tables."""
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
        if not sql.read_only:
            sql.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({self.columns})")

    def on(self, sql: Sql) -> Self:
        """Return the same table over another connection."""
        other = copy(self)
        other._sql = sql
        return other

    def delete(self, debate: str) -> None:
        """Forget a debate's rows."""
        self._sql.execute(f"DELETE FROM {self.name} WHERE {self.debate} = ?", (debate,))  # noqa: S608  # constants of ours


class PermittedSql:
    """A connection all of whose writing is subject to a permission."""

    def __init__(self, sql: Sql, permission: Permission) -> None:
        self._sql, self._permission = sql, permission
        self.read_only, self.clock = sql.read_only, sql.clock
        self.version, self.set_version, self.close = sql.version, sql.set_version, sql.close
        self.transact = sql.transact

    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement; one that only reads is subject to nothing.

        Raises:
            DebateBusy: it may not write.
        """
        if statement.startswith("SELECT"):
            return self._sql.execute(statement, parameters)
        return self._sql.transact([(statement, parameters)], self._permission, durable=durable)


class SqliteSql:
    """A SQLite file, or `:memory:`; a file that cannot be written, but read, is read."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: str | Path) -> None:
        self._lock, self._hasty = threading.Lock(), False
        self.address = str(path)
        """What `sqlite3.connect` takes, with `uri=True`."""
        self.read_only = False
        try:
            if isinstance(path, Path):
                self.address = path.absolute().as_uri()
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.touch(mode=0o600)
            self._connection = _connected(self.address)
        except OSError as error:
            raise InputError(f"cannot open database {str(path)!r}: {error}") from error
        except sqlite3.Error as error:
            if not isinstance(path, Path) or not _is_only_unwritable(path, error):
                raise InputError(f"cannot open database {str(path)!r}: {error}{remedy(error)}") from error
            self.address, self.read_only = f"{self.address}?immutable=1", True
            self._connection = _connected(self.address)

    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement, which commits by itself.

        Raises:
            StorageError: the file cannot be read or written.
        """
        with self._transaction(durable):
            return self._connection.execute(statement, parameters).fetchall()

    def transact(
        self, statements: Sequence[Statement], permission: Permission, *, durable: bool = False
    ) -> list[Row]:
        """Run statements in one transaction, if that is allowed, and return the last one's rows."""
        with self._transaction(durable):
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                rows = run(*permission.statement).fetchall()
                if permission.allows(rows):
                    last = [run(*each).fetchall() for each in statements][-1]
                    run("COMMIT")
                    return last
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")
        raise permission.refusal(rows)

    @contextmanager
    def _transaction(self, durable: bool) -> Iterator[None]:
        hasty = haste.now
        if (hasty and durable) or not self._lock.acquire(blocking=not hasty):
            raise Waits
        try:
            if self._hasty != hasty:
                self._hasty = hasty
                self._connection.execute(f"PRAGMA busy_timeout={0 if hasty else BUSY_TIMEOUT_S * 1000:.0f}")
            if durable:
                self._connection.execute("PRAGMA synchronous=FULL")
            try:
                yield
            finally:
                if durable:
                    self._connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            if hasty and primary_code(error) == sqlite3.SQLITE_BUSY:
                raise Waits from error
            raise storage_error(error) from error
        finally:
            self._lock.release()

    def version(self) -> int:
        """Return the version of Moot's tables, 0 for none."""
        return int(self.execute("PRAGMA user_version")[0][0])

    def set_version(self, version: int) -> None:
        """Note the version of Moot's tables."""
        self.execute(f"PRAGMA user_version = {version:d}")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


def _connected(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None, uri=True
    )
    try:
        connection.execute("PRAGMA synchronous=NORMAL")  # survives any death of the process
        _switch_to_wal(connection)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log; SQLite itself would not wait for others who do so."""
    until = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _is_only_unwritable(path: Path, error: sqlite3.Error) -> bool:
    """Return whether a file could not be opened for want of room or rights alone, and is whole by itself."""
    unwritable = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
    if primary_code(error) not in unwritable or not path.is_file():
        return False
    log = path.with_name(path.name + "-wal")
    return not (log.exists() and log.stat().st_size)


class PostgresSql:
    """A Postgres server, over one autocommitting connection, made anew where it is lost."""

    clock = "extract(epoch FROM clock_timestamp())"

    def __init__(self, url: str) -> None:
        import psycopg

        self.read_only = False

        def connect() -> psycopg.Connection[Row]:
            connection = psycopg.connect(url, autocommit=True)
            connection.execute(STANDSTILL)
            return connection

        self._connect = connect
        stood_still = psycopg.errors.IdleInTransactionSessionTimeout
        self._errors, self._lost = psycopg.Error, (psycopg.OperationalError, stood_still)
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise InputError(f"cannot open database: {shown_url(str(error))}") from error
        self._lock = threading.Lock()

    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement, which commits by itself.

        Raises:
            StorageError: the server cannot be reached, or refuses.
        """
        return self._retried(lambda: self._run(statement, parameters))

    def transact(
        self, statements: Sequence[Statement], permission: Permission, *, durable: bool = False
    ) -> list[Row]:
        """Run statements in one transaction, if that is allowed, and return the last one's rows."""
        statement, parameters = permission.statement

        def run() -> tuple[list[Row], list[Row] | None]:
            with self._connection.transaction():
                rows = self._run(f"{statement} FOR SHARE", parameters)
                last = [self._run(*each) for each in statements][-1] if permission.allows(rows) else None
            return rows, last

        rows, last = self._retried(run)
        if last is None:
            raise permission.refusal(rows)
        return last

    def _retried(self, run: Callable[[], T]) -> T:
        """Run on the connection, once more on a new one where that is lost; what is run may be run twice."""
        if haste.now:
            raise Waits
        try:
            with self._lock:
                try:
                    return run()
                except self._lost:
                    if not self._connection.closed:
                        raise
                    self._connection = self._connect()
                    return run()
        except self._errors as error:
            raise server_error(error) from error

    def _run(self, statement: str, parameters: Sequence[Value]) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    def version(self) -> int:
        """Return the version of Moot's tables, 0 for none; a comment on the catalogue holds it."""
        rows = self.execute("SELECT obj_description(to_regclass('moot_debates'), 'pg_class')")
        return int(rows[0][0] or 0)

    def set_version(self, version: int) -> None:
        """Note the version of Moot's tables."""
        self.execute(f"COMMENT ON TABLE moot_debates IS '{version:d}'")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

"""SQLite: the file of a database, what its failures mean, and copies of it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from typing_extensions import override

from moot.state.errors import InputError, StorageError
from moot.state.event_loop import Waits, haste
from moot.state.sql import Permit, Row, Sql, Statement, Value

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for another connection's, seconds."""

DISK_FULL = "the disk is full: make room"
_LOCKED = "another program has locked it: close that, or wait"
_ADVICE = {
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_READONLY: "it, or its folder, is read-only: allow writing, or copy it and give --db COPY",
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore a backup, or copy it with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database: give another --db",
    sqlite3.SQLITE_CANTOPEN: "its folder cannot be written to: allow writing, or give another --db",
    sqlite3.SQLITE_IOERR: "its disk cannot be read or written: make room, and look after the disk",
}


def storage_error(error: sqlite3.Error) -> StorageError:
    """Return what a database's failure means to a user, and what to do."""
    return StorageError(f"the database failed ({error}){_remedy(error)}")


def _remedy(error: sqlite3.Error) -> str:
    """Return `: ` and what to do after a failure; `""` for a rare one."""
    words = _ADVICE.get(_code(error))
    return f": {words}" if words else ""


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's code of a failure, without the rest, which says more than we need."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


class SqliteSql(Sql):
    """A SQLite file, or `:memory:`; a file that cannot be written, but read, is read."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"
    version_query, version_note = "PRAGMA user_version", "PRAGMA user_version = {}"

    def __init__(self, path: str | Path) -> None:
        self._lock, self._hasty = threading.Lock(), False
        self.address = str(path)
        """What `sqlite3.connect` takes, with `uri=True`."""
        try:
            if isinstance(path, Path):
                self.address = path.absolute().as_uri()
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.touch(mode=0o600)
            self._connection = _connect(self.address)
        except OSError as error:
            raise InputError(f"cannot open database {str(path)!r}: {error}") from error
        except sqlite3.Error as error:
            if not isinstance(path, Path) or not _is_only_unwritable(path, error):
                raise InputError(f"cannot open database {str(path)!r}: {error}{_remedy(error)}") from error
            self.address, self.read_only = f"{self.address}?immutable=1", True
            self._connection = _connect(self.address)

    @override
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        with self._transaction(durable):
            return self._connection.execute(statement, parameters).fetchall()

    @override
    def transact(
        self, statements: Sequence[Statement], permit: Permit, *, durable: bool = False
    ) -> list[Row]:
        with self._transaction(durable):
            run = self._connection.execute
            run("BEGIN IMMEDIATE")
            try:
                rows = run(*permit.statement).fetchall()
                if permit.allows(rows):
                    last = [run(*each).fetchall() for each in statements][-1]
                    run("COMMIT")
                    return last
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")
        raise permit.refusal(rows)

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
            if hasty and _code(error) == sqlite3.SQLITE_BUSY:
                raise Waits from error
            raise storage_error(error) from error
        finally:
            self._lock.release()

    @override
    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def back_up(self, target: Path) -> None:
        """Copy the database, as it is at one moment, to a file that is not there yet, whole or not at all.

        In the copy nobody runs a debate.

        Raises:
            InputError: the file exists, or cannot be written.
            StorageError: the database cannot be read, or there is no room for the copy.
        """
        if target.exists():
            raise InputError(f"{str(target)!r} exists already: give the name of a new file")
        draft: Path | None = None
        try:
            with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
                draft = Path(file.name)
            with (
                closing(sqlite3.connect(self.address, uri=True)) as source,
                closing(sqlite3.connect(draft)) as copy,
            ):
                source.backup(copy, pages=2000, sleep=0.01)
                copy.execute("PRAGMA journal_mode=DELETE")  # one file, that can be sent
                with copy:
                    copy.execute("UPDATE moot_leases SET token = ''")
            draft.replace(target)
        except OSError as error:
            raise InputError(f"cannot write {str(target)!r}: {error}") from error
        except sqlite3.Error as error:
            raise storage_error(error) from error
        finally:
            if draft is not None:
                draft.unlink(missing_ok=True)


def _connect(address: str) -> sqlite3.Connection:
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
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _is_only_unwritable(path: Path, error: sqlite3.Error) -> bool:
    """Return whether a file could not be opened for want of room or rights alone, and is whole by itself."""
    unwritable = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
    if _code(error) not in unwritable or not path.is_file():
        return False
    log = path.with_name(path.name + "-wal")
    return not (log.exists() and log.stat().st_size)

"""SQL interface for Moot's own tables, the SQLite database, its backups, and errors with advice."""

import os
import shutil
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, ClassVar, Self, TypeVar

from typing_extensions import override

from moot.calls.concurrency import WouldBlock, non_blocking
from moot.state.errors import DebateBusy, DebateNotFound, InputError, StorageError, file_error_reason, option

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

T = TypeVar("T")

DATABASE_VERSION = 3
"""Version number of the schema of Moot's tables. Databases with a higher version are refused."""

Value = str | bytes | float | None
Row = tuple[Any, ...]
"""Row that an SQL query returns."""
Statement = tuple[str, Sequence[Value]]
"""SQL statement with `?` placeholders, and the values for the placeholders."""


@dataclass(frozen=True)
class Permit:
    """Condition for writing to the database, checked within each write transaction."""

    statement: Statement
    """Query whose result determines whether the transaction may write."""
    allows: Callable[[Sequence[Row]], bool]
    """Function that returns True if the query's rows permit the transaction to write."""
    refusal: Callable[[Sequence[Row]], DebateBusy]
    """Function from these rows to the error of a refused transaction. Call it after the transaction."""


class Sql(ABC):
    """Database connection that several threads can share. Every statement is committed at once."""

    read_only = False
    """True if the database is read-only. The default is False."""
    clock: ClassVar[str]
    """SQL expression that reads the database's clock as a Unix timestamp in seconds."""
    exists_query: ClassVar[str]
    """SQL query that checks if a table or index exists."""
    version_query: ClassVar[str]
    """SQL query that returns the version of Moot's tables."""
    version_statement: ClassVar[str]
    """SQL statement that stores the version of Moot's tables. The version number replaces `{}`."""
    checkpoint_tables: ClassVar[tuple[str, ...]]
    """Names of LangGraph's tables, in which the column `thread_id` contains the debate's id. The last one
    contains the writes."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_inherited(self) -> bool:
        """Return True in a child process that inherited the open database through `fork()`."""
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Raise an error if the database was opened before a `fork()`.

        A connection that two processes use corrupts the database, and its threads do not exist in the child.

        Raises:
            InputError: The database was opened by a parent process.
        """
        if self.is_inherited:
            raise InputError(
                "this database connection was opened before fork(): open the database again in the "
                "new process"
            )

    @abstractmethod
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Execute one SQL statement with `?` placeholders, commit, and return the resulting rows.

        A `durable` commit survives a power failure. It takes SQLite 3 ms instead of 0.3.

        Raises:
            StorageError: The database cannot be reached, read or written.
        """

    @abstractmethod
    def transact(
        self, statements: Sequence[Statement], permit: Permit | None, *, durable: bool = False
    ) -> list[Row]:
        """Execute statements in one transaction, and return the rows of the last statement.

        Nothing is written if the permit does not allow it. `None`: any transaction is allowed.

        Raises:
            DebateBusy: The permit does not allow the transaction.
            StorageError: The database cannot be reached, read or written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the database connection."""

    def require_space(self, size: int) -> None:
        """Raise a `StorageError` if a file's disk has no space for values of `size` bytes."""
        return

    def create(self, name: str, statement: str) -> None:
        """Create a table or an index, unless it exists or the database is read-only.

        Postgres demands the permission to create tables even of `CREATE TABLE IF NOT EXISTS`, so the
        statement is executed only if it has something to create.
        """
        if not self.read_only and not self.execute(self.exists_query, (name,))[0][0]:
            self.execute(statement)

    def version(self) -> int:
        """Return the version of Moot's tables, or 0 if the database has no such tables."""
        return int(self.execute(self.version_query)[0][0] or 0)


@contextmanager
def reading(what: str, advice: str = "restore a backup, or delete the debate") -> Iterator[None]:
    """Raise a `StorageError` if the `with` block cannot read a stored value, because it is damaged."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StorageError(f"{what} is damaged in the database ({error}): {advice}") from error


def stored_text(value: object) -> str:
    """Return a value from a text column as text, even if it is damaged."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else "" if value is None else str(value)


def stored_number(value: object) -> float:
    """Return a value from a numeric column, or 0 if it is not a number."""
    return value if isinstance(value, int | float) else 0


class DebateTable:
    """Base class of database tables in which each row belongs to one debate."""

    name: ClassVar[str]
    columns: ClassVar[str]
    """SQL definitions of the table's columns."""
    debate: ClassVar[str] = "debate"
    """Name of the table column that contains the debate's id."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._permit: Permit | None = None
        sql.create(self.name, f"CREATE TABLE IF NOT EXISTS {self.name} ({self.columns})")

    def fenced_by(self, permit: Permit) -> Self:
        """Return a copy of this table that writes only while `permit` allows it."""
        other = copy(self)
        other._permit = permit
        return other

    def delete(self, debate: str) -> None:
        """Delete a debate's rows from this table without checking the permit."""
        self._sql.execute(f"DELETE FROM {self.name} WHERE {self.debate} = ?", (debate,))  # noqa: S608  # constants of ours

    def _execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Execute one SQL statement. A write without a permit raises `DebateBusy`."""
        if self._permit is None or statement.startswith("SELECT"):
            return self._sql.execute(statement, parameters, durable=durable)
        return self._sql.transact([(statement, parameters)], self._permit, durable=durable)

    def _insert(self, row: Mapping[str, Any], on_conflict: str = "", *, durable: bool = False) -> list[Row]:
        """Insert a row. `on_conflict` is SQL behind the values, and may return rows."""
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        statement = f"INSERT INTO {self.name} ({columns}) VALUES ({marks}) {on_conflict}"  # noqa: S608  # constants of ours
        return self._execute(statement, [*row.values()], durable=durable)


BUSY_TIMEOUT_S = 30.0
"""Maximum number of seconds that a write waits while another connection locks the database."""

SMALL_FILE_LIMIT = 2**30
"""Limit for the size of a file, in bytes, below which a failed write is blamed on it. The longest debates
need less."""
DISK_FULL = "the disk is full: free some space"
_LOCKED = "another program has locked it: close this program, or wait"
_ADVICE = {
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_READONLY: "it, or its folder, is read-only: allow writing, or give a copy with {db}",
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore a backup, or copy it with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database: give another {db}",
    sqlite3.SQLITE_CANTOPEN: "its folder cannot be written to: allow writing, or give another {db}",
    sqlite3.SQLITE_IOERR: "its disk cannot be read or written: free some space, and check the disk",
}


_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)


def storage_error(error: sqlite3.Error) -> StorageError:
    """Convert an SQLite error to a `StorageError` with advice for the user."""
    return StorageError(f"the database failed ({error}){_remedy(error)}")


def _remedy(error: sqlite3.Error) -> str:
    """Return advice on how to fix an SQLite error, starting with a colon, or `""` if there is none."""
    words, largest = _ADVICE.get(_code(error)), _largest_file()
    if _code(error) in _UNWRITABLE and largest is not None and largest < SMALL_FILE_LIMIT:
        words = f"files may have {largest // 1024} KiB here: raise `ulimit -f`, and resume the debate"
    return f": {words.format(db=option('db', 'database'))}" if words else ""


def _largest_file() -> int | None:
    """Return the process's limit for the size of a file in bytes, or `None` if there is no limit."""
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0] if resource else -1
    return None if resource is None or largest == resource.RLIM_INFINITY else largest


def _code(error: sqlite3.Error) -> int:
    """Return the primary SQLite result code of an error."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


class SqliteSql(Sql):
    """SQLite database in a file, read-only if it cannot be written, or in memory (`:memory:`)."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"
    exists_query = "SELECT count(*) FROM sqlite_master WHERE name = ?"
    version_query, version_statement = "PRAGMA user_version", "PRAGMA user_version = {}"
    checkpoint_tables = ("checkpoints", "writes")

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._lock, self._hasty = threading.Lock(), False
        self.address = str(path)
        """First argument of `sqlite3.connect`, with `uri=True`."""
        try:
            if isinstance(path, Path):
                self.address = path.absolute().as_uri()
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.touch(mode=0o600)
            self._connection = _connect(self.address)
        except OSError as error:
            raise InputError(f"cannot open database {str(path)!r}: {file_error_reason(error)}") from error
        except sqlite3.Error as error:
            if not isinstance(path, Path) or not _is_only_unwritable(path, error):
                raise InputError(f"cannot open database {str(path)!r}: {error}{_remedy(error)}") from error
            self.address, self.read_only = f"{self.address}?immutable=1", True
            self._connection = _connect(self.address)
        self._file = path.absolute() if isinstance(path, Path) else None
        self._inode = self._file.stat().st_ino if self._file else 0

    @override
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        return self._locked(lambda: self._connection.execute(statement, parameters).fetchall(), durable)

    @override
    def transact(
        self, statements: Sequence[Statement], permit: Permit | None, *, durable: bool = False
    ) -> list[Row]:
        def work() -> tuple[bool, list[Row]]:
            run = self._connection.execute
            try:
                run("BEGIN IMMEDIATE")
                rows = run(*permit.statement).fetchall() if permit else []
                allowed = permit is None or permit.allows(rows)
                if allowed:
                    rows = [run(*each).fetchall() for each in statements][-1]
                    run("COMMIT")
                return allowed, rows
            finally:
                if self._connection.in_transaction:
                    run("ROLLBACK")

        allowed, rows = self._locked(work, durable)
        if permit is not None and not allowed:
            raise permit.refusal(rows)
        return rows

    def _locked(self, work: Callable[[], T], durable: bool) -> T:
        """Do the work while no other thread uses the connection."""
        self.check_process()
        self._check_file()
        if non_blocking.active:
            if durable or not self._lock.acquire(blocking=False):
                raise WouldBlock
            try:
                return self._work(work, durable)
            finally:
                self._lock.release()
        # Ctrl-C cannot come between this `with` and its body, as it can after `acquire()` or in a context
        # manager written in Python. The lock would stay locked, and the stopping run would wait for it.
        with self._lock:
            return self._work(work, durable)

    def _work(self, work: Callable[[], T], durable: bool) -> T:
        hasty, run = non_blocking.active, self._connection.execute
        try:
            if self._hasty != hasty:
                run(f"PRAGMA busy_timeout={0 if hasty else BUSY_TIMEOUT_S * 1000:.0f}")
                self._hasty = hasty
            if not durable:
                return work()
            try:
                run("PRAGMA synchronous=FULL")
                return work()
            finally:
                run("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            if hasty and _code(error) == sqlite3.SQLITE_BUSY:
                raise WouldBlock from error
            raise storage_error(error) from error

    def _check_file(self) -> None:
        """Raise `DebateNotFound` if the database file was deleted or replaced."""
        if self._file is None:
            return
        try:
            kept = self._file.stat().st_ino == self._inode
        except OSError:
            kept = False
        if not kept:
            raise DebateNotFound(
                f"the database file {str(self._file)!r} was deleted or replaced while it was open, so Moot "
                "no longer writes to it: restore the file, or start again"
            )

    @override
    def require_space(self, size: int) -> None:
        if self._file is None:
            return
        # A value is written to the log and to the database.
        space, files = shutil.disk_usage(self._file.parent).free // 2, (self._file, f"{self._file}-wal")
        advice = DISK_FULL
        if (largest := _largest_file()) is not None:
            left = largest - max(os.path.getsize(each) for each in files if os.path.exists(each))
            space, advice = min(space, left), advice if space <= left else "raise the limit `ulimit -f`"
        if space < size:
            raise StorageError(f"the database needs {size // 1024} KiB for the next replies: {advice}")

    @override
    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def back_up(self, target: Path) -> None:
        """Copy a consistent snapshot of the database to a new file. A failed copy leaves no partial file.

        The copy holds no leases.

        Raises:
            InputError: The file exists or cannot be written.
            StorageError: The database cannot be read, or the disk is full.
        """
        if target.exists():
            raise InputError(f"{str(target)!r} already exists: give the name of a new file")
        draft: Path | None = None
        try:
            with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
                draft = Path(file.name)
            with (
                closing(sqlite3.connect(self.address, uri=True)) as source,
                closing(sqlite3.connect(draft)) as copy,
            ):
                source.backup(copy, pages=2000, sleep=0.01)
                copy.execute("PRAGMA journal_mode=DELETE")  # a single file is easier to send
                with copy:
                    copy.execute("UPDATE moot_leases SET token = ''")
            draft.replace(target)
        except OSError as error:
            raise InputError(f"cannot write {str(target)!r}: {file_error_reason(error)}") from error
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
        connection.execute("PRAGMA synchronous=NORMAL")  # commits survive any crash of the process
        _switch_to_wal(connection)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch the database to write-ahead logging, and wait for connections that do the same."""
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
    """Return True if a database failed to open only because its file cannot be written."""
    if _code(error) not in _UNWRITABLE or not path.is_file():
        return False
    log = path.with_name(path.name + "-wal")
    return not (log.exists() and log.stat().st_size)

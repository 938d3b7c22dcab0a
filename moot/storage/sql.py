"""SQL interface for Moot's own tables in SQLite and Postgres.

Calls block, so asynchronous code runs them on a worker thread.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from moot.state.errors import DebateBusy, InputError

DATABASE_VERSION = 3
"""Version number of the schema of Moot's tables. Databases with a higher version are refused."""

Value = str | bytes | float | None
Row = tuple[Any, ...]
"""Row returned by a query."""
Statement = tuple[str, Sequence[Value]]
"""SQL statement with `?` placeholders and the values for these placeholders."""


@dataclass(frozen=True)
class Permit:
    """Condition on table rows that a transaction checks before it writes."""

    statement: Statement
    """Query for the rows on which the condition depends."""
    allows: Callable[[Sequence[Row]], bool]
    """Function that returns True if the queried rows allow the transaction."""
    refusal: Callable[[Sequence[Row]], DebateBusy]
    """Function that returns the error to raise if the queried rows do not allow the transaction."""


class Sql(ABC):
    """Base class of database connections that can be shared by threads.

    Every statement is committed at once.
    """

    read_only = False
    """True if the database can only be read. The default is False."""
    clock: ClassVar[str]
    """SQL expression for the current time of the database's clock, in seconds since 1970."""
    version_query: ClassVar[str]
    """SQL query that returns the version of Moot's tables."""
    version_statement: ClassVar[str]
    """SQL statement that stores the version of Moot's tables. The version number replaces `{}`."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_inherited(self) -> bool:
        """True in a child process that has inherited the open database through `fork()`."""
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Raise an error if the database was opened before a `fork()`.

        A connection that two processes use corrupts the database, and its threads do not exist in the child.

        Raises:
            InputError: The database was opened by a parent process.
        """
        if self.is_inherited:
            raise InputError("this database was opened before fork(): open it again in the new process")

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
        self, statements: Sequence[Statement], permit: Permit, *, durable: bool = False
    ) -> list[Row]:
        """Execute statements in one transaction if the permit allows it, and return the last one's rows.

        Raises:
            DebateBusy: The permit does not allow the transaction.
            StorageError: The database cannot be reached, read or written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the database connection."""

    def version(self) -> int:
        """Return the version of Moot's tables, or 0 if the database has no such tables."""
        return int(self.execute(self.version_query)[0][0] or 0)


class DebateTable:
    """Base class of database tables whose rows each belong to a debate."""

    name: ClassVar[str]
    columns: ClassVar[str]
    """Column definitions of the table, in the syntax of `CREATE TABLE`."""
    debate: ClassVar[str] = "debate"
    """Name of the column that contains the debate's id."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._permit: Permit | None = None
        if not sql.read_only:
            sql.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({self.columns})")

    def fenced_by(self, permit: Permit) -> Self:
        """Return a copy of this table object that checks the permit before each write."""
        other = copy(self)
        other._permit = permit
        return other

    def delete(self, debate: str) -> None:
        """Delete all rows of a debate from this table, without checking a permit."""
        self._sql.execute(f"DELETE FROM {self.name} WHERE {self.debate} = ?", (debate,))  # noqa: S608  # constants of ours

    def _execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Execute one statement, and check the permit only if the statement writes.

        Raises:
            DebateBusy: The permit does not allow the write.
        """
        if self._permit is None or statement.startswith("SELECT"):
            return self._sql.execute(statement, parameters, durable=durable)
        return self._sql.transact([(statement, parameters)], self._permit, durable=durable)

    def _insert(self, row: Mapping[str, Any], on_conflict: str = "", *, durable: bool = False) -> list[Row]:
        """Insert a row and return the resulting rows."""
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        statement = f"INSERT INTO {self.name} ({columns}) VALUES ({marks}) {on_conflict}"  # noqa: S608  # constants of ours
        return self._execute(statement, [*row.values()], durable=durable)

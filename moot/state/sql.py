"""The little SQL that Moot's own tables need, alike for SQLite and Postgres.

Calls block; asynchronous code runs them on a worker thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from moot.state.errors import DebateBusy

DATABASE_VERSION = 2
"""Version of Moot's tables: higher ones are written by newer builds, which may mean other things by them."""

Value = str | bytes | float | None
Row = tuple[Any, ...]
"""What a row holds, its statement says."""
Statement = tuple[str, Sequence[Value]]
"""SQL with `?` placeholders, and what stands for them."""


@dataclass(frozen=True)
class Permit:
    """May a transaction write? What rows of the database say within it."""

    statement: Statement
    """What reads the rows."""
    allows: Callable[[Sequence[Row]], bool]
    """Whether these rows say so."""
    refusal: Callable[[Sequence[Row]], DebateBusy]
    """The error of a transaction that these rows forbid; it asks the database for a name."""


class Sql(ABC):
    """One connection, safe to use from several threads; every statement is committed at once."""

    read_only = False
    """Whether nothing can be written."""
    clock: ClassVar[str]
    """SQL for the time, seconds since 1970, by the database's own clock."""
    version_query: ClassVar[str]
    version_note: ClassVar[str]
    """SQL that reads and, with a number in its braces, writes the version of Moot's tables."""

    @abstractmethod
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement with `?` placeholders, commit, and return its rows.

        `durable` has what is committed survive a loss of power too, which takes SQLite 3 ms instead of 0.3.

        Raises:
            StorageError: the database cannot be reached, read or written.
        """

    @abstractmethod
    def transact(
        self, statements: Sequence[Statement], permit: Permit, *, durable: bool = False
    ) -> list[Row]:
        """Run statements in one transaction, if that is allowed, and return the last one's rows.

        Raises:
            DebateBusy: it is not allowed.
            StorageError: the database cannot be reached, read or written.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def version(self) -> int:
        """Return the version of Moot's tables, 0 for none."""
        return int(self.execute(self.version_query)[0][0] or 0)


class DebateTable:
    """One of Moot's own tables; its rows belong to debates."""

    name: ClassVar[str]
    columns: ClassVar[str]
    """As `CREATE TABLE` takes them."""
    debate: ClassVar[str] = "debate"
    """The column that holds the debate's id."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._permit: Permit | None = None
        if not sql.read_only:
            sql.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({self.columns})")

    def under(self, permit: Permit) -> Self:
        """Return the same table as a run has it, whose writing is subject to a permit."""
        other = copy(self)
        other._permit = permit
        return other

    def delete(self, debate: str) -> None:
        """Forget a debate's rows, whatever a permit says."""
        self._sql.execute(f"DELETE FROM {self.name} WHERE {self.debate} = ?", (debate,))  # noqa: S608  # constants of ours

    def _execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        """Run one statement; one that only reads is subject to nothing.

        Raises:
            DebateBusy: it may not write.
        """
        if self._permit is None or statement.startswith("SELECT"):
            return self._sql.execute(statement, parameters, durable=durable)
        return self._sql.transact([(statement, parameters)], self._permit, durable=durable)

    def _insert(self, row: Mapping[str, Any], otherwise: str = "", *, durable: bool = False) -> list[Row]:
        """Add a row and return what the statement does, which `otherwise` ends, such as `ON CONFLICT …`."""
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        statement = f"INSERT INTO {self.name} ({columns}) VALUES ({marks}) {otherwise}"  # noqa: S608  # constants of ours
        return self._execute(statement, [*row.values()], durable=durable)

"""Moot's own tables of a database, such as the journal, the catalogue, results and leases."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from typing_extensions import TypedDict

from moot.config.boundary import Capability, without_raised_limits
from moot.state.conversation import StateValues
from moot.state.entries import JsonObject, memoize_by_identity
from moot.state.errors import DebateExists, InputError, StorageError, option
from moot.state.settings import is_postgres, sqlite_path
from moot.storage import failed_runs, inbox, journal as journals
from moot.storage.catalogue import Catalogue, DebateRow, ResultTable, check_name, thread_id_of
from moot.storage.leases import Lease, Leases
from moot.storage.rate_limiter import Budgets, RateLimiter
from moot.storage.servers import database_servers, server_of
from moot.storage.sqlite import DATABASE_VERSION, DebateTable, Permit, Sql, SqliteSql, reading

Rating = Literal["right", "wrong", "mixed"]
"""Rating that a person gives to a decision after the debate."""
OUTCOMES: Mapping[Rating, float] = {"right": 1.0, "mixed": 0.5, "wrong": 0.0}
"""Numeric value of each rating for the Brier score, from 0 (wrong) to 1 (right)."""


class Forecast(TypedDict):
    """Decision and confidence of one judge, stored with a person's feedback to score the judge."""

    judge: str
    model: str
    decision: str
    confidence: float
    """The judge's confidence in the decision, from 0 to 100."""
    agrees: bool
    """True if this judge's decision matches the debate's decision. Always true if decisions are free text."""


def _forecasts_in(text: str, debate: str) -> tuple[Forecast, ...]:
    with reading(f"the feedback on the debate {debate}", "restore a backup, or give the feedback again"):
        stored: object = json.loads(text)
        if not (isinstance(stored, list) and all(isinstance(each, dict) for each in stored)):
            raise ValueError("not a list of forecasts")
    return tuple(cast(list[Forecast], stored))


@dataclass(frozen=True)
class Feedback:
    """A person's feedback on the decision of one debate."""

    debate: str
    """UUID of the debate."""
    rating: Rating
    note: str
    decision: str
    """Decision of the debate at the time of the feedback."""
    forecasts: tuple[Forecast, ...]
    """Decision and confidence of each judge who stated a confidence. Offline models state none."""
    at: str
    """UTC time of the feedback, in ISO 8601 format."""

    @property
    def outcome(self) -> float:
        """Value of the rating for the Brier score, from 0 (wrong) to 1 (right)."""
        return OUTCOMES[self.rating]


class FollowUpTable(DebateTable):
    """Table with people's feedback on debates and the dates for revisiting the decisions."""

    name = "moot_follow_ups"
    columns = """
        debate TEXT PRIMARY KEY, revisit TEXT NOT NULL, rating TEXT NOT NULL, note TEXT NOT NULL,
        decision TEXT NOT NULL, forecasts TEXT NOT NULL, at TEXT NOT NULL"""

    def note_revisit(self, debate: str, config: Mapping[str, object] | None) -> None:
        """Store the date for revisiting the debate's decision, if there is one."""
        if not config:
            return
        revisit = str(config.get("revisit") or "")
        if revisit or self._select("WHERE debate = ? AND revisit <> ''", [debate]):
            empty = {"rating": "", "note": "", "decision": "", "forecasts": "[]", "at": ""}
            update = "ON CONFLICT (debate) DO UPDATE SET revisit = excluded.revisit"
            self._insert({"debate": debate, "revisit": revisit, **empty}, update)

    def rate(self, feedback: Feedback) -> None:
        """Store a person's feedback, replacing earlier feedback on the same debate."""
        row = {**vars(feedback), "forecasts": json.dumps(feedback.forecasts), "revisit": ""}
        columns = ("rating", "note", "decision", "forecasts", "at")
        update = ", ".join(f"{column} = excluded.{column}" for column in columns)
        self._insert(row, f"ON CONFLICT (debate) DO UPDATE SET {update}")

    def feedback(self, debate: str = "") -> list[Feedback]:
        """Return the feedback on one or all debates, oldest first. In a read-only database: `[]`."""
        condition = ("AND debate = ?", [debate]) if debate else ("", [])
        clause = f"WHERE rating <> '' {condition[0]} ORDER BY at, debate"
        rows = [] if self._sql.read_only else self._select(clause, condition[1])
        return [
            Feedback(
                str(debate_id),
                cast(Rating, rating),
                str(note),
                str(decision),
                _forecasts_in(str(forecasts), str(debate_id)),
                str(rated_at),
            )
            for debate_id, _, rating, note, decision, forecasts, rated_at in rows
        ]

    def revisit_dates(self) -> dict[str, str]:
        """Return ISO 8601 dates to revisit decisions without feedback, by debate id."""
        rows = [] if self._sql.read_only else self._select("WHERE revisit <> '' AND rating = ''")
        return {str(debate): str(revisit) for debate, revisit, *_ in rows}

    def _select(self, clause: str, parameters: Sequence[str] = ()) -> Sequence[tuple[object, ...]]:
        columns = "debate, revisit, rating, note, decision, forecasts, at"
        return self._execute(f"SELECT {columns} FROM moot_follow_ups {clause}", parameters)  # noqa: S608  # constants of ours


class Grants(DebateTable):
    """Table of capabilities that operators granted to debates. Requests and documents cannot write to it."""

    name = "moot_grants"
    columns = """
        debate TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (debate, kind, value)"""

    def of(self, debate: str) -> frozenset[Capability]:
        """Return all capabilities granted to a debate."""
        rows = self._execute("SELECT kind, value FROM moot_grants WHERE debate = ?", (debate,))
        return frozenset(Capability(kind, value) for kind, value in rows)

    def add(self, debate: str, reached: Iterable[Capability]) -> None:
        """Grant additional capabilities, such as models or tools, to a debate."""
        for reach in reached:
            self._insert({"debate": debate, **reach._asdict()}, "ON CONFLICT DO NOTHING")


class ImportTable(DebateTable):
    """Table of debates with imported verdicts. Documents and state updates cannot write to it."""

    name = "moot_imports"
    columns = "debate TEXT PRIMARY KEY, verdict TEXT NOT NULL, at TEXT NOT NULL"

    def add(self, debate: str, verdict: Mapping[str, object], imported_at: str) -> None:
        """Record that a debate's verdict was imported at the given ISO 8601 time."""
        row = {"debate": debate, "verdict": _digest(verdict), "at": imported_at}
        self._insert(row, "ON CONFLICT (debate) DO UPDATE SET verdict = excluded.verdict, at = excluded.at")

    def delete_if_replaced(self, debate: str, verdict: Mapping[str, object] | None) -> None:
        """Delete a debate's import record if `verdict` has replaced the imported one."""
        if verdict and verdict.get("status") == "ok":
            self._execute(
                "DELETE FROM moot_imports WHERE debate = ? AND verdict <> ?", (debate, _digest(verdict))
            )

    def time_of(self, debate: str, verdict: Mapping[str, object] | None) -> str:
        """Return when a debate's verdict was imported, or `""` if it was not."""
        known = (debate, _digest(verdict or {}))
        rows = self._rows("SELECT at FROM moot_imports WHERE debate = ? AND verdict = ?", known)
        return str(rows[0][0]) if rows else ""

    def times(self) -> dict[str, str]:
        """Return the times of all imported verdicts, keyed by debate id."""
        return {
            str(debate): str(imported_at)
            for debate, imported_at in self._rows("SELECT debate, at FROM moot_imports")
        }

    def copy(self, source: str, target: str) -> None:
        """Copy the import time of a debate's verdict to a fork of the debate."""
        for verdict, imported_at in self._rows(
            "SELECT verdict, at FROM moot_imports WHERE debate = ?", (source,)
        ):
            row = {"debate": target, "verdict": verdict, "at": imported_at}
            self._insert(row, "ON CONFLICT (debate) DO NOTHING")

    def _rows(self, statement: str, parameters: Sequence[str] = ()) -> Sequence[tuple[object, ...]]:
        """Run a query and return its rows. A read-only database of an earlier build has no such table."""
        try:
            return self._execute(statement, parameters)
        except StorageError:
            if self._sql.read_only:
                return []
            raise


def _digest(verdict: Mapping[str, object]) -> str:
    content = json.dumps(verdict, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Records:
    """Access to all of Moot's database tables except LangGraph's checkpoints."""

    sql: Sql
    journal: journals.Journal
    catalogue: Catalogue
    leases: Leases
    inbox: inbox.InboxTable
    failed: failed_runs.FailedRuns
    grants: Grants
    results: ResultTable
    follow_ups: FollowUpTable
    rate_limiter: RateLimiter
    budgets: Budgets
    imports: ImportTable

    def rows(self) -> list[DebateRow]:
        """Return the catalogue rows of debates that began, the most recently active first.

        A debate whose process died has the status `paused`.
        """
        return [self._with_actual_status(row) for row in self.catalogue.rows() if not self.never_began(row)]

    def never_began(self, row: DebateRow) -> bool:
        """Return True if the process that created a debate ended before the debate started."""
        return row.status == "new" and not self.leases.is_held(row.id)

    def find(self, name: str) -> DebateRow:
        """Return the catalogue row of the debate with the given id, name or unambiguous id prefix.

        Raises:
            DebateNotFound: There is no such debate.
            InputError: Several ids start with these characters.
        """
        return self._with_actual_status(self.catalogue.find(name))

    def _with_actual_status(self, row: DebateRow) -> DebateRow:
        left = row.status == "running" and not self.leases.is_held(row.id)
        return replace(row, status="paused") if left else row

    def rename(self, debate: str, name: str) -> None:
        """Rename a debate.

        Raises:
            InputError: The name is not valid.
            DebateExists: The name is or was that of another debate.
        """
        check_name(name)
        others = [row for row in self.catalogue.rows() if row.id != debate]
        if any(name == row.name or thread_id_of(name) == row.id for row in others):
            raise DebateExists(f"the name {name!r} is or was used by another debate: choose another name")
        self.catalogue.update(debate, name=name)

    def forget(self, debate: str, permit: Permit | None = None) -> None:
        """Delete a debate's checkpoints and all of its rows in Moot's tables, in one transaction.

        From then on, writes of a run in another process are refused. Without a `permit`, a debate that is
        running is deleted, too.

        Raises:
            DebateBusy: The permit does not allow the deletion.
        """
        # The lease comes first. A run that writes at this moment waits for its row, and is refused.
        tables = (self.leases, self.catalogue, *self.tables())
        keys = {table.name: table.debate for table in tables}
        for table in self.sql.checkpoint_tables:
            if self.sql.execute(self.sql.exists_query, (table,))[0][0]:
                keys[table] = "thread_id"
        deletions = [(f"DELETE FROM {table} WHERE {key} = ?", (debate,)) for table, key in keys.items()]  # noqa: S608  # constants of ours
        self.sql.transact(deletions, permit)

    def with_pending_usage(self, debate: str, state: StateValues) -> JsonObject:
        """Return a debate's state with the usage of failed runs and answered questions."""
        usage = self.inbox.since(debate, state.get("last_inbox_number") or 0).question_usage
        return inbox.with_questions(failed_runs.with_failures(state, self.failed.of(debate)), usage)

    def tables(self) -> Sequence[DebateTable]:
        """Return all tables with rows that belong to debates, except the catalogue."""
        rows = self.journal, self.inbox, self.failed, self.grants, self.results, self.follow_ups
        return (*rows, self.imports, self.budgets, self.leases)

    def copy(self, source: str, target: str) -> None:
        """Copy a debate's catalogue row, inbox and granted capabilities to a fork.

        The import time of the verdict is copied, too. A client of a LangGraph server created the fork. Limits
        that the operator raised for the debate are not copied, because the client need not be the operator.

        The journal is not copied.
        """
        self.catalogue.copy(source, target)
        self.inbox.copy(source, target)
        self.grants.add(target, without_raised_limits(self.grants.of(source)))
        self.imports.copy(source, target)

    @memoize_by_identity(8)  # the nodes of a run ask for the same tables one after another
    def fenced_by(self, lease: Lease) -> Records:
        """Return a copy of these tables that rejects writes without the lease.

        The run loses the lease if another run takes it. Leases, rate limits and budgets can still be written.
        """
        permit = self.leases.permit(lease)
        return replace(
            self,
            journal=self.journal.fenced_by(permit),
            catalogue=self.catalogue.fenced_by(permit),
            inbox=self.inbox.fenced_by(permit),
            failed=self.failed.fenced_by(permit),
            grants=self.grants.fenced_by(permit),
            results=self.results.fenced_by(permit),
            follow_ups=self.follow_ups.fenced_by(permit),
            imports=self.imports.fenced_by(permit),
        )

    def close(self) -> None:
        """Close the connection."""
        self.leases.close()
        self.sql.close()


def open_records(url: str) -> Records:
    """Open Moot's tables in the database at the given path or URL.

    Missing files, folders and tables are created.

    Raises:
        InputError: The database cannot be opened, or was written by a newer version of Moot.
    """
    return _records(server_of(url).open_sql(url) if is_postgres(url) else SqliteSql(sqlite_path(url)))


def _records(sql: Sql, has_other_child: journals.HasOtherChild | None = None) -> Records:
    with ExitStack() as opening:
        opening.callback(sql.close)
        if (version := sql.version()) > DATABASE_VERSION:
            raise InputError(
                f"a newer version of Moot wrote the database (database version {version}, but this "
                f"Moot reads {DATABASE_VERSION}): update Moot, or give another {option('db', 'database')}"
            )
        catalogue = Catalogue(sql)
        leases = Leases(sql, catalogue.name_of)
        records = Records(
            sql,
            journals.Journal(sql, has_other_child),
            catalogue,
            leases,
            inbox.InboxTable(sql),
            failed_runs.FailedRuns(sql),
            Grants(sql),
            ResultTable(sql),
            FollowUpTable(sql),
            RateLimiter(sql, leases),
            Budgets(sql),
            ImportTable(sql),
        )
        if 0 < version < 3 and not sql.read_only:  # the table has existed without these columns
            for column in ("question TEXT NOT NULL DEFAULT ''", "confidence DOUBLE PRECISION"):
                sql.execute(f"ALTER TABLE moot_results ADD COLUMN {column}")
        if version < DATABASE_VERSION and not sql.read_only:
            sql.execute(sql.version_statement.format(DATABASE_VERSION))
        opening.pop_all()
    return records


_by_checkpointer: weakref.WeakKeyDictionary[BaseCheckpointSaver[str], Records] = weakref.WeakKeyDictionary()
_records_lock = threading.Lock()


def records_of(checkpointer: BaseCheckpointSaver[str]) -> Records:
    """Return Moot's tables in the database that a checkpointer uses.

    Moot's own checkpointers carry their records. LangGraph's checkpointers for SQLite and Postgres get
    records in their own database, over another connection. For any other checkpointer the journal is kept in
    memory, as long as the checkpointer exists.
    """
    own_records = getattr(checkpointer, "records", None)
    if isinstance(own_records, Records):
        return own_records
    with _records_lock:
        if checkpointer not in _by_checkpointer:
            _by_checkpointer[checkpointer] = records = _records_for(checkpointer)
            weakref.finalize(checkpointer, records.close)
        return _by_checkpointer[checkpointer]


def _sqlite_file(connection: sqlite3.Connection | aiosqlite.Connection) -> str:
    """Return a connection's database file, `""` in memory. `aiosqlite` answers from its own thread."""
    statement = "PRAGMA database_list"
    if isinstance(connection, sqlite3.Connection):
        return str(connection.execute(statement).fetchone()[2])

    async def file() -> str:
        async with connection.execute(statement) as cursor:
            row = await cursor.fetchone()
        return str(row[2]) if row else ""

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, file()).result()


def _server_sql(connection: object) -> Sql | None:
    """Open another connection to the server that a checkpointer uses, or return `None` without a server."""
    for server in database_servers() if connection is not None else ():
        if address := server.address_of(connection):
            return server.open_sql(address)
    return None


def _records_for(checkpointer: BaseCheckpointSaver[str]) -> Records:
    connection = getattr(checkpointer, "conn", None)
    if isinstance(connection, sqlite3.Connection | aiosqlite.Connection):
        if path := _sqlite_file(connection):
            return open_records(path)
    elif sql := _server_sql(connection):
        return _records(sql)
    elif "InMemorySaver" not in {base.__name__ for base in type(checkpointer).__mro__}:
        kind = type(checkpointer).__name__
        logging.getLogger(__name__).warning(
            "%s stores no journal. This process keeps the replies of models in memory. Another process that "
            "continues a debate repeats the calls of the interrupted step. To store the journal, use "
            "LangGraph's savers for SQLite and Postgres, or `open_debates`.",
            kind,
        )
    saver = weakref.ref(checkpointer)

    def has_other_child(debate: str, checkpoint: str, present: str) -> bool:
        """Return True if a checkpoint has another child. Rarely called: only for a journalled request."""
        thread: RunnableConfig = {"configurable": {"thread_id": debate, "checkpoint_ns": ""}}
        known = saver()
        every = list(known.list(thread)) if known else []  # read all, as the iterator blocks
        return any(
            stored.checkpoint["id"] != present
            for stored in every
            if stored.parent_config and stored.parent_config["configurable"]["checkpoint_id"] == checkpoint
        )

    return _records(SqliteSql(":memory:"), has_other_child)

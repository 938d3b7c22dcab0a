"""Moot's own tables beside LangGraph's: journal, catalogue, grants, floor, leases."""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moot.state.at_sight import at_sight
from moot.state.catalogue import Catalogue, DebateRow, Outcomes, check_name, thread_id_of
from moot.state.config.boundary import Reach
from moot.state.errors import DebateExists, InputError
from moot.state.failed_runs import FailedRuns
from moot.state.floor import FloorTable
from moot.state.journal import Journal, WentOn
from moot.state.leases import Lease, Leases
from moot.state.plugins import extra
from moot.state.settings import is_postgres, sqlite_path
from moot.state.sql import DATABASE_VERSION, DebateTable, Sql
from moot.state.sqlite import SqliteSql
from moot.state.traffic import Traffic

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver


class Grants(DebateTable):
    """What operators granted single debates: the reaches of configurations that they gave them themselves.

    No request and no document writes here.
    """

    name = "moot_grants"
    columns = """
        debate TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (debate, kind, value)"""

    def of(self, debate: str) -> frozenset[Reach]:
        """Return what a debate was granted."""
        rows = self._execute("SELECT kind, value FROM moot_grants WHERE debate = ?", (debate,))
        return frozenset(Reach(kind, value) for kind, value in rows)

    def add(self, debate: str, reached: Iterable[Reach]) -> None:
        """Grant a debate more."""
        for reach in reached:
            self._insert({"debate": debate, **reach._asdict()}, "ON CONFLICT DO NOTHING")


@dataclass(frozen=True)
class Records:
    """What Moot keeps of its debates beside their checkpoints."""

    sql: Sql
    journal: Journal
    catalogue: Catalogue
    leases: Leases
    floor: FloorTable
    failed: FailedRuns
    grants: Grants
    outcomes: Outcomes
    traffic: Traffic

    def rows(self) -> list[DebateRow]:
        """Return the catalogue, the most recently active first; what a dead process left is `paused`.

        What it left before it began is not there.
        """
        return [self._as_it_is(row) for row in self.catalogue.rows() if not self.never_began(row)]

    def never_began(self, row: DebateRow) -> bool:
        """Return whether the process that made this debate died before it had."""
        return row.status == "new" and not self.leases.is_held(row.id)

    def find(self, name: str) -> DebateRow:
        """Return the row of this id, name or unambiguous beginning of an id, as `rows` would.

        Raises:
            DebateNotFound: there is none.
            InputError: several ids begin like this.
        """
        return self._as_it_is(self.catalogue.find(name))

    def _as_it_is(self, row: DebateRow) -> DebateRow:
        left = row.status == "running" and not self.leases.is_held(row.id)
        return replace(row, status="paused") if left else row

    def rename(self, debate: str, name: str) -> None:
        """Call a debate something else.

        Raises:
            InputError: it cannot be called that.
            DebateExists: another one is called so, or has been.
        """
        check_name(name)
        others = [row for row in self.catalogue.rows() if row.id != debate]
        if any(name == row.name or thread_id_of(name) == row.id for row in others):
            raise DebateExists(f"another debate is, or was, called {name!r}: choose another name")
        self.catalogue.update(debate, name=name)

    def forget(self, debate: str) -> None:
        """Delete all that is kept of a debate; a run of it that goes on elsewhere is refused."""
        for table in (self.catalogue, *self.tables()):
            table.delete(debate)

    def tables(self) -> Sequence[DebateTable]:
        """Return the tables of all but the catalogue."""
        return self.journal, self.floor, self.failed, self.grants, self.outcomes, self.leases

    def copy(self, source: str, target: str) -> None:
        """Give a copy of a debate its place in the catalogue, its grants and its floor; no journal."""
        self.catalogue.copy(source, target)
        self.floor.copy(source, target)
        self.grants.add(target, self.grants.of(source))

    @at_sight(8)  # a run's nodes ask for it one after another
    def under(self, lease: Lease) -> Records:
        """Return the records as a run has them: what it writes is refused once the lease is another's."""
        permit = self.leases.permit(lease)
        return replace(
            self,
            journal=self.journal.under(permit),
            catalogue=self.catalogue.under(permit),
            floor=self.floor.under(permit),
            failed=self.failed.under(permit),
            grants=self.grants.under(permit),
            outcomes=self.outcomes.under(permit),
        )

    def close(self) -> None:
        """Close the connection."""
        self.leases.close()
        self.sql.close()


def open_records(url: str) -> Records:
    """Open a database's records, making file, folder and tables where they are missing.

    Raises:
        InputError: the database cannot be opened, or a newer Moot wrote it.
    """
    if not is_postgres(url):
        return _records(SqliteSql(sqlite_path(url)))
    with extra("postgres", "Postgres"):
        from moot.state.postgres import PostgresSql
    return _records(PostgresSql(url))


def _records(sql: Sql, went_on: WentOn | None = None) -> Records:
    with ExitStack() as opening:
        opening.callback(sql.close)
        if (version := sql.version()) > DATABASE_VERSION:
            raise InputError(
                f"the database was written by a newer Moot (version {version}, this one knows "
                f"{DATABASE_VERSION}): update Moot, or give another --db"
            )
        catalogue = Catalogue(sql)
        leases = Leases(sql, catalogue.name_of)
        records = Records(
            sql,
            Journal(sql, went_on),
            catalogue,
            leases,
            FloorTable(sql),
            FailedRuns(sql),
            Grants(sql),
            Outcomes(sql),
            Traffic(sql, leases),
        )
        if version < DATABASE_VERSION and not sql.read_only:
            sql.execute(sql.version_note.format(DATABASE_VERSION))
        opening.pop_all()
    return records


_foreign: weakref.WeakKeyDictionary[BaseCheckpointSaver[str], Records] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def records_of(checkpointer: BaseCheckpointSaver[str]) -> Records:
    """Return the records that belong to a checkpointer.

    Moot's own savers carry theirs. A stock `SqliteSaver` gets them in its own file; for any other the journal
    lives in memory, as long as the saver does.
    """
    own = getattr(checkpointer, "records", None)
    if isinstance(own, Records):
        return own
    with _making:
        if checkpointer not in _foreign:
            _foreign[checkpointer] = records = _records_beside(checkpointer)
            weakref.finalize(checkpointer, records.close)
        return _foreign[checkpointer]


def _records_beside(checkpointer: BaseCheckpointSaver[str]) -> Records:
    connection = getattr(checkpointer, "conn", None)
    if isinstance(connection, sqlite3.Connection):
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        if path:
            return open_records(path)
    elif "InMemorySaver" not in {base.__name__ for base in type(checkpointer).__mro__}:
        kind = type(checkpointer).__name__
        logging.getLogger(__name__).warning(
            "%s keeps no journal: what models have answered is remembered by this process alone, and a step "
            "that another takes up is paid again; `open_debates`, `SqliteSaver` and `langgraph.json` keep it",
            kind,
        )
    saver = weakref.ref(checkpointer)

    def went_on(debate: str, checkpoint: str, present: str) -> bool:
        """Ask the saver itself: rare, only where a reply to the very same request is in the journal."""
        thread: RunnableConfig = {"configurable": {"thread_id": debate, "checkpoint_ns": ""}}
        known = saver()
        every = list(known.list(thread)) if known else []  # to its end: what reads it asks its own event loop
        return any(
            stored.checkpoint["id"] != present
            for stored in every
            if stored.parent_config and stored.parent_config["configurable"]["checkpoint_id"] == checkpoint
        )

    return _records(SqliteSql(":memory:"), went_on)

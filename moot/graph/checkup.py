"""What is wrong with an installation, a database and the debates in it."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

from moot.graph.session import is_over
from moot.nodes.summarize import unsummarised
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, StateValues
from moot.state.errors import MootError
from moot.state.langgraph_internals import TRIED
from moot.state.sql import DATABASE_VERSION, SqliteSql
from moot.state.traffic import SLOT

if TYPE_CHECKING:
    from moot.graph.api import Debates
    from moot.graph.stored_debate import Debate
    from moot.state.records import Records


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    says: str
    ok: bool = True
    repair: Callable[[], None] | None = None
    """What puts it right and loses nothing, where that is known."""


def look_at_installation() -> Iterator[Finding]:
    """Yield what debates run on."""
    yield Finding("Moot", f"{version('moot')}, Python {platform.python_version()}")
    yield Finding("SQLite", sqlite3.sqlite_version)
    for package, tried in TRIED.items():
        installed = version(package)
        remark = "" if installed == tried else f"; tried with {tried}"
        yield Finding(package, installed + remark)


def look_at_database(debates: Debates) -> Iterator[Finding]:
    """Yield what a database and each of its debates is like; every state is read."""
    sql = debates.records.sql
    if isinstance(sql, SqliteSql):
        faults = [str(fault) for (fault,) in sql.execute("PRAGMA integrity_check(5)")]
        yield Finding("file", "; ".join(faults), faults == ["ok"])
        ((pages, size, free),) = sql.execute(
            "SELECT page_count, page_size, freelist_count FROM pragma_page_count, pragma_page_size, "
            "pragma_freelist_count"
        )
        unused = f", {free / pages:.0%} of it unused" if pages and free else ""
        yield Finding("size", f"{pages * size / 2**20:.1f} MiB{unused}")
    yield Finding("tables", f"version {sql.version()}, known up to {DATABASE_VERSION}")
    rows = debates.rows()
    held = [row.name for row in rows if debates.records.leases.is_held(row.id)]
    yield Finding("running", ", ".join(held) or "none")
    for row in rows:
        try:
            for says, repair in _faults(debates.get(row.id)):
                yield Finding(row.name, says, False, repair)
        except MootError as error:
            yield Finding(row.name, str(error), ok=False)
    yield from _left_over(debates.records)
    yield Finding("debates", str(len(rows)))


def _left_over(records: Records) -> Iterator[Finding]:
    """Yield what is kept of debates that are not there, or never began."""
    for row in records.catalogue.rows():
        if records.never_began(row):
            yield Finding(row.name, "it never began", False, partial(records.forget, row.id))
    for table in records.tables() if not records.sql.read_only else ():
        lost = records.sql.execute(
            f"SELECT DISTINCT debate FROM {table.name} WHERE debate NOT IN (SELECT id FROM moot_debates) "  # noqa: S608  # constants of ours
            "AND debate NOT IN (SELECT thread_id FROM checkpoints)"
        )
        lost = [row for row in lost if not row[0].startswith(SLOT)]
        if lost:
            repair = partial(_each, table.delete, [debate for (debate,) in lost])
            yield Finding(table.name, f"rows of {len(lost)} debates that are not there", False, repair)


def _each(forget: Callable[[str], None], debates: Sequence[str]) -> None:
    for debate in debates:
        forget(debate)


_Fault = tuple[str, Callable[[], None] | None]


def _faults(debate: Debate) -> Iterator[_Fault]:
    """Yield which promises a stored debate breaks, each with what puts it right."""
    running, snapshot, row = debate.is_running(), debate.state(), debate.row
    values, records = snapshot.values, debate.session.records
    if not values.get("config"):
        yield "it has no configuration", None
        return
    for says in _broken(values):
        yield says, None
    try:
        records.journal.replies(debate.id)
    except ValueError as error:
        yield f"its journal cannot be read: {error}", None
    if running:
        return
    over = is_over(snapshot)
    told: dict[str, str | float] = {"turns": values["turn_count"]}
    if over:
        told["status"] = values["status"]
    wrong = {key: value for key, value in told.items() if getattr(row, key) != value}
    if over and (missed := unsummarised(cast(ConversationState, values))):
        yield f"{len(missed)} entries are neither in the window nor in the summary", None
    if wrong:
        listed = ", ".join(f"{key} {getattr(row, key)} for {value}" for key, value in wrong.items())
        yield f"it is listed with {listed}", partial(records.catalogue.update, debate.id, **wrong)


def _broken(values: StateValues) -> Iterator[str]:
    """Yield what is wrong with the entries and the window of a state."""
    entries = values["full_transcript"]
    ids, numbers = [entry["id"] for entry in entries], [entry["seq"] for entry in entries]
    if numbers != list(range(len(entries))):
        last = next((n - 1 for n, number in enumerate(numbers) if n != number), len(numbers) - 1)
        yield f"entries are missing, doubled or out of order after {last}: `moot fork --after` goes on before"
    if len(set(ids)) != len(ids):
        yield "two entries have the same id"
    names = frozen_config(values).names()
    window = {str(message.id) for message in values["messages"] if message.name in names}
    if strangers := sorted(window - set(ids)):
        yield f"the window shows what was not said: {', '.join(strangers[:3])}"

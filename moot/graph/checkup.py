"""What is wrong with an installation, a database and the debates in it."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from moot.graph.session import is_over
from moot.state.config.frozen import frozen_config
from moot.state.errors import MootError
from moot.state.langgraph_internals import TRIED
from moot.state.sql import DATABASE_VERSION, SqliteSql

if TYPE_CHECKING:
    from moot.graph.api import Debates
    from moot.graph.stored_debate import Debate


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    says: str
    ok: bool = True


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
            wrong = list(_faults(debates.get(row.id)))
        except MootError as error:
            wrong = [str(error)]
        if wrong:
            yield Finding(row.name, "; ".join(wrong), ok=False)
    yield Finding("debates", str(len(rows)))


def _faults(debate: Debate) -> Iterator[str]:
    """Yield which promises the state of a debate breaks."""
    running, snapshot = debate.is_running(), debate.state()
    if not snapshot.values.get("config"):
        yield "it has no configuration"
        return
    entries = snapshot.values["full_transcript"]
    ids, numbers = [entry["id"] for entry in entries], [entry["seq"] for entry in entries]
    if numbers != list(range(len(entries))):
        yield "entries are missing, doubled or out of order"
    if len(set(ids)) != len(ids):
        yield "two entries have the same id"
    names = frozen_config(snapshot.values).names()
    window = {str(message.id) for message in snapshot.values["messages"] if message.name in names}
    if strangers := sorted(window - set(ids)):
        yield f"the window shows what was not said: {', '.join(strangers[:3])}"
    if not running and is_over(snapshot) and debate.row.status in {"running", "paused"}:
        yield f"it is over, and listed as {debate.row.status}: `moot resume` puts that right"

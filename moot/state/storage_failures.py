"""What a failure of a database means to a user, and what to do."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from moot.state.errors import StorageError
from moot.state.redaction import shown_url

if TYPE_CHECKING:
    import psycopg

_FULL = "the disk is full: make room"
_SERVER_ADVICE = {
    "53100": _FULL,
    "53300": "it has too many connections: close some, or allow more",
    "25006": "it takes no writes: wait, or give the address of the server that does",
}
"""By SQLSTATE; a standby, and a server that was failed over from, say the last."""

_ADVICE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: "it, or its folder, is read-only: allow writing, or copy it and give --db COPY",
    sqlite3.SQLITE_BUSY: "another program has locked it: close that, or wait",
    sqlite3.SQLITE_LOCKED: "another program has locked it: close that, or wait",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore a backup, or copy it with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database: give another --db",
    sqlite3.SQLITE_CANTOPEN: "its folder cannot be written to: allow writing, or give another --db",
    sqlite3.SQLITE_IOERR: "its disk cannot be read or written: make room, and look after the disk",
}


def storage_error(error: sqlite3.Error) -> StorageError:
    """Return what a database's failure means to a user, and what to do."""
    return StorageError(f"the database failed ({error})" + remedy(error))


def server_error(error: psycopg.Error) -> StorageError:
    """Return what a Postgres server's failure means to a user, and what to do."""
    said, words = error.diag.message_primary or str(error), _SERVER_ADVICE.get(error.sqlstate or "")
    return StorageError(f"the database failed ({shown_url(said).strip()})" + (f": {words}" if words else ""))


def remedy(error: sqlite3.Error) -> str:
    """Return `: ` and what to do after a failure of SQLite's; `""` for a rare one."""
    words = _ADVICE.get(primary_code(error))
    return f": {words}" if words else ""


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's code of a failure, without the rest, which says more than we need."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF

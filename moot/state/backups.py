"""Copies of a SQLite database, made while others write it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import NamedTemporaryFile

from moot.state.errors import InputError
from moot.state.sql import SqliteSql
from moot.state.storage_failures import storage_error


def back_up(sql: SqliteSql, target: Path) -> None:
    """Copy a database, as it is at one moment, to a file that is not there yet, whole or not at all.

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
            closing(sqlite3.connect(sql.address, uri=True)) as source,
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

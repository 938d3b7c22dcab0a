"""Opening the database that a command works on; a command that only reads never makes one."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from moot.state.errors import DebateNotFound, InputError
from moot.state.redaction import shown_url
from moot.state.settings import check_database, database_exists, is_postgres

if TYPE_CHECKING:
    from moot.graph.api import Debate, Debates
    from moot.graph.work_queue import WorkQueue
    from moot.nodes.driving.environment import Environment
    from moot.state.records import Records


def _existing(db: str | None) -> str:
    url = check_database(db)
    if not database_exists(url):
        raise DebateNotFound(f"no debates: there is no database {url!r} yet")
    return url


def open_database(db: str | None, *, make: bool = False, environment: Environment | None = None) -> Debates:
    """Open the debates of a database for a `with` block.

    Args:
        db: `--db`.
        make: whether it is made where it does not exist.
        environment: models and clock; the default is the real world.

    Raises:
        DebateNotFound: there is no such file and none is to be made.
        InputError: it cannot be opened.
    """
    url = check_database(db) if make else _existing(db)
    from moot.graph.api import open_debates

    return open_debates(url, environment=environment)


@contextmanager
def open_stored_debate(db: str | None, name: str) -> Iterator[Debate]:
    """Open one debate of a database for a `with` block.

    Raises:
        DebateNotFound: there is none of this id or name.
        InputError: the database cannot be opened.
    """
    with open_database(db) as debates:
        yield debates.get(name)


def present_records(db: str | None) -> AbstractContextManager[Records]:
    """Open the catalogue alone, which is quick.

    Raises:
        DebateNotFound: there is no database.
        InputError: it cannot be opened.
    """
    url = _existing(db)
    from moot.state.records import open_records

    return closing(open_records(url))


def open_catalogue(db: str | None) -> AbstractContextManager[Records | None]:
    """Open the catalogue alone; `None` where there is no database.

    Raises:
        InputError: it cannot be opened.
    """
    return present_records(db) if database_exists(check_database(db)) else nullcontext()


def open_queue(db: str | None) -> WorkQueue:
    """Return the queue of a Postgres database.

    Raises:
        InputError: it is no Postgres database.
        ConfigError: the `queue` extra is not installed.
    """
    url = check_database(db)
    if not is_postgres(url):
        raise InputError(
            "a queue takes a Postgres database: give --db postgresql://…; here alone `moot batch` runs a file"
        )
    from moot.graph.work_queue import WorkQueue

    return WorkQueue(url)


def command_line(*words: str, db: str | None = None) -> str:
    """Return a `moot` command to copy, with the database where one was given."""
    program, called = "moot", Path(sys.argv[0])
    if called.name == "moot" and not shutil.which("moot"):  # not on the user's path: as it was called
        here = Path.cwd()
        program = str(called.relative_to(here) if called.is_relative_to(here) else called)
    return shlex.join([program, *words, *(["--db", shown_url(db)] if db else [])])

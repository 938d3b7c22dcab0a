"""Databases and queues that commands open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING

from moot.cli.terminal import print_note
from moot.state.errors import DebateNotFound, InputError
from moot.state.settings import check_database, database_exists, is_postgres

if TYPE_CHECKING:
    from moot.api import Debate, Debates
    from moot.runtime.environment import Environment
    from moot.storage.records import Records
    from moot.storage.servers import DebateQueue


def _existing(db: str | None) -> str:
    url = check_database(db)
    if not database_exists(url):
        raise DebateNotFound(f"there are no debates, because the database {url!r} does not exist yet")
    return url


def open_database(db: str | None, *, make: bool = False, environment: Environment | None = None) -> Debates:
    """Open a database during a `with` block and yield its debates.

    With `make`, create it if it does not exist.

    Raises:
        DebateNotFound: the database does not exist, and `make` is false.
        InputError: the database cannot be opened.
    """
    url = check_database(db) if make else _existing(db)
    from moot.api import open_debates

    return open_debates(url, environment=environment)


@contextmanager
def open_stored_debate(db: str | None, name: str | None) -> Iterator[Debate]:
    """Open a stored debate during a `with` block.

    Without a name, open the most recently active debate, and say which one it is. An unknown name is a
    `DebateNotFound`, a database that cannot be opened an `InputError`.
    """
    with open_database(db) as debates:
        from moot.storage.catalogue import LATEST, handle

        debate = debates.get(LATEST if name is None else name)
        if name is None:
            print_note(f"The latest debate: {handle(debate.id, debate.name)}")
        yield debate


def present_records(db: str | None) -> AbstractContextManager[Records]:
    """Open Moot's tables in an existing database during a `with` block, without LangGraph's slow import.

    A missing database is a `DebateNotFound`, one that cannot be opened an `InputError`.
    """
    url = _existing(db)
    from moot.storage.records import open_records

    return closing(open_records(url))


def open_catalogue(db: str | None) -> AbstractContextManager[Records | None]:
    """Open Moot's tables as `present_records` does, but yield `None` without a database."""
    return present_records(db) if database_exists(check_database(db)) else nullcontext()


def queue_url(db: str | None) -> str:
    """Return the URL of the queue's database. One that is not Postgres is an `InputError`."""
    url = check_database(db)
    if not is_postgres(url):
        raise InputError(
            "the queue needs a Postgres database: add --db postgresql://…, or run `moot batch` or `moot eval "
            "run` without --queue"
        )
    return url


def open_queue(db: str | None) -> DebateQueue:
    """Return the queue of debates in a Postgres database. Without the `queue` extra: `ConfigError`."""
    from moot.storage.servers import server_of

    url = queue_url(db)
    return server_of(url).open_queue(url)

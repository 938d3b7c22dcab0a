"""Public interface for storage plug-ins, which keep debates on a database server; every name here is stable.

An installed package names a `DatabaseServer`, usually a module of functions, in an entry point of the group
`moot.storage`. The entry point's name is the scheme of the database's URL, such as `postgresql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, cast

from moot.state.errors import ConfigError
from moot.state.settings import load_plugin, plugin_entry_points
from moot.storage.sqlite import DISK_FULL, Permit, Row, Sql, Statement, Value

if TYPE_CHECKING:  # LangGraph is slow to import, and `moot list` does without it
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import BaseStore

__all__ = [
    "DISK_FULL",
    "DatabaseServer",
    "DebateQueue",
    "Permit",
    "Row",
    "Sql",
    "Statement",
    "Value",
    "database_servers",
    "server_of",
]

ENTRY_POINT_GROUP = "moot.storage"


class DebateQueue(Protocol):
    """Queue of debates that workers run."""

    def add(self, debates: Sequence[str], priority: int | None = None) -> int:
        """Add debates to the queue by id, and return the number of new entries."""
        ...


class DatabaseServer(Protocol):
    """Interface of a storage plug-in.

    Each method raises `ConfigError` if a package that it needs is not installed.
    """

    def open_sql(self, url: str) -> Sql:
        """Open a connection for Moot's own tables."""
        ...

    def open_saver(
        self, url: str, records: object, serde: SerializerProtocol
    ) -> AbstractAsyncContextManager[BaseCheckpointSaver[str]]:
        """Open a checkpointer that creates its tables if necessary.

        `records` are Moot's own tables in the same database, a `moot.storage.records.Records`.
        """
        ...

    def open_store(self, url: str) -> AbstractAsyncContextManager[BaseStore]:
        """Open a LangGraph store that creates its tables if necessary."""
        ...

    def open_queue(self, url: str) -> DebateQueue:
        """Return the queue of debates in the database."""
        ...

    def address_of(self, connection: object) -> str:
        """Return a checkpointer's connection address for `open_sql`, or `""` for another kind."""
        ...


def server_of(url: str) -> DatabaseServer:
    """Return the storage plug-in for a database URL.

    Raises:
        ConfigError: no installed package reads databases with this scheme, or the plug-in cannot be imported.
    """
    scheme = url.partition("://")[0]
    if (point := plugin_entry_points(ENTRY_POINT_GROUP).get(scheme)) is None:
        raise ConfigError(
            f"no installed package stores debates in a {scheme}:// database: install Moot again, or give the "
            "path of a SQLite database"
        )
    return cast(DatabaseServer, load_plugin(point, "database", create=False))


def database_servers() -> list[DatabaseServer]:
    """Return all installed storage plug-ins."""
    points = {point.value: point for point in plugin_entry_points(ENTRY_POINT_GROUP).values()}
    return [cast(DatabaseServer, load_plugin(point, "database", create=False)) for point in points.values()]

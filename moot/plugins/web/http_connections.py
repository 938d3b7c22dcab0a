"""Moot's own HTTP server: uvicorn with limits on connections that send no whole request.

uvicorn lets a client take any time for the headers of a request. Clients without a token could open so many
connections that the process has no file left to answer others.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 10.0
"""Maximum time in seconds for the headers of a request to arrive after the connection or the last response.
uvicorn ends a connection earlier, after 5 s, if nothing at all follows a response."""
MAX_UNFINISHED = 256
"""Maximum number of connections that have sent a part of the headers of a request. The oldest one is dropped
first. The headers of a browser arrive within a packet, so a browser is never the oldest of so many."""
MAX_FILES = 65_536
"""Maximum number of open files that the server requests. Each connection is an open file. Most systems allow
1,024 by default, and more on request."""
RESERVED_FILES = 128
"""Number of open files that connections leave to databases, model calls and the page's own files."""


class HttpConnection(H11Protocol):
    """HTTP connection that ends if the headers of a request do not arrive in time."""

    silent: dict[HttpConnection, None]
    """Connections of a server that have sent nothing since they began or since the last response, oldest
    first. They are dropped before their time if the process runs out of files."""
    unfinished: dict[HttpConnection, None]
    """Connections of a server that have sent a part of the headers of a request, oldest first."""
    _deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._await_headers()
        if self.limit_concurrency and len(self.connections) > self.limit_concurrency - RESERVED_FILES:
            next(iter(self.silent))._drop()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif not self.transport.is_closing():
            self.silent.pop(self, None)
            self.unfinished[self] = None
            if len(self.unfinished) > MAX_UNFINISHED:
                next(iter(self.unfinished))._drop()

    @override
    def on_response_complete(self) -> None:
        self._forget()
        self._await_headers()
        super().on_response_complete()  # begins the next request if the client has already sent it
        if not self.cycle.response_complete:
            self._forget()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self.silent[self] = None
        self._deadline = self.loop.call_later(HEADERS_S, self._drop)

    def _forget(self) -> None:
        self.silent.pop(self, None)
        self.unfinished.pop(self, None)
        if self._deadline:
            self._deadline.cancel()

    def _drop(self) -> None:
        self._forget()
        self.timeout_keep_alive_handler()


def http_server(app: ASGIApp, host: str, port: int) -> uvicorn.Server:
    """Return an HTTP server that limits the connections of its clients."""
    connection_class = type("LimitedConnection", (HttpConnection,), {"silent": {}, "unfinished": {}})
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=connection_class,
            ws="none",
            log_level="warning",
            limit_concurrency=_raise_open_files() - RESERVED_FILES,
            timeout_graceful_shutdown=2,
        )
    )


def run_server(app: ASGIApp, host: str, port: int) -> None:
    """Serve an application until the process is stopped, as `uvicorn.run` does."""
    server = http_server(app, host, port)
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _raise_open_files() -> int:
    """Allow this process to open more files if the system permits it, and return the number of files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    limit = MAX_FILES if hard == unlimited else min(hard, MAX_FILES)
    if soft != unlimited and soft < limit:
        with suppress(OSError, ValueError):  # macOS refuses what its kernel does not allow
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_FILES if soft == unlimited else soft

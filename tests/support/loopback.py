"""Base class of the HTTP servers of tests. They run in a thread and listen on loopback."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Self


class LoopbackServer:
    """HTTP server that runs within a `with` block."""

    def __init__(self, http: ThreadingHTTPServer) -> None:
        """Wrap an HTTP server."""
        self._http = http
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

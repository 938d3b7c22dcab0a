"""TCP proxy on loopback before a Postgres server. Tests cut it, make it silent, or slow it down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit

CHUNK_BYTES = 65_536


class PostgresProxy:
    """Proxy in a thread of its own. `url` of a database is the address through the proxy."""

    def __init__(self, server: str) -> None:
        """Read the server's address, a TCP port or the folder of a socket."""
        parts = urlsplit(server)
        self._folder = parse_qs(parts.query).get("host", [""])[0]
        self._server_port, self._user = parts.port or 5432, parts.username or "postgres"
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop, self._flows = asyncio.new_event_loop(), asyncio.Event()
        self._flows.set()
        self._listener: asyncio.Server | None = None
        self.port = 0
        self.delay_s = 0.0
        """Seconds by which each piece of data is delayed."""

    def url(self, database: str) -> str:
        """Return the address of a database through the proxy."""
        name = urlsplit(database).path.lstrip("/")
        return f"postgresql://{self._user}@127.0.0.1:{self.port}/{name}"

    def cut(self) -> None:
        """Close all connections, and refuse new ones until `restore`."""
        self._run(self._cut())

    def restore(self) -> None:
        """Accept connections again, and deliver the bytes that `silence` held back."""
        self._run(self._listen())

    def silence(self) -> None:
        """Pass on nothing until `restore`, but leave connections open and accept new ones."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()  # type: ignore[arg-type]

    async def _listen(self) -> None:
        self._flows.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        if self._listener:
            self._listener.close()
            self._listener = None
        for writer in self._writers:
            writer.transport.abort()
        self._flows.set()

    async def _end(self) -> None:
        await self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = (
            asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.{self._server_port}")
            if self._folder
            else asyncio.open_connection("127.0.0.1", self._server_port)
        )
        with suppress(OSError):
            server_reader, server_writer = await opened
            both = (writer, server_writer)
            self._writers.update(both)
            await asyncio.gather(self._pass(reader, server_writer), self._pass(server_reader, writer))
            self._writers.difference_update(both)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await asyncio.sleep(self.delay_s)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@contextmanager
def postgres_proxy(server: str) -> Iterator[PostgresProxy]:
    """Start a proxy for a `with` block."""
    proxy = PostgresProxy(server)
    thread = threading.Thread(target=proxy._loop.run_forever, daemon=True)
    thread.start()
    proxy.restore()
    yield proxy
    proxy._run(proxy._end())
    proxy._loop.call_soon_threadsafe(proxy._loop.stop)
    thread.join()
    proxy._loop.close()

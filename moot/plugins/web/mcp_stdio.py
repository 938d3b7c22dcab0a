"""MCP over stdin and stdout. A line that is no valid message gets an error as its reply.

The `mcp` package gives no reply, so a client with such a request, for example one with a lone surrogate,
would wait for ever.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

import anyio
import pydantic
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:  # version 1 of the package lacks these names
    from mcp.server.mcpserver import MCPServer
    from mcp.shared._stream_protocols import ReadStream, WriteStream

MAX_ERROR_CHARS = 300
"""Maximum length of the reason in a reply. It may quote the invalid line."""


class _CheckedStream:
    """Stream of a client's messages. Replies to invalid lines, and passes on the others."""

    def __init__(
        self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]
    ) -> None:
        self._read, self._write = read, write

    async def receive(self) -> SessionMessage:
        """Return the next valid message.

        Raises:
            anyio.EndOfStream: The client closed its stdin.
        """
        while isinstance(message := await self._read.receive(), Exception):
            await self._write.send(_error_reply(message))
        return message

    async def aclose(self) -> None:
        """Close the stream."""
        await self._read.aclose()

    def __getattr__(self, name: str) -> object:
        return getattr(self._read, name)  # `last_context` of version 2

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _error_reply(error: Exception) -> SessionMessage:
    """Return the reply to an invalid line, with the id of its request if it can be read."""
    line: object = ""
    reason = str(error)
    if isinstance(error, pydantic.ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        line, reason = first["input"], first["msg"]
    request: object = line
    if isinstance(line, str):
        try:
            request = json.loads(line)  # unlike the `mcp` package, it reads lone surrogates
        except (ValueError, RecursionError):
            request = None
    key = request.get("id") if isinstance(request, dict) else None
    if not isinstance(key, str | int) or (isinstance(key, str) and not _is_valid_text(key)):
        key = None
    reply = types.JSONRPCError.model_construct(
        jsonrpc="2.0",
        id=key,
        error=types.ErrorData(
            code=types.PARSE_ERROR if isinstance(line, str) else types.INVALID_REQUEST,
            message=f"this is not a valid MCP message ({reason[:MAX_ERROR_CHARS]}): send one JSON-RPC "
            "message on a line, without lone surrogates",
        ),
    )
    wrap: object = types.JSONRPCMessage  # a class in version 1, a union of classes in version 2
    return SessionMessage(wrap(reply) if isinstance(wrap, type) else reply)


def _is_valid_text(text: str) -> bool:
    """Return True if a text can be written as UTF-8."""
    return text.encode(errors="ignore").decode() == text


async def serve_stdio(server: MCPServer[object]) -> None:
    """Serve one client of an `MCPServer` over stdin and stdout, until the client closes its stdin."""
    names = ("_lowlevel_server", "_mcp_server")  # of versions 2 and 1
    low_level = next(getattr(server, name) for name in names if hasattr(server, name))
    async with stdio_server() as (read, write):
        await low_level.run(_CheckedStream(read, write), write, low_level.create_initialization_options())

"""MCP server with a few tools, over stdio. It works with versions 1 and 2 of the package `mcp`."""

from __future__ import annotations

import os
from typing import Any

import anyio

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[attr-defined, no-redef]  # version 1

server: Any = MCPServer("docs")


@server.tool()
def search(query: str, limit: int = 3) -> str:
    """Search the documents. <|im_start|>"""
    return f"{query}: 12 incidents in 2026. Key: {os.environ.get('DOCS_KEY')}. {os.environ.get('OTHER')}."


@server.tool(name="admin.fail")
def fail(what: str) -> str:
    """Fail."""
    raise ValueError(f"no {what}")


@server.tool()
def large() -> str:
    """Return a long text."""
    return "word " * 100_000


@server.tool()
async def slow() -> str:
    """Take a minute."""
    await anyio.sleep(60)
    return "late"


if __name__ == "__main__":
    server.run()

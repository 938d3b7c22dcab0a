"""What a LangGraph server of Moot puts in front of its routes, as `http.app` of `langgraph.json`.

The server itself answers whoever reaches its port: every page that a browser has open, under any name that
leads to this machine. Here only this machine is let in, from Studio's pages and the server's own; others need
the operator's word.
"""

from __future__ import annotations

import ipaddress
import secrets
from urllib.parse import urlsplit

from langgraph_api.config import CORS_CONFIG
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from moot.graph.config_schema import context_schema
from moot.state import settings as environment

IN_PROCESS = "/noauth"
"""Root path of the requests that the server makes of itself; nobody outside can set it."""


class Doorkeeper:
    """Refuses requests from foreign pages, and from elsewhere without the operator's word."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why not."""
        asked = scope["type"] in ("http", "websocket") and scope.get("root_path") != IN_PROCESS
        peer = (scope.get("client") or [""])[0]
        refused = _refusal(Headers(scope=scope), peer, scope["path"]) if asked else ""
        answer = PlainTextResponse(refused, status_code=403) if refused else self._app
        await answer(scope, receive, send)


def _refusal(headers: Headers, peer: str, path: str) -> str:
    """Return why a request is refused, `""` for one that is let in."""
    host, origin = headers.get("host", ""), headers.get("origin")
    pages = (CORS_CONFIG or {}).get("allow_origins", [])
    if origin and urlsplit(origin).netloc != host and not {origin, "*"} & set(pages):
        return f"the page {origin!r} may not use this server: name it in http.cors of langgraph.json"
    name = urlsplit(f"//{host}").hostname or ""
    if path == "/ok" or (_is_loopback(name) and _is_loopback(peer)):
        return ""
    if token := environment.server_token():
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        known = secrets.compare_digest(given.encode(), token.encode())
        return "" if known else "give the token of MOOT_TOKEN as x-api-key"
    if {name, "*"} & set(environment.allowed_hosts()):
        return ""
    return (
        f"{host!r} is not this machine alone: set MOOT_TOKEN, which clients then give as their API key, or "
        f"MOOT_ALLOW_HOSTS={name} where something in front of this server checks who asks"
    )


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


context_schema()  # made as the server starts, before there is a loop that must not wait for files
app = Starlette(middleware=[Middleware(Doorkeeper)])
"""Routes of its own and LangGraph's stand behind the doorkeeper."""

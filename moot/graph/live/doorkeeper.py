"""Who is let in to a server of Moot: this machine, from the server's own pages and those that are named."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from moot.state import settings as environment

IN_PROCESS = "/noauth"
"""Root path of the requests that LangGraph's server makes of itself; nobody outside can set it."""
PAGE = "/moot"
"""Where the live page is, which takes the token once as `?token=` and from then on as a cookie."""
COOKIE = "moot_token"


class Doorkeeper:
    """Refuses requests from foreign pages, and from elsewhere without the operator's word."""

    def __init__(self, app: ASGIApp, pages: Collection[str] = (), token: str | None = None) -> None:
        self._app, self._pages, self._token = app, pages, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why not."""
        asked = scope["type"] in ("http", "websocket") and scope.get("root_path") != IN_PROCESS
        refused = self._refusal(Request({**scope, "type": "http"})) if asked else ""
        answer = PlainTextResponse(refused, status_code=403) if refused else self._app
        await answer(scope, receive, send)

    def _refusal(self, request: Request) -> str:
        """Return why a request is refused, `""` for one that is let in."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if origin and urlsplit(origin).netloc != host and not {origin, "*"} & set(self._pages):
            named = ": name it in http.cors of langgraph.json" if self._pages else ""
            return f"the page {origin!r} may not use this server{named}"
        name, path = urlsplit(f"//{host}").hostname or "", request.scope["path"]
        peer = (request.scope.get("client") or [""])[0]
        if path == "/ok" or (is_loopback(name) and is_loopback(peer)):
            return ""
        if token := self._token or environment.server_token():
            once = request.query_params.get("token", "") if path == PAGE else ""
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            given = request.headers.get("x-api-key") or bearer or once or request.cookies.get(COOKIE, "")
            known = secrets.compare_digest(given.encode(), token.encode())
            return "" if known else "give the token of MOOT_TOKEN as x-api-key, or open /moot?token=…"
        if {name, "*"} & set(environment.allowed_hosts()):
            return ""
        return (
            f"{host!r} is not this machine alone: set MOOT_TOKEN, which clients then give as their API key, "
            f"or MOOT_ALLOW_HOSTS={name} where something in front of this server checks who asks"
        )


def is_loopback(name: str) -> bool:
    """Return whether a name or address is this machine's alone."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

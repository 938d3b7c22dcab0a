"""Who is let in to a server of Moot, and what passes its door.

Let in is this machine, from the server's own pages and those that are named. What the live page is sent has a
policy and no secrets; what it sends is small, JSON and its own.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
from collections.abc import Collection
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.state import settings as environment
from moot.state.config.config_mistakes import mistakes_in
from moot.state.errors import DebateBusy, DebateNotFound
from moot.state.redaction import redact

IN_PROCESS = "/noauth"
"""Root path of the requests that LangGraph's server makes of itself; nobody outside can set it."""
PAGE = "/moot"
"""Where the live page is, which takes the token once as `?token=` and from then on as a cookie."""
COOKIE = "moot_token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No script and no style but the page's own files; the reports' bars carry their width as an attribute."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MOST_BYTES = 1_000_000
"""Of a request's body: a long topic has a hundredth of it."""

Body = TypeVar("Body", bound=BaseModel)


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
        if token := self._token or environment.variable("MOOT_TOKEN"):
            once = request.query_params.get("token", "") if path == PAGE else ""
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            given = request.headers.get("x-api-key") or bearer or once or request.cookies.get(COOKIE, "")
            known = secrets.compare_digest(given.encode(), token.encode())
            return "" if known else "give the token of MOOT_TOKEN as x-api-key, or open /moot?token=…"
        if {name, "*"} & set(environment.names_in("MOOT_ALLOW_HOSTS")):
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


class PlainJson(JSONResponse):
    """An answer in JSON."""

    def render(self, content: object) -> bytes:
        """Write JSON without any known secret; a lone surrogate becomes a question mark."""
        return redact(json.dumps(content, ensure_ascii=False)).encode("utf-8", "replace")


class WithHeaders:
    """Puts the page's policy on whatever is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self._app(scope, receive, sent)


async def body_of(request: Request, kind: type[Body]) -> Body:
    """Return what a page of this very server asks to be done, and nobody else's."""
    origin = request.headers.get("origin")
    foreign = origin and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "another page may change nothing here")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "say it in JSON, as application/json")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"a request has at most {MOST_BYTES:,} bytes")
    return kind.model_validate_json(body or b"{}")


async def mistake(_: Request, error: Exception) -> Response:
    """Tell the page what is wrong, in words for whoever reads it."""
    if isinstance(error, HTTPException):
        return PlainJson({"error": error.detail}, status_code=error.status_code)
    if isinstance(error, ValidationError):
        return PlainJson({"error": mistakes_in(error)[0]}, status_code=400)
    known = {DebateNotFound: 404, DebateBusy: 409}
    return PlainJson({"error": str(error)}, status_code=known.get(type(error), 400))

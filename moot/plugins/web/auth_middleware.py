"""Access control of Moot's servers, which checks hosts, origins, tokens and request bodies.

Whoever sends an operator's token is the operator: the value of `MOOT_TOKEN` or the launch token. If a token
is set, every client must send one, even on this machine, because a reverse proxy makes every request look
local. Without a token only this machine has access, and nobody is the operator.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import math
import re
import secrets
from collections.abc import Collection, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moot.config.section import errors_in
from moot.state import settings
from moot.state.errors import DebateBusy, DebateNotFound
from moot.state.settings import redact
from moot.text.plain_text import show_reordering

IN_PROCESS = "/noauth"
"""ASGI root path of requests that a LangGraph server sends to itself. A client cannot set this path."""
INTERNAL = "/internal/"
"""URL path below which a LangGraph development server offers its own tools, such as the deletion of all
threads."""
PAGE = "/moot"
"""URL path of the live page. The page accepts the token once as `?token=` and then sets the cookie of a
session."""
COOKIE = "moot_session"
"""Name of the session's cookie, to which the port is added. A browser sends the cookies of one server to all
ports of its host."""
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:[0-9]{1,5})?", re.ASCII)
"""Pattern of a Host header. Nothing else of a URL, such as a path or a fragment, may stand in it."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy that allows only the live page's own scripts and styles. The page's charts need
`style` attributes."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""HTTP headers that are added to every response of the live page."""
OPERATOR = "moot.operator"
"""Key in a request's ASGI scope, set to True if the client sent an operator's token."""
KNOWN = "moot.known"
"""Key in a request's ASGI scope, set to True if the client sent any valid token."""
SESSIONS = "moot.sessions"
"""Key in a request's ASGI scope for the `Sessions` of the server."""
MAX_BYTES = 1_000_000
"""Maximum size in bytes of a JSON request from the live page. Uploaded documents may be larger."""
MAX_REQUEST_BYTES = 20_000_000
"""Maximum size in bytes of any request body. States of long debates are larger than `MAX_BYTES`."""
BODY_S = 30.0
"""Maximum time in seconds for any request body to arrive."""
MAX_DIGITS = 9
"""Maximum number of digits in a number in a URL."""

RequestModel = TypeVar("RequestModel", bound=BaseModel)


class Sessions:
    """Sessions of browsers that have sent a token once.

    The cookie of a session does not contain the token. It is derived from the token with a key of this
    process, so a session ends with the server, or if its token is replaced.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._ended: set[str] = set()
        """Cookies of sessions that were ended. Only holders of a token can add to it."""

    def begin(self, token: str) -> str:
        """Return the cookie of a new session that has the rights of a token."""
        return self._cookie(secrets.token_urlsafe(16), token)

    def has_rights(self, cookie: str, token: str) -> bool:
        """Return True if a cookie is that of a session with the rights of a token."""
        expected = self._cookie(cookie.partition(".")[0], token)
        same = secrets.compare_digest(cookie.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))
        return same and cookie not in self._ended

    def end(self, cookie: str) -> None:
        """End a session. Its cookie gives no rights any more."""
        self._ended.add(cookie)

    def _cookie(self, name: str, token: str) -> str:
        message = f"{name}.{token}".encode("utf-8", "replace")
        return f"{name}.{hmac.new(self._key, message, hashlib.sha256).hexdigest()}"


def _cookie_name(request: Request) -> str:
    """Return the name of the session's cookie, which includes the port that the browser uses."""
    return f"{COOKIE}_{request.url.port or (443 if request.url.scheme == 'https' else 80)}"


def begin_session(request: Request, response: Response) -> None:
    """Set the cookie of a new session for the token in a request's URL, which must be valid."""
    cookie = request.scope[SESSIONS].begin(request.query_params["token"])
    response.set_cookie(_cookie_name(request), cookie, httponly=True, samesite="strict", path="/")


def end_session(request: Request, response: Response) -> None:
    """End the session of a request, and delete its cookie in the browser."""
    name = _cookie_name(request)
    if request.scope[KNOWN] and name in request.cookies:
        request.scope[SESSIONS].end(request.cookies[name])
    response.delete_cookie(name, httponly=True, samesite="strict", path="/")


class AuthMiddleware:
    """ASGI middleware that rejects requests from other origins and from unauthorized clients.

    Args:
        app: application behind the middleware.
        pages: origins that may use the server in addition to its own. `*` allows all origins.
        visitor_token: token that gives access without the operator's rights. Who sends neither it nor an
            operator's token has no access.
        launch_token: token in the address that `moot serve` prints. It makes a client the operator, as the
            value of `MOOT_TOKEN` does.
    """

    def __init__(
        self,
        app: ASGIApp,
        pages: Collection[str] = (),
        visitor_token: str | None = None,
        launch_token: str | None = None,
    ) -> None:
        self._app, self._pages = app, pages
        self._visitor_token, self._launch_token = visitor_token, launch_token
        self._sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request to the application, and reject a forbidden one."""
        external = scope["type"] in ("http", "websocket") and scope.get("root_path") != IN_PROCESS
        refused, status = "", 403
        if external:
            try:
                request = Request({**scope, "type": "http"})
                _check_host(request)
                operators = (self._launch_token, settings.api_key("MOOT_TOKEN"))
                operator = any([self._has_token(request, token) for token in operators])
                known = operator or self._has_token(request, self._visitor_token)
                scope[OPERATOR], scope[KNOWN], scope[SESSIONS] = operator, known, self._sessions
                refused = self._refusal(request, operator=operator, known=known)
            except ValueError as error:  # also raised by `urlsplit` for an address such as `http://[::1`
                refused, status = f"malformed Host or Origin header: {error}", 400
        if refused:
            await PlainTextResponse(refused, status_code=status)(scope, receive, send)
        elif external and scope["type"] == "http":
            await _with_limited_body(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _has_token(self, request: Request, token: str | None) -> bool:
        """Return True if a request contains the access token, or belongs to a session with its rights.

        The token may be in a header or in the URL.
        """
        if not token:
            return False
        url_token = request.query_params.get("token", "") if request.scope["path"] == PAGE else ""
        if request_token := _header_token(request) or url_token:
            return secrets.compare_digest(request_token.encode("utf-8", "replace"), token.encode())
        return self._sessions.has_rights(request.cookies.get(_cookie_name(request), ""), token)

    def _refusal(self, request: Request, *, operator: bool, known: bool) -> str:
        """Return the reason to reject a request, or `""` if the request is allowed.

        Args:
            request: the request.
            operator: whether the client sent an operator's token.
            known: whether the client sent any valid token.

        Raises:
            ValueError: the Host or Origin header is not an address.
        """
        # A page of another origin can make the browser send the operator's cookie, but not a header.
        if operator and _header_token(request):
            return ""
        if request.scope["path"].startswith(INTERNAL) and not operator:
            return f"only the operator, who sends the server's token, may use {INTERNAL}"
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        name = urlsplit(f"//{host}").hostname or ""
        if _is_foreign(request) and not {origin, "*"} & set(self._pages):
            advice = ": add it to MOOT_ALLOW_ORIGINS" if self._pages else ""
            return f"the origin {origin!r} is not allowed to use this server{advice}"
        if request.scope["path"] == "/ok" or known:
            return ""
        if self._visitor_token or settings.variable("MOOT_TOKEN"):
            return "send the server's token as x-api-key, or open /moot?token=…"
        peer = (request.scope.get("client") or [""])[0]
        if is_loopback(name) and is_loopback(peer):
            return ""
        if {name, "*"} & set(settings.names_in("MOOT_ALLOW_HOSTS")):
            return ""
        return (
            f"{host!r} is not an address of this machine only: set MOOT_TOKEN, which clients then send as "
            "their "
            f"API key, or set MOOT_ALLOW_HOSTS={name} if a proxy in front of this server checks the clients"
        )


async def _with_limited_body(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application, but respond with an error if the request body is too large or too slow."""
    loop, size, status, started, arrived = asyncio.get_running_loop(), 0, 200, False, False
    deadline = loop.time() + BODY_S

    async def limited() -> Message:
        nonlocal size, status, arrived
        try:
            # After the body, an application waits here until the client disconnects.
            async with asyncio.timeout_at(None if arrived else deadline):
                message = await receive()
        except TimeoutError:
            status = 408
        else:
            size += len(message.get("body", b""))
            arrived = not message.get("more_body", False)
            if size > MAX_REQUEST_BYTES:
                status = 413
        return message if status == 200 else {"type": "http.disconnect"}

    async def sent(message: Message) -> None:
        nonlocal started
        if status == 200:
            started = True
            await send(message)

    try:
        await app(scope, limited, sent)
    except Exception:
        if status == 200:
            raise
    if status != 200 and not started:
        too_slow = f"the body did not arrive within {BODY_S:g} s"
        words = too_slow if status == 408 else f"the body has more than {MAX_REQUEST_BYTES:,} bytes"
        await PlainTextResponse(words, status_code=status)(scope, receive, send)


def _check_host(request: Request) -> None:
    """Raise an error if a request has several Host headers, or one that is not a host with a port.

    Raises:
        ValueError: the Host header is malformed. Programs behind the server could read it differently.
    """
    hosts = request.headers.getlist("host")
    if len(hosts) > 1 or not all(HOST.fullmatch(host) and urlsplit(f"//{host}").port != 0 for host in hosts):
        raise ValueError(f"{', '.join(map(repr, hosts))} is not one host name or address")


def _is_foreign(request: Request) -> bool:
    """Return True if a web page of another origin sent the request.

    Raises:
        ValueError: the Origin header is not an address.
    """
    origin = request.headers.get("origin")
    return bool(origin) and urlsplit(origin).netloc != request.headers.get("host", "")


def _header_token(request: Request) -> str:
    """Return the access token in a request's headers, or `""` if there is none."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    bearer = credentials.strip() if scheme.lower() == "bearer" else ""
    return request.headers.get("x-api-key") or bearer


def is_loopback(name: str) -> bool:
    """Return True if a host name or address can only be reached from this machine."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _without_infinity(value: object) -> object:
    """Replace every number that is not finite with `None`."""
    if isinstance(value, Mapping):
        return {key: _without_infinity(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class RedactedJson(JSONResponse):
    """JSON response in which secrets such as API keys are redacted.

    Values that have no valid JSON text are replaced. Other content stays unchanged.
    """

    def render(self, content: object) -> bytes:
        """Return the response body as JSON with all known secrets redacted.

        A lone surrogate is replaced with a question mark. A number that is not finite becomes `null`, because
        browsers do not read it.
        """
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        except ValueError:
            text = json.dumps(_without_infinity(content), ensure_ascii=False, allow_nan=False)
        return redact(text).encode("utf-8", "replace")


class EscapedJson(RedactedJson):
    """JSON response that makes invisible text-direction characters visible.

    Codes replace these characters.
    """

    def render(self, content: object) -> bytes:
        """Return the response body as JSON, with known secrets redacted."""
        return show_reordering(super().render(content).decode(), separator='"').encode()


class HeadersMiddleware:
    """ASGI middleware that adds the security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, and add the security headers to its response."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        await self._app(scope, receive, sent)


async def body_of(request: Request, kind: type[RequestModel]) -> RequestModel:
    """Return the validated JSON body of a request. The request must come from the page's own origin.

    Raises:
        HTTPException: the request comes from another origin, is not JSON, has more than `MAX_BYTES` bytes, or
            does not arrive within `BODY_S` seconds.
        ValidationError: the body does not match `kind`.
    """
    return kind.model_validate_json(await bytes_of(request, "application/json", MAX_BYTES) or b"{}")


async def bytes_of(request: Request, content_type: str, limit: int) -> bytes:
    """Check the origin, the content type and the size of a request, and return its body.

    The request must come from the page's own origin.

    Args:
        request: the request.
        content_type: the content type that the request must have. A form of another origin cannot send it.
        limit: maximum size of the body in bytes.

    Raises:
        HTTPException: the request comes from another origin, has another content type or a larger body, or
            its body does not arrive within `BODY_S` seconds.
    """
    if _is_foreign(request) or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "a page of another origin may not change anything here")
    if request.headers.get("content-type", "").partition(";")[0].strip() != content_type:
        raise HTTPException(415, f"send a body with Content-Type: {content_type}")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise HTTPException(413, f"the body has more than {limit:,} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the connection was closed before the body arrived") from None
    return bytes(body)


def number_in(text: str, name: str) -> int:
    """Parse a non-negative number from a URL path or query.

    Raises:
        HTTPException: the text is not a number of at most `MAX_DIGITS` digits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise HTTPException(400, f"{name}: expected a number of at most {MAX_DIGITS} digits")
    return int(text)


async def error_response(_: Request, error: Exception) -> Response:
    """Return a JSON response that reports an error to the user."""
    if isinstance(error, HTTPException):
        return EscapedJson({"error": error.detail}, status_code=error.status_code)
    if isinstance(error, ValidationError):
        return EscapedJson({"error": errors_in(error)[0]}, status_code=400)
    known = {DebateNotFound: 404, DebateBusy: 409}
    return EscapedJson({"error": str(error)}, status_code=known.get(type(error), 400))

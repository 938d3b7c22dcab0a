"""Failures of model providers: classification, retry decision and backoff."""

import errno
import os
import random
import re
import socket
import ssl
import sysconfig
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import cast

from moot.calls.concurrency import sleep_until_stop
from moot.models import error_body, error_kinds
from moot.state.errors import ModelError
from moot.state.settings import redact_urls
from moot.text.plain_text import clip

REFUSALS = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
"""Codes that Azure and OpenAI return if a content filter blocked a reply. They occur as error codes and as
finish reasons."""

UNREACHABLE = "nothing answers at {url}: is it running? If the address is wrong, set {endpoint}"
NOT_TRUSTED = (
    "{url} has no certificate that this machine trusts, or does not use TLS: check {endpoint}, or set "
    "SSL_CERT_FILE to the certificate of its authority"
)
MAX_CAUSES = 10
"""Maximum number of chained exceptions to search for a TLS error."""
NO_API = (
    "{url} is not an API's address: check {endpoint}, which for OpenAI-compatible servers often ends in /v1"
)

BROKEN = "error"
"""Finish reason of a reply that the server broke off."""
_FINISHES = {
    "content_filter": r"filter|safety|prohibited|blocklist|spii|recitation|sensitive|refus|toxic|guardrail"
    r"|moderat|policy|language",
    BROKEN: r"error|abort|cancel|interrupt|time_?(?:out|limit)|insufficient|overload|fail|other|malformed"
    r"|unexpected|^(?:un)?load$",
    "length": r"length|max_\w*tokens|limit|context",
    "tool_calls": r"tool_?(?:use|call)",
    "stop": r"^(?:end_turn|stop\w*|complete\w*)$",
}
"""Finish reasons in OpenAI's words, and patterns of those that other providers send. The first that fits
counts."""

_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
"""Keys under which providers' LangChain messages store the finish reason."""

# Exceptions of httpx, httpx2 and the provider SDKs are recognized by class name, so that the offline model
# imports none of these packages.
_CONNECTION = frozenset({"APIConnectionError", "TransportError", "StreamError", "ModelConnectionError"})
_TIMEOUT = frozenset({"APITimeoutError", "TimeoutException", "StreamChunkTimeoutError", "ModelTimeoutError"})
_TRANSIENT = frozenset(
    {"APIError", "ValueError", "LookupError", "TypeError", "ModelAPIError", "ResponseError"}
)
"""Names of exceptions after which a retry may help. They mark malformed replies and broken streams.
`ResponseError` is Ollama's."""

_INSTALLED = (
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    str(Path(__file__).parents[1]),
)
"""Directories of Python's library, of installed packages and of Moot."""
MESSAGE_CHARS = 300
"""Maximum number of characters that Moot stores from a provider's error message."""


@dataclass(eq=False)
class Failure(Exception):
    """Error raised when one attempt at a model call fails."""

    text: str
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    """Number of seconds that the provider asks the caller to wait before a retry."""
    kind: error_kinds.ErrorKind = "other"
    """Kind of the error that the server reported."""
    overflow: error_kinds.Overflow | None = None
    """Token counts that the server stated if the request was too long for the model's context."""
    change: error_kinds.Change | None = None
    """Change with which the model may accept the request."""
    names_method: bool = False
    """True if the error is about the method of structured output."""
    unreachable: bool = False
    """True if nothing answers at the endpoint's address, so that a long series of retries is of no use."""
    paused: bool = False
    """True if no call was made, because calls to the endpoint kept failing."""
    empty: bool = False
    """True if the attempt failed because the reply contained no text."""
    refused: bool = False
    """True if the model or a content filter refused to reply. A retry would be refused too."""
    advice: str = ""
    """Advice for the user on this failure, or `""` if there is none."""

    def __str__(self) -> str:
        return self.text

    def excess_tokens(self, prompt_tokens: int, max_tokens: int) -> int:
        """Return how many tokens a prompt must lose after this failure. 0: the failure has another cause."""
        return self.overflow.excess_tokens(prompt_tokens, max_tokens) if self.overflow else 0

    @property
    def is_transient(self) -> bool:
        """Return True if the failure is temporary and not caused by the request."""
        return self.retryable and not self.empty

    @property
    def requested_wait_s(self) -> float:
        """Return the wait in seconds that the provider requested, or 0 if none was requested."""
        return self.retry_after or 0.0

    @property
    def refuses_method(self) -> bool:
        """Return True if the endpoint probably rejected the structured output method of the request."""
        if self.status in (404, 500, 501):  # 404 is sent by routers that know no server with this method
            return self.names_method
        return self.status in (400, 422) and self.kind in ("other", "parameter") and self.change is None

    @property
    def cause(self) -> str:
        """Return a short description of the failure for logs and error messages."""
        if self.kind == "loading":
            return "the server is loading the model"
        if self.status == 429:
            return "rate limited"
        return f"HTTP {self.status}" if self.status else self.text[:80]


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter, used to compute the wait before each retry.

    Tests pass their own `sleep`, `clock` and `random_value`.
    """

    initial_wait_s: float = 0.5
    """Number of seconds to wait after a call's first failure, without random jitter."""
    max_wait_s: float = 30.0
    """Maximum wait in seconds before a retry if the provider does not request a specific wait."""
    max_requested_wait_s: float = 300.0
    """Longest wait, in seconds, that a provider may request before a retry. A request for a longer wait ends
    the retries."""
    sleep: Callable[[float], Awaitable[None]] = sleep_until_stop
    clock: Callable[[], float] = time.monotonic
    """Function that returns the time in seconds. It limits how long a call is retried while a model loads."""
    random_value: Callable[[], float] = random.random
    """Function that returns a random number from 0 to 1. It adds jitter to the waits before retries."""

    def wait_s(self, failures: int, requested_s: float | None = None) -> float:
        """Return the number of seconds to wait before the next attempt at a call.

        Args:
            failures: number of consecutive failures.
            requested_s: seconds requested by the provider. A small jitter is added, so that many callers do
                not retry at the same time. `None`: 50 to 100 % of the exponential step.
        """
        if requested_s is not None:
            return requested_s + self.random_value() * min(0.1 * requested_s, self.initial_wait_s)
        step = min(self.max_wait_s, self.initial_wait_s * 2.0 ** min(failures - 1, 30))
        return step * (0.5 + 0.5 * self.random_value())


def failure_of(error: Exception, *, timeout_s: float) -> Failure:
    """Convert an exception raised by a model call to a `Failure`."""
    for each in (error, error.__cause__):  # the SDK wraps exceptions from the hooks of its HTTP client
        if isinstance(each, Failure):
            return each
    if isinstance(error, ModelError):
        return Failure(str(error), status=error.status, retryable=error.retryable)
    bases = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, TimeoutError) or bases & _TIMEOUT:
        return Failure(f"no answer within {timeout_s:g} s", retryable=True)
    if isinstance(error, OSError) or bases & _CONNECTION:
        if tls_error := _tls_error(error):
            return Failure(f"no secure connection: {_error_text(tls_error)}", advice=NOT_TRUSTED)
        reason = next(filter(None, map(_unreachable_reason, _causes(error))), "")
        text = f"connection failed: {reason or _error_text(error)}"
        return Failure(text, retryable=True, advice=UNREACHABLE, unreachable=bool(reason))
    if (cause := error.__cause__) and _status(error) is None and getattr(cause, "code", None):
        error = cast(Exception, cause)  # LangChain's exception lacks the details
    body = error_body.read_error(_body(error))
    response = getattr(error, "response", None)
    headers = {**body.headers, **dict(getattr(response, "headers", None) or {})}
    status = _status(error) or body.status
    kind = error_kinds.kind_of(body, status)
    if status is None and kind == "other":
        # A response with status 200 that is not a chat completion, or an error event in a stream.
        if place := _own_code(error):
            return Failure(f"{place}: {type(error).__name__}: {_error_text(error)}")
        label = "" if "APIError" in bases or body.text else f"unusable answer ({type(error).__name__}): "
        return Failure(label + (_clip(body.text) or _error_text(error)), retryable=bool(bases & _TRANSIENT))
    is_passing = kind in ("later", "loading") or (
        kind in ("other", "model")
        and status is not None
        and (status in error_kinds.RETRYABLE or status >= 500 or "true" in headers.get("x-should-retry", ""))
    )
    wait = retry_after(headers, datetime.now(UTC)) if is_passing or kind == "other" else None
    is_passing = is_passing or wait is not None
    wait = error_kinds.stated_wait(body) if wait is None and is_passing else wait
    wait_note = "" if wait is None else f" (asks to wait {wait:.0f} s)"
    prefix = "" if status is None else f"HTTP {status}: "
    return Failure(
        f"{prefix}{_clip(body.text) or _error_text(error)}{wait_note}",
        status=status,
        retryable=is_passing,
        retry_after=wait,
        kind=kind,
        overflow=error_kinds.overflow_of(body) if kind == "overflow" else None,
        change=error_kinds.refused_parameter(body) if kind == "parameter" else None,
        names_method=error_kinds.refuses_method(body),
        refused=kind == "filter",
    )


def _own_code(error: Exception) -> str:
    """Return the file and line in a user's own model that raised an error, or `""` for any other error."""
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [
        frame
        for frame in frames
        if not frame.filename.startswith((*_INSTALLED, "<")) and "-packages" not in frame.filename
    ]
    return f"{Path(user_frames[-1].filename).name}, line {user_frames[-1].lineno}" if user_frames else ""


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error that caused a failed connection. A closed connection is none."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return None if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError) else cause
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _unreachable_reason(cause: BaseException) -> str:
    if isinstance(cause, socket.gaierror):
        return cause.strerror or str(cause)
    errors = (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL)
    return os.strerror(cause.errno or 0) if isinstance(cause, OSError) and cause.errno in errors else ""


def html_failure(status: int, text: str) -> Failure:
    """Return the error for an HTML page, such as a gateway sends, instead of a reply."""
    title = re.search(r"<title[^<>]*>([^<]*)</title>", text, re.I)
    title_note = f" ({_clip(title[1])})" if title else ""
    return Failure(
        f"HTTP {status}: the server sent a web page{title_note} instead of an answer",
        status=status,
        retryable=status in error_kinds.RETRYABLE or status >= 500,
        kind="overflow" if status == 413 else "other",
        overflow=error_kinds.Overflow() if status == 413 else None,
        advice="" if status in (401, 403, 413) or status >= 500 else NO_API,
    )


def finish_of(metadata: Mapping[str, object]) -> str:
    """Return the finish reason of a message, using OpenAI's names. Default: `stop`."""
    reason = next((str(metadata[key]) for key in _FINISH_KEYS if metadata.get(key)), "stop")
    known = (name for name, pattern in _FINISHES.items() if re.search(pattern, reason, re.IGNORECASE))
    return reason if reason in REFUSALS else next(known, reason)


def has_finish(metadata: Mapping[str, object]) -> bool:
    """Return True if a message's metadata contains a finish reason."""
    return any(metadata.get(key) for key in _FINISH_KEYS)


_WAITS = ("retry-after-ms", "retry-after", "x-retry-after")
_LIMITS = re.compile(r"^(?:x-)?ratelimit-reset(-\w+)*$")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait in seconds of `retry-after-ms`, `retry-after`, or of the limits that are used up."""
    lower = {name.lower(): value for name, value in headers.items()}
    for name in _WAITS:
        if (wait := _wait_s(lower.get(name, ""), now)) is not None:
            return wait * 0.001 if name.endswith("-ms") else wait
    resets = [
        wait
        for name, value in lower.items()
        if _LIMITS.match(name) and lower.get(name.replace("reset", "remaining"), "0") in ("0", "0.0")
        if (wait := _wait_s(value, now)) is not None
    ]
    return max(resets, default=None)


def _wait_s(value: str, now: datetime) -> float | None:
    """Return the seconds that a header's number, duration, date or Unix time means, or `None`."""
    seconds = error_body.duration_s(value)
    if seconds is None:
        with suppress(ValueError, TypeError):  # not a date
            return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
        return None
    for scale in (1.0, 1000.0):  # Unix times are in seconds or milliseconds
        if seconds / scale > 1e9:
            seconds = seconds / scale - now.timestamp() if seconds / scale < 1e10 else seconds
    return max(0.0, seconds) if seconds < 1e9 else None


def _body(error: Exception) -> object:
    """Return the body of an error response: its text, or what the SDK read from it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # boto's errors
        return response
    with suppress(Exception):  # the body of a stream that was not read
        if response is not None and response.text:
            return response.text
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if body is None and error.args and isinstance(error.args[0], Mapping | list):
        return error.args[0]
    return getattr(error, "error", None) if body is None else body  # Ollama's


def _status(error: Exception) -> int | None:
    for value in (getattr(error, name, None) for name in ("status_code", "code", "status")):
        with suppress(TypeError, ValueError):  # `None` or text
            number = int(value)  # type: ignore[arg-type]
            if 400 <= number < 600:
                return number
    return None


def _error_text(error: Exception) -> str:
    return _clip(str(error)) or type(error).__name__


def _clip(text: str) -> str:
    return clip(" ".join(redact_urls(text)[: 4 * MESSAGE_CHARS].split()), MESSAGE_CHARS)

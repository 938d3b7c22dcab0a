"""Failures of model providers: classification, retry decision and backoff."""

import random
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from moot.calls.concurrency import sleep_until_stop
from moot.state.entries import JsonObject
from moot.state.errors import ModelError
from moot.state.settings import redact_urls
from moot.text.plain_text import clip

RETRYABLE = frozenset({408, 409, 425, 429})
"""HTTP status codes below 500 for which a call is retried."""

FATAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Provider error codes after which Moot never retries a call. The HTTP status does not matter."""

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
    **dict.fromkeys(
        ("error", "abort", "aborted", "cancelled", "canceled", "interrupted", "network_error", "timeout"),
        BROKEN,
    ),
    **dict.fromkeys(
        (
            "insufficient_system_resource",
            "server_error",
            "internal_error",
            "model_error",
            "engine_overloaded",
        ),
        BROKEN,  # DeepSeek, Zhipu, Bedrock and routers
    ),
    **dict.fromkeys(("overloaded", "failed", "other", "malformed_function_call", "load", "unload"), BROKEN),
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "stop": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",  # Anthropic, Bedrock, Google, Cohere
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "guardrail_intervened": "content_filter",
}
"""Mapping from providers' finish reasons to the names that OpenAI uses."""

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
    code: str = ""
    """Provider's error code, such as `context_length_exceeded`."""
    empty: bool = False
    """True if the attempt failed because the reply contained no text."""
    refused: bool = False
    """True if the model or a content filter refused to reply. A retry would be refused too."""
    advice: str = ""
    """Advice for the user on this failure, or `""` if there is none."""

    def __str__(self) -> str:
        return self.text

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
        if self.status == 404:  # sent by routers that know no server with this method
            text = self.text.lower()
            return "response_format" in text or "structured" in text
        return self.status in (400, 422) and not is_context_overflow(self)

    @property
    def cause(self) -> str:
        """Return a short description of the failure for logs and error messages."""
        if self.status == 429:
            return "rate limited"
        return f"HTTP {self.status}" if self.status else self.text[:80]


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter, used to compute the wait before each retry.

    Tests pass their own `sleep` and `random_value`.
    """

    initial_wait_s: float = 0.5
    """Number of seconds to wait after a call's first failure, without random jitter."""
    max_wait_s: float = 30.0
    """Maximum wait in seconds before a retry if the provider does not request a specific wait."""
    max_requested_wait_s: float = 300.0
    """Longest wait, in seconds, that a provider may request before a retry. A request for a longer wait ends
    the retries."""
    sleep: Callable[[float], Awaitable[None]] = sleep_until_stop
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
        return Failure(f"connection failed: {_error_text(error)}", retryable=True, advice=UNREACHABLE)
    if (cause := error.__cause__) and _status(error, _body(error)) is None and getattr(cause, "code", None):
        error = cast(Exception, cause)  # LangChain's exception lacks the details
    body = _body(error)
    code = str(body.get("code") or body.get("type") or "")
    status = _status(error, body)
    if status is None:
        # A response with status 200 that is not a chat completion, or an error event in a stream.
        is_malformed = bool(bases & _TRANSIENT)
        is_fatal = code in FATAL_CODES
        kind = "" if "APIError" in bases or body else f"unusable answer ({type(error).__name__}): "
        return Failure(kind + _message(error, body), retryable=is_malformed and not is_fatal, code=code)
    retryable = (status in RETRYABLE or status >= 500) and code not in FATAL_CODES
    wait = retry_after(getattr(getattr(error, "response", None), "headers", {}), datetime.now(UTC))
    wait_note = "" if wait is None else f" (asks to wait {wait:.0f} s)"
    return Failure(
        f"HTTP {status}: {_message(error, body)}{wait_note}",
        status=status,
        retryable=retryable,
        retry_after=wait,
        code=code,
        refused=code in REFUSALS,
    )


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS error that caused a failed connection, or `None` if there is none.

    A connection that the server only closed does not count.
    """
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if isinstance(cause, ssl.SSLError):
            return None if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError) else cause
        cause = cause and (cause.__cause__ or cause.__context__)
    return None


def is_context_overflow(failure: Failure) -> bool:
    """Return True if the provider's error means that the request exceeded the model's context window.

    The texts are those of OpenAI, Anthropic, Google and vLLM.
    """
    text = failure.text.lower()
    phrases = ("context length", "context window", "prompt is too long", "number of tokens allowed")
    return failure.code == "context_length_exceeded" or any(phrase in text for phrase in phrases)


def excess_tokens(failure: Failure, prompt_tokens: int) -> int:
    """Return by how many tokens a request was too long for the model, or 0.

    The number is taken from the server's error text. If the text contains no number, it is a quarter of the
    prompt.
    """
    if not is_context_overflow(failure):
        return 0
    numbers = [int(number) for number in re.findall(r"\d{3,9}", failure.text.partition(": ")[2])]
    excess = max(numbers[:2]) - min(numbers[:2]) if len(numbers) > 1 else 0
    # The server's tokenizer may count slightly more tokens than Moot's, so an eighth is added as a margin.
    return excess + excess // 8 + 16 if 0 < excess < prompt_tokens else prompt_tokens // 4


def html_failure(status: int, text: str) -> Failure:
    """Return the error for an HTML page that an endpoint sent instead of a reply.

    Gateways send such pages.
    """
    title = re.search(r"<title[^<>]*>([^<]*)</title>", text, re.I)
    title_note = f" ({_clip(title[1])})" if title else ""
    return Failure(
        f"HTTP {status}: the server sent a web page{title_note} instead of an answer",
        status=status,
        retryable=status in RETRYABLE or status >= 500,
        advice="" if status in (401, 403) or status >= 500 else NO_API,
    )


def finish_of(metadata: Mapping[str, object]) -> str:
    """Return the finish reason of a message, using OpenAI's names.

    Default: `stop`.
    """
    reason = next((str(metadata[key]) for key in _FINISH_KEYS if metadata.get(key)), "stop")
    return _FINISHES.get(reason.lower(), reason)


def has_finish(metadata: Mapping[str, object]) -> bool:
    """Return True if a message's metadata contains a finish reason."""
    return any(metadata.get(key) for key in _FINISH_KEYS)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait time in seconds that a `retry-after-ms` or `retry-after` header requests."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value)
        except ValueError:
            with suppress(ValueError, TypeError):  # neither a number nor a date
                return max(0.0, (parsedate_to_datetime(value) - now).total_seconds() * scale)
            continue
        if 0 <= seconds < 1e9:
            return seconds * scale
    return None


def _body(error: Exception) -> JsonObject:
    body = getattr(error, "body", None) or getattr(error, "details", None)
    if body is None and error.args and isinstance(error.args[0], Mapping):
        body = error.args[0]
    if isinstance(body, Mapping):
        inner = body.get("error")
        return dict(inner if isinstance(inner, Mapping) else body)
    return {}


def _status(error: Exception, body: JsonObject) -> int | None:
    attributes = (getattr(error, name, None) for name in ("status_code", "code"))
    for value in (*attributes, body.get("code"), body.get("status")):
        with suppress(TypeError, ValueError):  # `None` or text
            number = int(value)  # type: ignore[arg-type]
            if 400 <= number < 600:
                return number
    return None


def _message(error: Exception, body: JsonObject) -> str:
    message = body.get("message")
    return _clip(message) if isinstance(message, str) and message else _error_text(error)


def _error_text(error: Exception) -> str:
    return _clip(str(error)) or type(error).__name__


def _clip(text: str) -> str:
    return clip(" ".join(redact_urls(text)[: 4 * MESSAGE_CHARS].split()), MESSAGE_CHARS)

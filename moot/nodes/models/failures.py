"""A provider's failures, sorted by whether trying again can help, and how long to wait before that."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from moot.nodes.text.plain import clip
from moot.state.entries import JsonObject
from moot.state.errors import ModelError
from moot.state.event_loop import rest
from moot.state.redaction import shown_url

RETRYABLE = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""

HOPELESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Error codes that waiting does not cure, whatever the status."""

REFUSALS = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
"""Error codes and finish reasons of filters: Azure's, OpenAI's."""

UNREACHABLE = "nothing answers at {url}: is it running? If the address is wrong, set {endpoint}"
NO_API = "{endpoint}, {url}, is no API's address: that of OpenAI-compatible servers often ends in /v1"

_FINISHES = {
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
"""Why an answer ended, as other providers say it, in OpenAI's words."""

# The classes of httpx, httpx2 and the SDK are told by name: whichever of them is installed, none is imported
# for the offline model.
_CONNECTION = frozenset({"APIConnectionError", "TransportError", "StreamError", "ModelConnectionError"})
_TIMEOUT = frozenset({"APITimeoutError", "TimeoutException", "StreamChunkTimeoutError", "ModelTimeoutError"})
_PASSING = frozenset({"APIError", "ValueError", "LookupError", "TypeError", "ModelAPIError", "ResponseError"})
"""What an answer that is none raises, and a stream that breaks off; Ollama's is `ResponseError`."""

MESSAGE_CHARS = 300


@dataclass(eq=False)
class Failure(Exception):
    """Why one attempt gave no answer."""

    text: str
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    """Seconds that the provider asks to wait."""
    code: str = ""
    """The provider's error code, such as `context_length_exceeded`."""
    empty: bool = False
    """The model answered, but said nothing."""
    refused: bool = False
    """The model, or its provider's filter, would not answer: asking again is answered alike."""
    advice: str = ""
    """What a user can do, where that follows from the failure alone."""

    def __str__(self) -> str:
        return self.text

    @property
    def passes(self) -> bool:
        """Whether it is the provider's state of the moment, and nothing about this request."""
        return self.retryable and not self.empty

    @property
    def asked_wait_s(self) -> float:
        """Seconds that the provider asks to wait, 0 where it asks for nothing."""
        return self.retry_after or 0.0

    @property
    def refuses_method(self) -> bool:
        """Whether it may be for the way in which a structured answer was asked for."""
        if self.status == 404:  # routers that find no server for it
            text = self.text.lower()
            return "response_format" in text or "structured" in text
        return self.status in (400, 422) and not is_too_long(self)

    @property
    def cause(self) -> str:
        """What is the matter, in a few words."""
        if self.status == 429:
            return "rate limited"
        return f"HTTP {self.status}" if self.status else self.text[:80]


@dataclass(frozen=True)
class Backoff:
    """Exponential waits with jitter; the sleep and the dice are injected, so tests do not wait."""

    first_s: float = 0.5
    """Wait after the first failure, seconds, before jitter."""
    longest_s: float = 30.0
    """No wait of our own is longer, seconds."""
    patience_s: float = 300.0
    """A provider that asks for a longer wait than this, seconds, is given up instead."""
    sleep: Callable[[float], Awaitable[None]] = rest
    dice: Callable[[], float] = random.random

    def wait_s(self, failures: int, asked_s: float | None = None) -> float:
        """Return the seconds to wait after so many failures in a row.

        What the provider asks for is kept to, with a little jitter so that many callers do not return at
        the same moment; else half to all of the exponential step.
        """
        if asked_s is not None:
            return asked_s + self.dice() * min(0.1 * asked_s, self.first_s)
        step = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return step * (0.5 + 0.5 * self.dice())


def failure_of(error: Exception, *, timeout_s: float) -> Failure:
    """Sort an exception of one attempt."""
    for each in (error, error.__cause__):  # the SDK wraps what a hook of its client raises
        if isinstance(each, Failure):
            return each
    if isinstance(error, ModelError):
        return Failure(str(error), status=error.status, retryable=error.retryable)
    bases = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, TimeoutError) or bases & _TIMEOUT:
        return Failure(f"no answer within {timeout_s:g} s", retryable=True)
    if isinstance(error, OSError) or bases & _CONNECTION:
        return Failure(f"connection failed: {_error_text(error)}", retryable=True, advice=UNREACHABLE)
    if (cause := error.__cause__) and _status(error, _body(error)) is None and getattr(cause, "code", None):
        error = cast(Exception, cause)  # LangChain's word for Google's error has its text alone
    body = _body(error)
    code = str(body.get("code") or body.get("type") or "")
    status = _status(error, body)
    if status is None:
        # A 200 that is no chat completion, or an error event within a stream.
        malformed = bool(bases & _PASSING)
        hopeless = code in HOPELESS_CODES
        kind = "" if "APIError" in bases or body else f"unusable answer ({type(error).__name__}): "
        return Failure(kind + _message(error, body), retryable=malformed and not hopeless, code=code)
    retryable = (status in RETRYABLE or status >= 500) and code not in HOPELESS_CODES
    wait = retry_after(getattr(getattr(error, "response", None), "headers", {}), datetime.now(UTC))
    asks = "" if wait is None else f" (asks to wait {wait:.0f} s)"
    return Failure(
        f"HTTP {status}: {_message(error, body)}{asks}",
        status=status,
        retryable=retryable,
        retry_after=wait,
        code=code,
        refused=code in REFUSALS,
    )


def is_too_long(failure: Failure) -> bool:
    """Return whether a request was longer than the context, as OpenAI, Anthropic, Google, vLLM say it."""
    text = failure.text.lower()
    said = ("context length", "context window", "prompt is too long", "number of tokens allowed")
    return failure.code == "context_length_exceeded" or any(words in text for words in said)


def excess_tokens(failure: Failure, prompt_tokens: int) -> int:
    """Return by how many tokens a request was too long: as the server says, else a quarter of it."""
    if not is_too_long(failure):
        return 0
    numbers = [int(number) for number in re.findall(r"\d{3,9}", failure.text.partition(": ")[2])]
    over = max(numbers[:2]) - min(numbers[:2]) if len(numbers) > 1 else 0
    # A server's own tokenizer may count a little differently.
    return over + over // 8 + 16 if 0 < over < prompt_tokens else prompt_tokens // 4


def web_page(status: int, text: str) -> Failure:
    """Return the failure that an HTML page is: a gateway's error, or an address that is no API's."""
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
    words = f" ({_clip(title[1])})" if title else ""
    return Failure(
        f"HTTP {status}: a web page{words} came instead of an answer",
        status=status,
        retryable=status in RETRYABLE or status >= 500,
        advice="" if status in (401, 403) or status >= 500 else NO_API,
    )


def finish_of(metadata: Mapping[str, object]) -> str:
    """Return why an answer ended, of a message's metadata: `stop`, `length` or another word of OpenAI's."""
    keys = ("finish_reason", "stop_reason", "done_reason", "stopReason")
    said = str(next((metadata[key] for key in keys if metadata.get(key)), "stop"))
    return _FINISHES.get(said.lower(), said)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` (seconds or a date) asks to wait."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value)
        except ValueError:
            with suppress(ValueError, TypeError):  # what is neither a number nor a date
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
    said = (getattr(error, name, None) for name in ("status_code", "code"))
    for value in (*said, body.get("code"), body.get("status")):
        with suppress(TypeError, ValueError):  # None, or words
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
    return clip(" ".join(shown_url(text)[: 4 * MESSAGE_CHARS].split()), MESSAGE_CHARS)

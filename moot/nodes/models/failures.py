"""A provider's failures, sorted by whether trying again can help."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from moot.state.config.model_settings import ModelSettings
from moot.state.entries import JsonObject
from moot.state.errors import ModelError
from moot.state.redaction import shown_url

RETRYABLE = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""

HOPELESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Error codes that waiting does not cure, whatever the status."""

REFUSALS = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
"""Error codes and finish reasons of filters: Azure's, OpenAI's."""

# The classes of httpx, httpx2 and the SDK are told by name: whichever of them is installed, none is imported
# for the offline model.
_CONNECTION = frozenset({"APIConnectionError", "TransportError", "StreamError"})
_TIMEOUT = frozenset({"APITimeoutError", "TimeoutException", "StreamChunkTimeoutError"})

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

    def __str__(self) -> str:
        return self.text


def failure_of(error: Exception, *, timeout_s: float, now: datetime | None = None) -> Failure:
    """Sort an exception of one attempt."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, ModelError):
        return Failure(str(error), status=error.status, retryable=error.retryable)
    bases = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, TimeoutError) or bases & _TIMEOUT:
        return Failure(f"no answer within {timeout_s:g} s", retryable=True)
    if isinstance(error, OSError) or bases & _CONNECTION:
        return Failure(f"connection failed: {_short(error)}", retryable=True)
    return _provider_failure(error, bases, now or datetime.now(UTC))


def _provider_failure(error: Exception, bases: set[str], now: datetime) -> Failure:
    body = _body(error)
    code = str(body.get("code") or body.get("type") or "")
    status = _status(error, body)
    if status is None:
        # A 200 that is no chat completion, or an error event within a stream.
        malformed = bool(bases & {"APIError", "ValueError", "LookupError", "TypeError"})
        hopeless = code in HOPELESS_CODES
        kind = "" if "APIError" in bases or body else f"unusable answer ({type(error).__name__}): "
        return Failure(kind + _message(error, body), retryable=malformed and not hopeless, code=code)
    retryable = (status in RETRYABLE or status >= 500) and code not in HOPELESS_CODES
    wait = retry_after(getattr(getattr(error, "response", None), "headers", {}), now)
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
    """Return whether a request was longer than the model's context, as OpenAI, vLLM and llama.cpp say it."""
    text = failure.text.lower()
    return failure.code == "context_length_exceeded" or "context length" in text or "context window" in text


def excess_tokens(failure: Failure, prompt_tokens: int) -> int:
    """Return by how many tokens a request was too long: as the server says, else a quarter of it."""
    if not is_too_long(failure):
        return 0
    numbers = [int(number) for number in re.findall(r"\d{3,9}", failure.text.partition(": ")[2])]
    over = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    # A server's own tokenizer may count a little differently.
    return over + over // 8 + 16 if 0 < over < prompt_tokens else prompt_tokens // 4


def advice(failure: Failure, settings: ModelSettings) -> str:
    """Return what a user can do about a failure that no waiting cures, `""` where that is not known."""
    endpoint = "the model's base_url" if settings.base_url else "OPENAI_BASE_URL"
    if failure.status in (401, 403):
        if settings.key_variable is None:
            return "no key was sent: name its variable as `api_key_env` beside the model's base_url"
        return f"check the key in {settings.key_variable}, and that {endpoint} is the endpoint it belongs to"
    if failure.status == 404:
        return (
            f"check the model's name, and {endpoint}; to go on with another model, give `model` in a file "
            "with `moot resume ID --config FILE --reconfigure`"
        )
    return ""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` (seconds or a date) asks to wait."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        seconds = _seconds(value, now)
        if seconds is not None:
            return max(0.0, seconds * scale)
    return None


def _seconds(value: str, now: datetime) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        try:
            return (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return seconds if 0 <= seconds < 1e9 else None


def _body(error: Exception) -> JsonObject:
    body = getattr(error, "body", None)
    if body is None and error.args and isinstance(error.args[0], Mapping):
        body = error.args[0]
    if isinstance(body, Mapping):
        inner = body.get("error")
        return dict(inner if isinstance(inner, Mapping) else body)
    return {}


def _status(error: Exception, body: JsonObject) -> int | None:
    for value in (getattr(error, "status_code", None), body.get("code"), body.get("status")):
        try:
            number = int(value)  # type: ignore[arg-type]  # None and words are caught
        except (TypeError, ValueError):
            continue
        if 400 <= number < 600:
            return number
    return None


def _message(error: Exception, body: JsonObject) -> str:
    message = body.get("message")
    return _clip(message) if isinstance(message, str) and message else _short(error)


def _short(error: Exception) -> str:
    return _clip(str(error)) or type(error).__name__


def _clip(text: str) -> str:
    line = " ".join(shown_url(text)[: 4 * MESSAGE_CHARS].split())
    return line if len(line) <= MESSAGE_CHARS else line[: MESSAGE_CHARS - 1] + "…"

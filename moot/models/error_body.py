"""Reader of the error bodies that model servers send.

Servers send an object with `error` or `message`, FastAPI's `detail`, a list, a bare string, plain text, or JSON
inside a string. All of them become one `ErrorBody`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_DEPTH = 8
"""Maximum nesting depth of an error body. Routers wrap the error of the server behind them, twice at most."""
MAX_CHARS = 4_000
"""Maximum number of characters of an error text that is read. The patterns of `error_kinds` search it."""

_TEXT_KEYS = frozenset(
    {"message", "msg", "detail", "details", "error", "errors", "raw", "reason", "description", "title", "text"}
    | {"error_message", "error_msg", "error_description", "errormessage", "fault", "cause", "err"}
)
_CODE_KEYS = frozenset({"code", "type", "status", "error_code", "errorcode", "error_type", "__type", "@type"})
_FIELD_KEYS = frozenset({"param", "field", "parameter", "argument", "loc", "path"})
_STATUS_KEYS = frozenset({"code", "status", "status_code", "statuscode", "http_code", "httpstatuscode"})
_WAIT_KEYS = frozenset({"retry_after", "retryafter", "retrydelay", "retry_after_seconds"})
_TEXT_ORDER = ("message", "error_message", "msg", "error_msg", "error", "detail")

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
DURATION = r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec\w*|m|min\w*|h|hours?|hr?s?|d|days?)(?![A-Za-z])"


@dataclass(frozen=True)
class ErrorBody:
    """Contents of an error body, in one form for all servers."""

    text: str = ""
    """Error texts in the body, the outer ones first. Repeated texts are left out."""
    codes: tuple[str, ...] = ()
    """Codes, types and statuses that are not HTTP statuses, such as `context_length_exceeded`."""
    fields: tuple[str, ...] = ()
    """Names of the request fields that the error is about."""
    status: int | None = None
    """HTTP status that the body states, or `None`."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Numbers in the body, keyed by the name of their field in lower case. The first of a name counts."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that a router passes on in the body, with names in lower case."""


def read_error(body: object) -> ErrorBody:
    """Read an error body. `body` is the parsed JSON, or the text of the response."""
    texts: dict[str, None] = {}
    codes: dict[str, None] = {}
    fields: dict[str, None] = {}
    numbers: dict[str, float] = {}
    headers: dict[str, str] = {}
    status: int | None = None
    for key, value in _leaves("", _parsed(body), 0):
        if key.startswith("header:"):
            headers.setdefault(key.removeprefix("header:"), str(value))
        elif isinstance(value, bool):
            continue
        elif isinstance(value, int | float) or (key in _STATUS_KEYS and value.isdigit()):
            number = float(value)
            if key in _STATUS_KEYS and status is None and 400 <= number < 600:
                status = int(number)
            elif key in _CODE_KEYS and number >= 1000:  # codes of Zhipu and Mistral
                codes.setdefault(str(int(number)))
            else:
                numbers.setdefault(key, number)
        elif key in _WAIT_KEYS:
            numbers.setdefault(key, duration_s(value) or 0.0)
        elif key in _FIELD_KEYS:
            fields.setdefault(value)
        elif key in _CODE_KEYS:
            codes.setdefault(value.rpartition("/")[2])
            if " " in value:  # xAI writes sentences there
                texts.setdefault(_line(value))
        elif key in _TEXT_KEYS or not key:
            texts.setdefault(_line(value))
    text = ": ".join(part for part in texts if part)[:MAX_CHARS]
    return ErrorBody(text, tuple(codes), tuple(fields), status, numbers, headers)


def _line(text: str) -> str:
    return " ".join(text[:MAX_CHARS].split()).rstrip(":")


def _parsed(value: object) -> object:
    """Return the JSON inside a string, or the value itself if there is none."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str):
        return value
    text = value.strip().removeprefix("data:").lstrip()
    if text.startswith(("{", "[", '"')):
        try:
            return _parsed(json.loads(text))
        except (ValueError, RecursionError):
            return value
    # Proxies put a status before the JSON, such as `400 {"error": …}`.
    if (inside := re.search(r"\{\s*['\"].*\}", text, re.DOTALL)) and text.endswith(inside[0]):
        try:
            return [text[: inside.start()], json.loads(inside[0])]
        except (ValueError, RecursionError):
            return value
    return value


def _leaves(key: str, value: object, depth: int) -> Iterator[tuple[str, str | int | float]]:
    """Yield the keys and values of an error body, the texts of an object before its other parts."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        rank = {name: place for place, name in enumerate(_TEXT_ORDER)}
        for name, part in sorted(value.items(), key=lambda item: rank.get(str(item[0]).lower(), len(rank))):
            folded = str(name).lower()
            if folded == "headers" and isinstance(part, Mapping):
                yield from ((f"header:{str(each).lower()}", str(held)) for each, held in part.items())
            elif folded == "loc" and isinstance(part, list):
                yield from (("loc", each) for each in part if isinstance(each, str) and each != "body")
            elif folded != "input":  # FastAPI repeats the refused request there
                yield from _leaves(folded, part, depth + 1)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(key, part, depth + 1)
    elif isinstance(value, str):
        inner = _parsed(value)
        if inner is not value and not isinstance(inner, str):
            yield from _leaves(key, inner, depth + 1)
        elif value.strip():
            yield key, value
    elif isinstance(value, int | float):
        yield key, value


def duration_s(text: str) -> float | None:
    """Return the seconds of a duration such as `30`, `1.5s`, `2m30s` or `250ms`, or `None`."""
    text = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    parts = re.findall(DURATION, text)
    if not parts or re.sub(DURATION, "", text).strip():
        return None
    return round(sum(float(number) * _UNITS[_unit(unit)] for number, unit in parts), 3)


def _unit(word: str) -> str:
    return "ms" if word.startswith(("ms", "milli")) else word[0]

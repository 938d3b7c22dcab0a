"""Reader of the error bodies that model servers send.

Servers send an object with `error` or `message`, FastAPI's `detail`, a list, a bare string, plain text, or
JSON inside a string. All of them become one `ErrorBody`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

MAX_DEPTH = 8
"""Maximum nesting depth of an error body. Routers wrap the error of the server behind them, twice at most."""
MAX_CHARS = 4_000
"""Maximum number of characters of an error text that is read. The patterns of `error_kinds` search it."""

_TEXT_KEYS: tuple[str, ...] = ("msg", "message", "error", "errors", "raw", "reason", "description", "title")
_TEXT_KEYS += ("text", "detail", "details", "fault", "cause", "err")
"""Ends of the names of fields that hold an error's text, as in `error_msg`."""
_CODE_KEYS = frozenset({"code", "type", "status", "error_code", "errorcode", "error_type", "__type", "@type"})
_FIELD_KEYS = frozenset({"param", "field", "parameter", "argument", "loc", "path"})
_STATUS_KEYS = frozenset({"code", "status", "status_code", "statuscode", "http_code", "httpstatuscode"})
_WAIT_KEYS = frozenset({"retry_after", "retryafter", "retrydelay", "retry_after_seconds"})
_HEADER = "header:"
"""Prefix of the keys of headers."""
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
    reader = _BodyReader()
    for key, value in _leaves("", _parsed(body), 0):
        if isinstance(value, str) and not (key in _STATUS_KEYS and value.isdigit()):
            reader.add_text(key, value)
        elif not isinstance(value, bool):
            reader.add_number(key, float(value))
    text = ": ".join(part for part in reader.texts if part)[:MAX_CHARS]
    codes, fields = tuple(reader.codes), tuple(reader.fields)
    return ErrorBody(text, codes, fields, reader.status, reader.numbers, reader.headers)


@dataclass
class _BodyReader:
    """Values of an error body, sorted by what their keys say, in order and without repetitions."""

    texts: dict[str, None] = field(default_factory=dict)
    codes: dict[str, None] = field(default_factory=dict)
    fields: dict[str, None] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    status: int | None = None

    def add_number(self, key: str, number: float) -> None:
        if key in _STATUS_KEYS and self.status is None and 400 <= number < 600:
            self.status = int(number)
        elif key in _CODE_KEYS and number >= 1000:  # codes of Zhipu and Mistral
            self.codes.setdefault(str(int(number)))
        else:
            self.numbers.setdefault(key, number)

    def add_text(self, key: str, text: str) -> None:
        if key.startswith(_HEADER):
            self.headers.setdefault(key.removeprefix(_HEADER), text)
        elif key in _WAIT_KEYS:
            self.numbers.setdefault(key, duration_s(text) or 0.0)
        elif key in _FIELD_KEYS:
            self.fields.setdefault(text)
        elif key in _CODE_KEYS:
            self.codes.setdefault(text.rpartition("/")[2])
        # xAI writes sentences into `code`.
        if key.endswith(_TEXT_KEYS) or not key or (key in _CODE_KEYS and " " in text):
            self.texts.setdefault(_line(text))


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
    if text.endswith("}") and (opening := re.search(r"\{\s*['\"]", text)):
        try:
            return [text[: opening.start()], json.loads(text[opening.start() :])]
        except (ValueError, RecursionError):
            return value
    return value


def _leaves(key: str, value: object, depth: int) -> Iterator[tuple[str, str | int | float]]:
    """Yield the keys and values of an error body, the texts of an object before its other parts."""
    value = _parsed(value)
    if isinstance(value, str):
        if value.strip():
            yield key, value
    elif isinstance(value, int | float):
        yield key, value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple):
        # `loc` is FastAPI's path of a field, such as `["body", "messages", 0, "name"]`.
        parts = [part for part in value if key != "loc" or (isinstance(part, str) and part != "body")]
        yield from chain.from_iterable(_leaves(key, part, depth + 1) for part in parts)
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        rank = {name: place for place, name in enumerate(_TEXT_ORDER)}
        parts_by_name = {str(name).lower(): part for name, part in value.items()}
        for name in sorted(parts_by_name, key=lambda each: rank.get(each, len(rank))):
            if key == "headers":
                yield f"{_HEADER}{name}", str(parts_by_name[name])
            elif name != "input":  # FastAPI repeats the refused request there
                yield from _leaves(name, parts_by_name[name], depth + 1)


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

"""Strings that match a JSON Schema's pattern or format."""

from __future__ import annotations

import re
from re import _parser  # type: ignore[attr-defined]  # the only parser of patterns in the standard library
from typing import Any

FORMATS = {
    "date-time": "2025-01-01T00:00:00Z",
    "date": "2025-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
}

_CATEGORIES = {"CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " "}
_NOT_CATEGORIES = {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_WORD": "-", "CATEGORY_NOT_SPACE": "a"}
_ANY = "a1 -_.A#"


def matching(pattern: str) -> str:
    """Return a short string that matches a pattern, as far as it can be made without searching.

    Look-arounds are passed over, so a pattern that needs them may not be matched.
    """
    try:
        return "".join(_part(*item) for item in _parser.parse(pattern))
    except re.error:
        return ""


def _part(op: Any, argument: Any) -> str:
    name = str(op)
    if name == "LITERAL":
        return chr(argument)
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, _, items = argument
        return "".join(_part(*item) for item in items) * int(least)
    if name == "SUBPATTERN":
        return "".join(_part(*item) for item in argument[-1])
    if name == "BRANCH":
        return "".join(_part(*item) for item in argument[1][0])
    if name == "IN":
        return _member(argument)
    if name == "NOT_LITERAL":
        return next(char for char in _ANY if ord(char) != argument)
    return "a" if name == "ANY" else ""


def _member(options: list[Any]) -> str:
    if str(options[0][0]) == "NEGATE":
        refused = re.compile("|".join(_option(op, argument) for op, argument in options[1:]))
        return next((char for char in _ANY if not refused.fullmatch(char)), "~")
    op, argument = options[0]
    name = str(op)
    if name == "RANGE":
        return chr(argument[0])
    if name == "CATEGORY":
        return {**_CATEGORIES, **_NOT_CATEGORIES}[str(argument)]
    return chr(argument)


def _option(op: Any, argument: Any) -> str:
    name = str(op)
    if name == "RANGE":
        return f"[{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}]"
    if name == "CATEGORY":
        letter = str(argument).rsplit("_", 1)[-1][0].lower()
        return f"\\{letter.upper() if '_NOT_' in str(argument) else letter}"
    return re.escape(chr(argument))

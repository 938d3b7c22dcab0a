"""How a report writes what it is given: cleaned texts, numbers, times, a configuration without secrets."""

from __future__ import annotations

import json
import re

from moot.nodes.text.plain import clip
from moot.state.entries import clean_text

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TO_CLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST = 2.0**63
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|password|passwd|authorization|credential|headers)$")


def clean_strings(value: object) -> object:
    """Return `value` with its strings free of what no page may carry, however deep they lie.

    NUL, lone surrogates and control characters (ANSI escapes among them) go; tabs and line ends stay. Texts
    in lists lose the space around them, lists those of which nothing remains. What is no finite number of
    ordinary size is none.
    """
    if isinstance(value, str):
        if not _TO_CLEAN.search(value):
            return value
        return _CONTROLS.sub("", clean_text(value).replace("\r\n", "\n").replace("\r", "\n"))
    if isinstance(value, int | float) and not abs(value) < _MOST:  # nor is what is not a number
        return None
    if isinstance(value, dict):
        return {clean_strings(str(key)): clean_strings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [item.strip() if isinstance(item, str) else item for item in map(clean_strings, value)]
        return [item for item in items if item != ""]
    return value


def group_digits(number: float | None) -> str:
    """Write a number for a reader: thousands separated, at most two decimals, a dash for none."""
    return "–" if number is None else f"{number:,.2f}".rstrip("0").rstrip(".")


def one_decimal(score: float | None) -> str:
    """Write a score or a total as every form of a result does, a dash for none."""
    return "–" if score is None else f"{score:.1f}"


def clock(at: str, length: int = 16) -> str:
    """Write a time, ISO 8601, to the minute, or to so many characters; of UTC it says so."""
    zone = " UTC" if at.endswith(("Z", "+00:00")) else ""
    return at[:length].replace("T", " ") + zone


def shorten(text: str, limit: int) -> str:
    """Return the first line of `text`, cut at a word within `limit` characters."""
    return clip(" ".join(text.strip().partition("\n")[0].split()), limit)


def as_json(value: object) -> str:
    """Write a configuration as readable JSON; values of keys that name a secret are masked."""
    return json.dumps(_without_secrets(value), ensure_ascii=False, indent=2, default=str)


def _without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return {k: "***" if v and _SECRET.search(k) else _without_secrets(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value

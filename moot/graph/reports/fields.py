"""Tolerant reading of a `moot.debate/1` document: any key may be missing, null or of another type."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from moot.state.entries import clean_text

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TO_CLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|password|passwd|authorization|credential|headers)$")
FULL_CONFIDENCE = 100


def cleaned(value: Any) -> Any:
    """Return `value` with its strings free of what no page may carry, however deep they lie.

    NUL, lone surrogates and control characters (ANSI escapes among them) go; tabs and line ends stay.
    """
    if isinstance(value, str):
        return _cleaned_text(value) if _TO_CLEAN.search(value) else value
    if isinstance(value, dict):
        return {cleaned(as_text(key)): cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return value


def _cleaned_text(text: str) -> str:
    return _CONTROLS.sub("", clean_text(text).replace("\r\n", "\n").replace("\r", "\n"))


def as_dict(value: Any) -> dict[str, Any]:
    """Return `value` where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return `value` as a list: itself, a lone value as its only item, nothing as an empty one."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def as_dicts(value: Any) -> list[dict[str, Any]]:
    """Return the mappings in the list `value`."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_text(value: Any) -> str:
    """Return `value` as words for a reader; mappings and lists are spelled out."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(
            f"{key}: {as_text(item)}" for key, item in value.items() if item not in (None, "", [])
        )
    if isinstance(value, list | tuple):
        return ", ".join(as_text(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_texts(value: Any) -> tuple[str, ...]:
    """Return the non-empty texts of a list."""
    return tuple(text for item in as_list(value) if (text := as_text(item).strip()))


def as_number(value: Any) -> float | None:
    """Return a finite number, `None` where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: Any) -> int:
    """Return a whole number of at least 0; 0 where there is none."""
    return max(0, int(as_number(value) or 0))


def percent(value: Any) -> int | None:
    """Return a confidence as a whole number in 0–100, `None` where there is none."""
    number = as_number(value)
    return None if number is None else round(min(max(number, 0.0), float(FULL_CONFIDENCE)))


def grouped(value: Any) -> str:
    """Write a number for a reader: thousands separated, at most two decimals, a dash for none."""
    number = as_number(value)
    if number is None:
        return "–"
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def shortened(text: str, limit: int) -> str:
    """Return the first line of `text`, cut at a word within `limit` characters."""
    line = " ".join(text.strip().partition("\n")[0].split())
    if len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def without_secrets(value: Any) -> Any:
    """Return a configuration in which values of keys that name a secret are masked."""
    if isinstance(value, dict):
        return {k: "***" if v and _SECRET.search(k) else without_secrets(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return value


def as_json(value: Any) -> str:
    """Write a value as readable JSON, masked as `without_secrets` does."""
    return json.dumps(without_secrets(value), ensure_ascii=False, indent=2, default=str)

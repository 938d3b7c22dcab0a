"""Text of debates made safe for a terminal: nothing in it can move the cursor, recolour or reorder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from moot.state.redaction import redact

if TYPE_CHECKING:
    from moot.state.entries import Entry

_REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff{_REORDERING}\ud800-\udfff]")


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def safe(text: str) -> str:
    """Return text whose control characters and bidirectional overrides are shown instead of obeyed.

    Line breaks and tabs stay. The result holds no escape sequence, whatever the text was made of, and any
    part of it can be made safe on its own.
    """
    return _UNSAFE.sub(_visible, redact(text).replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """Return safe text on one line, cut to so many characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def local_time(at: str) -> str:
    """Return a time, ISO 8601, as `2026-01-31 18:05 CET`, by this machine's clock."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M %Z")
    except ValueError:
        return one_line(at, 20)


def json_text(value: object) -> str:
    """Return JSON in readable characters, with what a terminal would obey as an escape."""
    text = redact(json.dumps(value, ensure_ascii=False, indent=2))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\x7f", "\\u007f"))


def entry_words(entry: Entry, names: Mapping[str, str]) -> str:
    """Return an entry's kind (a speech's phase), what it answers and its crux room, on one safe line."""
    kind, room = entry["kind"].replace("_", " "), entry["room"]
    what = entry["phase"] or kind if kind == "speech" else kind
    targets = ", ".join(names.get(target, target) for target in entry["targets"])
    answering = f" → {targets}" if targets else ""
    return one_line(f"{what}{answering}{f' · in {room}' if room else ''}", 160)


def debater_names(config: Mapping[str, Any], width: int = 40) -> dict[str, str]:
    """Return the debaters' names by id, each on one safe line of so many characters at most."""
    return {each["id"]: one_line(each["name"], width) for each in config.get("debaters", [])}

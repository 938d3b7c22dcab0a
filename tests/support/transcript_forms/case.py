"""One file and what is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

A, B = "Mira Holt", "Tomas Reyes"
TALK = [(A, "The bridge stays open."), (B, "It is not safe."), (A, "Then repair it.")]
SHORT = TALK[:2]
CHAT = [("user", "Is the bridge safe?"), ("assistant", "Not in winter.")]


@dataclass(frozen=True)
class Case:
    """A file and the messages in it."""

    name: str
    file: str
    text: str | bytes
    expected: list[tuple[str, str]]
    left_out: str = ""
    """A part of the line about what is left out."""


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def to_lines(*values: Any) -> str:
    return "\n".join(map(to_json, values)) + "\n"

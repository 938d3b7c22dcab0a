"""Snapshots of prompts as Markdown files in `tests/snapshots`. A changed prompt shows in the diff.

`MOOT_SNAPSHOTS=write pytest …` rewrites the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

WRITE_SNAPSHOTS = os.environ.get("MOOT_SNAPSHOTS") == "write"  # read before a fixture clears the environment
FOLDER = Path(__file__).parent.parent / "snapshots"


def prompt_markdown(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return a prompt as Markdown, with a rule and a heading before each message."""
    parts = []
    for message in messages:
        name = f" · {message['name']}" if message.get("name") else ""
        parts.append(f"---\n\n`{message['role']}{name}`\n\n{message['content']}\n")
    return "\n".join(parts)


def check_snapshot(name: str, text: str) -> None:
    """Compare a text with its snapshot, or write the snapshot if `MOOT_SNAPSHOTS=write`."""
    path = FOLDER / f"{name}.md"
    if WRITE_SNAPSHOTS:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no snapshot {path.name}: create it with MOOT_SNAPSHOTS=write"
    assert text == path.read_text(encoding="utf-8"), (
        f"the prompt differs from {path.name}: to accept the change, set MOOT_SNAPSHOTS=write"
    )

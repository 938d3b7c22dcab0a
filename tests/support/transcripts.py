"""Comparison of transcripts in tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def message_texts(debate: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the id, the speaker and the text of every entry of a state or a document."""
    transcript = debate["full_transcript"] if "full_transcript" in debate else debate["transcript"]
    return [(entry["id"], entry["speaker"], entry["content"]) for entry in transcript]

"""What the summary covers: every message is in the window or in the summary, never in neither."""

from __future__ import annotations

from moot.nodes.memory.window import first_seq
from moot.state.config.memory_config import NO_SUMMARY
from moot.state.conversation import StateValues
from moot.state.entries import Entry


def uncovered(state: StateValues) -> list[Entry]:
    """Return the entries that have left the window and are to be folded into the rolling summary."""
    if (state.get("config") or {}).get("memory", {}).get("summarizer") == NO_SUMMARY:
        return []
    transcript: list[Entry] = state["full_transcript"]
    covered: int = (state.get("rolling_summary") or {}).get("covers_through_seq", -1)
    return transcript[covered + 1 : first_seq(state["messages"], len(transcript))]

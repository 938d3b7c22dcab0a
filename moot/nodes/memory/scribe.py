"""Entries that follow a transcript: numbered on, stamped, their tokens counted once."""

from collections.abc import Callable, Generator
from typing import Any

from moot.nodes.effects import Emit, Update
from moot.nodes.memory.window import window_message
from moot.nodes.text.tokens import TokenCounter
from moot.state.entries import Entry, EntryKind, gifts_in, make_entry


class Scribe:
    """Writes the entries that one node adds."""

    def __init__(self, following: int, count: TokenCounter, clock: Callable[[], str], **common: Any) -> None:
        """Begin at a number of entries; `common` are fields that all have which do not name another value."""
        self.entries: list[Entry] = []
        self._following, self._count, self._clock, self._common = following, count, clock, common

    @property
    def seq(self) -> int:
        """The number of the next entry."""
        return self._following + len(self.entries)

    def write(self, speaker: str, kind: EntryKind, content: str, **fields: Any) -> Entry:
        """Add an entry and return it."""
        stamp = {} if "at" in fields else {"at": self._clock()}
        entry = make_entry(self.seq, speaker, kind, content, **{**stamp, **self._common, **fields})
        entry["tokens"] = self._count(entry["content"])
        self.entries.append(entry)
        return entry

    def enter(self) -> Generator[Emit, None, Update]:
        """Report the entries, and return the update with which they enter transcript and window."""
        for entry in self.entries:
            yield Emit({"event": "entry", "entry": entry})
        if not self.entries:
            return {}
        return {
            "full_transcript": self.entries,
            "gifts": gifts_in(self.entries),
            "messages": [window_message(entry) for entry in self.entries],
        }

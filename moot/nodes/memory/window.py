"""The window of recent messages: what enters it, and when it is compacted, in one go to a low-water mark.

Compacting in blocks keeps the prompt's prefix the same between compactions, so that a provider's prefix cache
pays for it; a window that slides by one message a turn never hits that cache.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from moot.nodes.effects import Emit, Update
from moot.nodes.prompts.rendering import entry_tokens
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import FLOOR_SPEAKERS
from moot.state.config.memory_config import NO_SUMMARY, MemoryConfig
from moot.state.conversation import StateValues
from moot.state.entries import Entry, EntryKind, gifts_in, kind_of, make_entry, seqs_of

LOW_WATER = {"shared": 0.5, "per-speaker": 0.25}
"""Share of the window's token budget that a compaction leaves at least, by layout: where each speaker has a
prefix of its own each pays for a compaction, so that there must be fewer (six debaters: 44 % of the tokens
are cached with a half, 52 % with a quarter)."""
LEAST = 150
"""Tokens that the window has at least, however long the topic is."""

MARGIN = 16
"""Kept free when room flows to the window: a tail's last line may count a few tokens more."""


@dataclass(frozen=True)
class WindowLimits:
    """When the window is compacted, and to what."""

    high_messages: int
    low_messages: int
    high_tokens: int
    low_tokens: int

    @classmethod
    def of(cls, memory: MemoryConfig, head: int | None = None) -> WindowLimits:
        """Return the limits that a configuration sets; the tail's room is kept out of the window's.

        What rules and topic, which take `head` tokens, leave of their section flows to the window; what they
        take beyond it comes out of it.
        """
        budget = memory.budget
        spare = 0 if head is None else budget.total - budget.summary - budget.messages - head - MARGIN
        tokens = max(LEAST, budget.messages - min(budget.tail, budget.messages // 4) + spare)
        high = memory.keep_recent + memory.summarize_every
        return cls(high, memory.keep_recent, tokens, int(tokens * LOW_WATER[memory.layout]))

    def messages_kept(self, costs: Sequence[float]) -> int:
        """Return how many messages of these costs stay, the newest: all where they are within the limits.

        What stays leaves room for as many messages as come between two compactions by their number, and is
        half of the room at least. The newest message always stays, however long it is.
        """
        if len(costs) <= self.high_messages and sum(costs) <= self.high_tokens:
            return len(costs)
        growth = (self.high_messages - self.low_messages) * sum(costs) // len(costs)
        low_tokens, tokens, kept = max(self.low_tokens, self.high_tokens - growth), 0.0, 0
        for cost in reversed(costs[-self.low_messages :]):
            if kept and tokens + cost > low_tokens:
                break
            kept, tokens = kept + 1, tokens + cost
        return kept


def compact(
    entries: Sequence[Entry], limits: WindowLimits, names: Mapping[str, str], count: TokenCounter
) -> int | None:
    """Return the `seq` up to which the window must be forgotten, `None` where it is within its limits.

    A tool's call and its result, a question and its answer, stay or go together.
    """
    kept = limits.messages_kept([entry_tokens(entry, names, count) for entry in entries])
    if kept == len(entries):
        return None
    places = {entry["id"]: at for at, entry in enumerate(entries)}
    pairs = [
        (places[entry["targets"][0]], at)
        for at, entry in enumerate(entries)
        if kind_of(entry).pair == "closes" and entry["targets"] and entry["targets"][0] in places
    ]

    # The window begins after a pair that would be parted, before it where the newest message would go.
    start = later = len(entries) - kept
    while parted := [closed for opened, closed in pairs if opened < later <= closed]:
        later = max(parted) + 1
    if later < len(entries):
        start = later
    while parted := [opened for opened, closed in pairs if opened < start <= closed]:
        start = min(parted)
    return entries[start]["seq"] - 1 if start else None


def window_start(state: StateValues) -> int:
    """Return the `seq` of the window's first entry; of an empty window that of the entry to come."""
    told = seqs_of(message.id or "" for message in state["messages"])
    return next(told, len(state["full_transcript"]))


def entries_to_cover(state: StateValues) -> list[Entry]:
    """Return the entries that have left the window and are to be folded into the rolling summary.

    With those that are done every message is in the window or in the summary, never in neither.
    """
    if (state.get("config") or {}).get("memory", {}).get("summarizer") == NO_SUMMARY:
        return []
    transcript: list[Entry] = state["full_transcript"]
    covered: int = (state.get("rolling_summary") or {}).get("covers_through_seq", -1)
    return transcript[covered + 1 : window_start(state)]


def window_message(entry: Entry) -> BaseMessage:
    """Return an entry as the window holds it: same id, `name` = speaker."""
    person = kind_of(entry).by == "person" or entry["speaker"] in FLOOR_SPEAKERS
    kind = HumanMessage if person else AIMessage
    return kind(content=entry["content"], id=entry["id"], name=entry["speaker"])


class Scribe:
    """Writes the entries that one node adds: numbered on, stamped, their tokens counted once."""

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

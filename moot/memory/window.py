"""Window of recent messages, and its compaction in one step to a low-water mark.

Compaction in blocks keeps the prompt's prefix unchanged between compactions, so that a provider's prefix
cache applies. A window that slides by one message a turn never hits that cache.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata

from moot.calls.effects import Emit, Update
from moot.calls.model_calls import WireMessage
from moot.config import INTERJECTION_SPEAKERS
from moot.config.memory_config import NO_SUMMARY, MemoryConfig
from moot.prompts.truncation import cut_message, entry_tokens, render_entry
from moot.state import entries as entry_types
from moot.state.conversation import StateValues
from moot.state.reducers import ENTRY, entry_id_of
from moot.text.tokens import TokenCounter, message_tokens

LOW_WATER = 0.55
"""Minimum share of the message budget that stays in use when the context window is compacted."""
LARGEST_MESSAGE_SHARE = 0.5
"""Maximum share of the message budget for one message. A longer message is cut in the context window."""
FLOOR_TOKENS = 150
"""Minimum number of tokens for the context window. It applies even if the topic is very long."""

MARGIN = 16
"""Number of tokens that are kept free in the context window. The end of a prompt, called the turn suffix, may
be longer than planned."""


@dataclass(frozen=True)
class WindowLimits:
    """Limits that determine when the context window is compacted and how large it is afterwards."""

    high_messages: int
    """Number of messages in the context window that triggers compaction."""
    low_messages: int
    """Maximum number of messages that stay in the context window after compaction."""
    high_tokens: int
    """Maximum number of tokens in the context window. A larger number triggers compaction."""
    low_tokens: int
    """Minimum number of message tokens that stay in the context window after compaction."""
    message_tokens: int | None = None
    """Maximum number of prompt tokens for each message in the context window. `None` means no maximum."""

    @classmethod
    def of(cls, memory: MemoryConfig, shared_prefix: int | None = None) -> "WindowLimits":
        """Return the context window's limits for the given memory settings.

        `shared_prefix` is the size of rules and topic. Tokens of their section that rules and topic do not
        use go to the window. Tokens that they use in excess are taken from the window.
        """
        budget = memory.budget
        spare = (
            0
            if shared_prefix is None
            else budget.total - budget.summary - budget.messages - shared_prefix - MARGIN
        )
        tokens = max(FLOOR_TOKENS, budget.messages - min(budget.turn_suffix, budget.messages // 4) + spare)
        high = memory.keep_recent + memory.summarize_every
        low_tokens = math.ceil(LOW_WATER * min(budget.messages, tokens))
        # A message across the low-water mark still fits below the high-water mark.
        message_limit = min(int(budget.messages * LARGEST_MESSAGE_SHARE), tokens - low_tokens)
        return cls(high, memory.keep_recent, tokens, low_tokens, message_limit)

    def messages_kept(self, costs: Sequence[float]) -> int:
        """Return how many of the newest messages stay in the context window.

        `costs` are the numbers of tokens shown of each message. All messages are kept if they are within the
        limits. Otherwise the kept messages leave tokens for the messages until the next compaction, but take
        at least `low_tokens`. The newest message is always kept.
        """
        if len(costs) < self.high_messages and sum(costs) <= self.high_tokens:
            return len(costs)
        growth = (self.high_messages - self.low_messages) * sum(costs) // len(costs)
        target, tokens, kept_count = max(self.low_tokens, self.high_tokens - growth), 0.0, 0
        for cost in reversed(costs[-self.low_messages :]):
            total = tokens + cost
            if kept_count and total > target and (tokens >= self.low_tokens or total > self.high_tokens):
                break
            kept_count, tokens = kept_count + 1, total
        return kept_count


@entry_types.memoize_by_identity(4096)  # every turn's prompt shows the messages of the window
def shown_message(
    entry: entry_types.Entry, names: Mapping[str, str], fence: str, limits: WindowLimits, count: TokenCounter
) -> tuple[WireMessage, int]:
    """Return an entry as shown in the context window, and its token count.

    A message that is too long is cut. The cut ends at a sentence or word, so the message may have fewer
    tokens than the limit.
    """
    message, tokens = render_entry(entry, names, fence), entry_tokens(entry, names, fence, count)
    if limits.message_tokens is None or tokens <= limits.message_tokens:
        return message, tokens
    message = cut_message(message, limits.message_tokens, count)
    return message, message_tokens(message, count)


def compact(
    entries: Sequence[entry_types.Entry],
    limits: WindowLimits,
    names: Mapping[str, str],
    fence: str,
    count: TokenCounter,
) -> int | None:
    """Return the `seq` of the last entry that must leave the window, or `None`.

    A tool call and its result stay or leave together, and so do a question and its answer.
    """
    entries = [entry for entry in entries if entry_types.traits_of(entry).in_prompts]
    costs = [shown_message(entry, names, fence, limits, count)[1] for entry in entries]
    kept_count = limits.messages_kept(costs) if costs else 0
    if kept_count == len(entries):
        return None
    positions = {entry["id"]: index for index, entry in enumerate(entries)}
    pairs = [
        (positions[entry["targets"][0]], index)
        for index, entry in enumerate(entries)
        if entry_types.traits_of(entry).pair == "closes"
        and entry["targets"]
        and entry["targets"][0] in positions
    ]

    # The window starts after a pair that would be split. It starts before the pair if the newest message is
    # part of the pair or too few messages would stay.
    start = later_start = len(entries) - kept_count
    while split_indices := [closed for opened, closed in pairs if opened < later_start <= closed]:
        later_start = max(split_indices) + 1
    if later_start < len(entries) and sum(costs[later_start:]) >= limits.low_tokens:
        start = later_start
    while split_indices := [opened for opened, closed in pairs if opened < start <= closed]:
        start = min(split_indices)
    return entries[start]["seq"] - 1 if start else None


def window_start(state: StateValues) -> int:
    """Return the `seq` of the window's first entry, or of the next entry if the window is empty."""
    seqs = entry_types.seqs_of(map(entry_id_of, state["messages"]))
    return next(seqs, len(state["full_transcript"]))


def needs_summary(state: StateValues) -> bool:
    """Return True unless the configuration disables the rolling summary."""
    return bool((state.get("config") or {}).get("memory", {}).get("summarizer") != NO_SUMMARY)


def entries_to_cover(state: StateValues, leaving: int = -1) -> list[entry_types.Entry]:
    """Return the old transcript entries that no summary covers yet.

    The entries have left the context window. Entries up to the `seq` `leaving` are about to leave the window
    and are included. -1 means none.
    """
    if not needs_summary(state):
        return []
    transcript: list[entry_types.Entry] = state["full_transcript"]
    covered_through: int = (state.get("rolling_summary") or {}).get("covers_through_seq", -1)
    return transcript[covered_through + 1 : max(window_start(state), leaving + 1)]


def window_message(entry: entry_types.Entry, *origin: str) -> BaseMessage:
    """Convert an entry to a LangChain message. `origin`, debate and checkpoint, makes its id."""
    fields: entry_types.JsonObject = {
        "content": entry["content"],
        "id": entry.get("message_id") or entry_types.message_id(entry["id"], *origin),
        "name": entry["speaker"],
        "additional_kwargs": {ENTRY: entry["id"]},
    }
    if entry_types.traits_of(entry).by == "person" or entry["speaker"] in INTERJECTION_SPEAKERS:
        return HumanMessage(**fields)
    message = AIMessage(**fields)
    if entry["model"]:
        message.response_metadata = {"model_name": entry["model"]}
    if entry_types.tokens_of(entry["usage"]):
        usage = entry["usage"]
        sent, received = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        message.usage_metadata = UsageMetadata(
            input_tokens=sent, output_tokens=received, total_tokens=sent + received
        )
    return message


class TranscriptWriter:
    """Writer that adds entries with numbers, timestamps and token counts to the transcript."""

    def __init__(
        self, following: int, count: TokenCounter, clock: Callable[[], str], *origin: str, **common: Any
    ) -> None:
        """Create a writer.

        Args:
            following: number of the first entry.
            count: token counter.
            clock: function that returns the current time.
            origin: ids of the debate and the checkpoint, for the ids of the entries' messages.
            common: default values of the entries' fields.
        """
        self.entries: list[entry_types.Entry] = []
        self._following, self._count, self._clock, self._common = following, count, clock, common
        self._origin = origin

    @property
    def seq(self) -> int:
        """Return the sequence number that the next transcript entry will get."""
        return self._following + len(self.entries)

    def write(
        self,
        speaker: str,
        kind: entry_types.EntryKind,
        content: str,
        *,
        message_id: str | None = None,
        **fields: Any,
    ) -> entry_types.Entry:
        """Add an entry and return it. A client's message gives it its `message_id`."""
        stamp = {} if "at" in fields else {"at": self._clock()}
        entry = entry_types.make_entry(
            self.seq, speaker, kind, content, **{**stamp, **self._common, **fields}
        )
        entry["tokens"] = self._count(entry["content"])
        if message_id:
            entry["message_id"] = message_id
        self.entries.append(entry)
        return entry

    def enter(self) -> Generator[Emit, None, Update]:
        """Emit an event for each new entry, and return the state update that stores the entries."""
        for entry in self.entries:
            yield Emit({"event": "entry", "entry": entry})
        if not self.entries:
            return {}
        return {
            "full_transcript": self.entries,
            "user_provided": entry_types.user_provided_in(self.entries),
            "messages": [window_message(entry, *self._origin) for entry in self.entries],
        }

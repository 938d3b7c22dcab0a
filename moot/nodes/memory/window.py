"""The window of recent messages: it grows to a high-water mark, then is compacted in one go to a low one.

Compacting in blocks keeps the prompt's prefix the same between compactions, so that a provider's prefix cache
pays for it; a window that slides by one message a turn never hits that cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from moot.nodes.prompts.rendering import render_entry
from moot.nodes.text.tokens import TokenCounter, message_tokens
from moot.state.config.budgets import MemoryConfig
from moot.state.entries import Entry, kind_of, seq_of

LOW_WATER = 0.5
"""Share of the window's token budget that a compaction leaves."""

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
    def of(cls, memory: MemoryConfig, rules: int | None = None) -> WindowLimits:
        """Return the limits that a configuration sets; the tail's room is kept out of the window's.

        Args:
            memory: the configuration.
            rules: tokens that the debate's rules really take; what they leave of their section flows to the
                window.
        """
        budget = memory.budget
        spare = (
            0 if rules is None else max(0, budget.total - budget.summary - budget.messages - rules - MARGIN)
        )
        tokens = budget.messages - min(budget.tail, budget.messages // 4) + spare
        high = memory.keep_recent + memory.summarize_every
        return cls(high, memory.keep_recent, tokens, int(tokens * LOW_WATER))


def window_message(entry: Entry) -> BaseMessage:
    """Return an entry as the window holds it: same id, `name` = speaker."""
    person = kind_of(entry).by == "person" or entry["speaker"] in {"user", "moderator"}
    kind = HumanMessage if person else AIMessage
    return kind(content=entry["content"], id=entry["id"], name=entry["speaker"])


def first_seq(window: Sequence[BaseMessage], following: int) -> int:
    """Return the `seq` of the window's first entry; `following` for an empty window."""
    seqs = [seq for message in window if (seq := seq_of(message.id or "")) is not None]
    return seqs[0] if seqs else following


def compact(
    entries: Sequence[Entry], limits: WindowLimits, names: Mapping[str, str], count: TokenCounter
) -> int | None:
    """Return the `seq` up to which the window must be forgotten, `None` where it is within its limits.

    The newest message always stays, however long it is.
    """
    costs = [message_tokens(render_entry(entry, names), count) for entry in entries]
    if len(entries) <= limits.high_messages and sum(costs) <= limits.high_tokens:
        return None
    kept_tokens = kept = 0
    for cost in reversed(costs[-limits.low_messages :]):
        if kept and kept_tokens + cost > limits.low_tokens:
            break
        kept, kept_tokens = kept + 1, kept_tokens + cost
    return entries[-kept]["seq"] - 1 if kept < len(entries) else None

"""What a summariser is: a generator like a node's body, which yields model calls and returns a draft."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nodes.memory.recall import Memories
from nodes.memory.tokens import TokenCounter
from nodes.models.calls import ModelCall, Reply
from state.config import DebateConfig
from state.entries import Entry


@dataclass(frozen=True)
class SummaryRequest:
    """What is to be summarised, for whom, and how long it may get."""

    previous: Mapping[str, Any]
    """The summary so far, `{}` for none."""
    entries: Sequence[Entry]
    """What is new, oldest first."""
    max_tokens: int
    topic: str
    config: DebateConfig
    count: TokenCounter
    owner: str = ""
    """Debater whose perspective it is, `""` for the shared one."""
    prompt: str = ""
    """Stands for the built-in prompt's words on what to keep; `""` for those."""
    transcript: Sequence[Entry] = ()
    """The whole transcript, for those that look further than what is new; `()` where there is none."""
    memories: Memories | None = None
    """Where the debate's indexes are kept; `None` for nowhere."""

    def carried(self, key: str) -> list[Any]:
        """Return what a summariser carried on under `key` beside its points; `[]` for nothing."""
        pool = self.previous.get("points") or {}
        found: list[Any] = pool.get(key, []) if isinstance(pool, Mapping) else []
        return found

    @property
    def past(self) -> Sequence[Entry]:
        """Everything that the summary is to cover: what it covered before and what is new."""
        last = self.entries[-1]["seq"] if self.entries else -1
        return [entry for entry in self.transcript[: last + 1] if entry["kind"] != "topic"] or self.entries


@dataclass(frozen=True)
class Draft:
    """What a summariser made."""

    text: str
    points: dict[str, Any] = field(default_factory=dict)
    """The points behind it, as `rule_based.SummaryPoints`."""
    method: str = ""
    model: str = ""
    temperature: float | None = None
    latency_s: float = 0.0


class SummaryFailed(Exception):
    """A summariser gave nothing usable; `rule-based` takes over and the reason is recorded."""


Summarizing = Generator[Sequence[ModelCall], list[Reply], Draft]


class Summarizer(Protocol):
    """Makes one summary out of the old one and what is new."""

    name: str

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Yield batches of calls, are sent their replies, return the draft.

        Raises:
            SummaryFailed: nothing usable came out.
        """
        ...

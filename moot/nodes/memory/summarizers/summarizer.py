"""What a summariser is: a generator like a node's body, which yields model calls and returns a draft.

What the calls took, and who answered them, is added to the draft by whoever drives the generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from moot.nodes.calls import Flow
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, kind_of

JUDGE = "judge"
"""Owns the summary of the final round; no debater has this id."""


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
    """Debater whose perspective it is, `JUDGE`, or `""` for the shared one."""
    prompt: str = ""
    """Stands for the built-in prompt's words on what to keep; `""` for those."""
    transcript: Sequence[Entry] = ()
    """Everything said so far, of a perspective all that belongs to it, for those that look further than what
    is new; `()` where there is none."""

    @property
    def kind(self) -> MemoryKind:
        """What the summary is."""
        named: Mapping[str, MemoryKind] = {"": "rolling summary", JUDGE: "judge's summary"}
        return named.get(self.owner, "perspective")

    @property
    def past(self) -> Sequence[Entry]:
        """Everything that the summary is to cover: what it covered before and what is new."""
        last = self.entries[-1]["seq"] if self.entries else -1
        covered = [entry for entry in self.transcript if entry["seq"] <= last and kind_of(entry).shown]
        return covered or self.entries


@dataclass(frozen=True)
class Draft:
    """What a summariser made."""

    text: str
    points: dict[str, Any] = field(default_factory=dict)
    """The points behind it, as `rule_based.SummaryPoints`, and what else the next version needs; JSON types
    only, `{}` for none."""
    method: str = ""
    model: str = ""
    provider: str = ""
    temperature: float | None = None
    latency_s: float = 0.0
    tokens_used: int = 0
    """Tokens of the model calls, prompts and answers, with those whose answers were of no use."""


class SummaryFailed(Exception):
    """A summariser gave nothing usable; `rule-based` takes over and the reason is recorded."""


Summarizing = Flow[Draft]


class Summarizer(Protocol):
    """Makes one summary out of the old one and what is new."""

    name: str

    def summarize(self, request: SummaryRequest) -> Summarizing:
        """Yield batches of calls, are sent their replies, return the draft.

        Raises:
            SummaryFailed: nothing usable came out.
        """
        ...

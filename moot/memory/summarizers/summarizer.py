"""Interface of summarizers, which yield model calls and return a draft of a summary.

The caller adds tokens, latency and model of the calls to the draft.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from moot.calls.model_calls import CallGenerator
from moot.config import DebateConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import Entry, traits_of
from moot.text.tokens import TokenCounter

JUDGE = "judge"
"""Owner id of summaries that belong to the judge instead of a debater. The judge's summary covers the
final round. No debater can have this id."""


@dataclass(frozen=True)
class SummaryRequest:
    """Input of a summarizer, including messages, limits and settings."""

    previous: Mapping[str, Any]
    """Previous version of the summary, or `{}` for the first version."""
    entries: Sequence[Entry]
    """New messages to summarize, oldest first."""
    max_tokens: int
    topic: str
    config: DebateConfig
    count: TokenCounter
    owner: str = ""
    """Id of the debater that owns the summary, `JUDGE` for the judge, or `""` for a shared summary."""
    prompt: str = ""
    """User's instruction about what the summary should contain. Empty for the built-in instruction."""
    transcript: Sequence[Entry] = ()
    """All messages that may be summarized, for summarizers that read more than the new ones."""
    shown: frozenset[str] = frozenset()
    """Ids of messages that every prompt shows whole. A summary need not quote them."""

    @property
    def kind(self) -> MemoryKind:
        """Return the kind of this summary, such as `rolling summary`."""
        kinds: Mapping[str, MemoryKind] = {"": "rolling summary", JUDGE: "judge's summary"}
        return kinds.get(self.owner, "perspective")

    @property
    def past(self) -> Sequence[Entry]:
        """Return all messages that the summary covers, both new and already summarized."""
        return [*self.iterate_past()]

    def iterate_past(self) -> Iterator[Entry]:
        """Yield the messages in `past` one by one, so that callers can stop early."""
        last_seq = self.entries[-1]["seq"] if self.entries else -1
        entries = (entry for entry in self.transcript if entry["seq"] <= last_seq)
        prompt_entries = (entry for entry in entries if traits_of(entry).in_prompts)
        first = next(prompt_entries, None)
        yield from self.entries if first is None else chain([first], prompt_entries)


@dataclass(frozen=True)
class Draft:
    """Draft of a summary that a summarizer returns."""

    text: str
    points: dict[str, Any] = field(default_factory=dict)
    """Data for the next version of the summary, such as the points of this one. The points have the form of
    `rule_based.SummaryPoints`. JSON types only."""
    method: str = ""
    model: str = ""
    provider: str = ""
    temperature: float | None = None
    latency_s: float = 0.0
    tokens_used: int = 0
    """Total tokens of all model calls for this summary, including unusable replies."""
    failure: str = ""
    """Error because of which parts of this summary are missing or written by rule."""


class SummaryFailed(Exception):
    """Error raised if a summarizer produces no usable result.

    `rule-based` replaces it, and the reason is recorded. `points` is data to keep for the next version.
    """

    def __init__(self, reason: str = "", points: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.points: dict[str, Any] = json.loads(json.dumps(dict(points or {}), allow_nan=False))


SummaryGenerator = CallGenerator[Draft]


class Summarizer:
    """Base class of summarizers that update a summary with new messages."""

    name: str
    """Name by which the setting `memory.summarizer` selects this summarizer."""
    asks_model: bool = True
    """True if `summarize` calls a model. If not, the summary is free and is also made in advance."""

    def summarize(self, request: SummaryRequest) -> SummaryGenerator:
        """Yield batches of model calls, receive replies, and return a draft or raise `SummaryFailed`."""
        raise NotImplementedError

"""What a node asks of a model and what it gets back, as data.

A node never touches a client: it yields `ModelCall`s and is sent `Reply`s, so the driver can run a batch at
the same time, serve it from the journal after a crash, or replay it without a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, NotRequired, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict

from moot.state.config import OFFLINE
from moot.state.conversation import LeftOut, MemoryKind, ViewRecord
from moot.state.entries import EntryUsage, JsonObject
from moot.state.errors import ModelError

Purpose = Literal[
    "turn", "summary", "perspective", "extract", "reflect", "moderate", "judge", "ask", "evaluate", "clarify"
]


class WireMessage(TypedDict):
    """One message of a prompt in OpenAI's chat form."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: NotRequired[str]
    """Slug of who speaks; providers refuse spaces."""
    tool_calls: NotRequired[list[JsonObject]]
    """On an assistant message: `{id, type: "function", function: {name, arguments}}` each."""
    tool_call_id: NotRequired[str]
    """On a tool message: the call that it answers."""


@dataclass(frozen=True)
class View:
    """An assembled prompt and its account."""

    messages: tuple[WireMessage, ...]
    total_tokens: int
    """Exact size by OpenAI's chat formula."""
    budget: int
    sections: Mapping[str, int] = field(default_factory=dict)
    """Tokens by section; they add up to the total less the reply's priming."""
    shown: tuple[str, ...] = ()
    """Ids of the entries shown, in order."""
    left_out: tuple[LeftOut, ...] = ()
    retrieved: tuple[str, ...] = ()
    """Ids of what was brought back, in order."""
    layout: tuple[str, ...] = ()
    """Section of each message, in order."""
    memory: Mapping[MemoryKind, int] = field(default_factory=dict)
    """Tokens of each kind of memory in it, about."""

    def record(self) -> ViewRecord:
        """Return what a receipt says of it."""
        return {
            "budget": self.budget,
            "total_tokens": self.total_tokens,
            "sections": {**self.sections},
            "message_ids": [self.shown[0], self.shown[-1]] if self.shown else [],
            "left_out": [*self.left_out],
            "memory": {**self.memory},
        }


@dataclass(frozen=True)
class SpeakAs:
    """Whose speech a reply is: it is streamed under this id and name."""

    entry_id: str
    speaker: str


class Utterance(TypedDict):
    """What somebody said, as a prompt shows it."""

    id: str
    """Of the entry."""
    who: str
    """Display name."""
    text: str


class Hints(TypedDict, total=False):
    """What a prompt says, as data: for the offline model, never sent to a provider."""

    purpose: Purpose
    phase: str
    """Of the protocol; the purpose where no protocol asks."""
    round: int
    speaker: str
    """Display name of who is to speak."""
    stance: str
    topic: str
    targets: Sequence[str]
    """Display names of whom the speaker is to answer."""
    said: Sequence[Utterance]
    """The last things said that the prompt shows, oldest first."""
    debaters: Sequence[str]
    """Who takes part, as a structured answer is to name them."""
    criteria: Sequence[str]
    """Ids of what is to be scored."""
    message_ids: Sequence[str]
    """Ids that may be cited."""
    fields: Mapping[str, object]
    """What a structured answer holds that needs no judgement, by name: of an object a part, of a list its
    items or their number."""


@dataclass(frozen=True)
class ModelCall:
    """One request to a model; everything that decides the reply is in it."""

    purpose: Purpose
    model: str
    """Name as the provider knows it, or `offline`."""
    messages: tuple[WireMessage, ...]
    max_tokens: int
    """Tokens reserved for the answer."""
    temperature: float | None = None
    """`None` leaves it to the provider."""
    seed: int | None = None
    fallbacks: tuple[str, ...] = ()
    """Models tried in order once `model` has failed for good."""
    schema: type[BaseModel] | None = None
    """Pydantic model of a structured answer; `None` for text."""
    tools: tuple[JsonObject, ...] = ()
    """Tools offered, in OpenAI's function form."""
    prompt_tokens: int = 0
    """Exact size of `messages`, as the view counted it; 0 where it is not known."""
    speak_as: SpeakAs | None = None
    """Set for a floor: its tokens are streamed. Every other call is silent."""
    floor: int = 0
    """Index of the floor within the step, so that equal requests of one batch stay apart."""
    shortened: int = 0
    """Tokens less than its budget that the view takes: the model refused a longer one."""
    hints: Hints = field(default_factory=Hints)
    view: View | None = field(default=None, repr=False)
    """Account of the view that was put in, for the receipt."""
    makes: MemoryKind | Literal[""] = ""
    """Kind of memory that the answer becomes."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the request: model, messages and everything else that decides the reply."""
        request = {
            "purpose": self.purpose,
            "model": self.model,
            "fallbacks": self.fallbacks,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "schema": self.schema.model_json_schema() if self.schema else None,
            "tools": self.tools,
        }
        return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """What came back for one call."""

    text: str = ""
    """The answer without its reasoning parts."""
    data: JsonObject | None = None
    """The structured answer, validated against the call's schema and dumped to JSON types."""
    tool_calls: tuple[JsonObject, ...] = ()
    """Tools the model wants called: `{id, name, args}` each."""
    model: str = ""
    """The model that answered: the call's own or a fallback."""
    provider: str = ""
    usage: EntryUsage = field(default_factory=EntryUsage)
    """Tokens of all attempts that were billed."""
    finish_reason: str = "stop"
    """`length` where the answer is cut even after a second try with more room."""
    reasoning: str = ""
    """What the model thought aloud; kept in the journal, never in the transcript."""
    latency_s: float = 0.0
    attempts: int = 1
    error: str = ""
    """Why there is no answer: the call failed for good, after retries and fallbacks."""
    status: int | None = None
    """HTTP status of the last failure."""
    retryable: bool = False
    """Whether the same call may succeed later."""
    refused: bool = False
    """The model, or its provider's filter, would not say anything to this."""
    excess: int = 0
    """Tokens by which a request with its whole view was too long; 0 where that is not why it failed."""

    @property
    def is_final(self) -> bool:
        """Whether the same call would be answered alike, so that the journal keeps this reply."""
        return self.ok or self.refused or bool(self.excess)

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return not self.error

    @property
    def placeholder(self) -> bool:
        """Whether the offline model answered: what it says is no judgement."""
        return self.provider == OFFLINE

    def require(self) -> Reply:
        """Return this reply.

        Raises:
            ModelError: there is no answer.
        """
        if self.error:
            raise ModelError(self.error, status=self.status, retryable=self.retryable)
        return self

    def to_json(self) -> JsonObject:
        """Return the reply as JSON types, for the journal."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        """Rebuild a reply that `to_json` made."""
        return cls(**{**data, "tool_calls": tuple(data.get("tool_calls", ()))})


T = TypeVar("T")
Flow = Generator[Sequence[ModelCall], list[Reply], T]
"""Yields batches of calls, is sent their replies, and returns what came of them."""


def side_by_side(flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Yield the next batches of all flows as one batch, until every flow has returned.

    Returns:
        The flows' results, in their order. What is asked at the same time is decided by the flows alone, so
        a run that is repeated with the same replies asks the same again.
    """
    results: dict[int, T] = {}
    replies: dict[int, list[Reply] | None] = dict.fromkeys(range(len(flows)))
    while True:
        asked: dict[int, Sequence[ModelCall]] = {}
        for index, given in replies.items():
            try:
                asked[index] = next(flows[index]) if given is None else flows[index].send(given)
            except StopIteration as end:
                results[index] = end.value
        if not asked:
            return [results[index] for index in range(len(flows))]
        answers = iter((yield [call for batch in asked.values() for call in batch]))
        replies = {index: [next(answers) for _ in batch] for index, batch in asked.items()}

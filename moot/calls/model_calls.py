"""Model calls and replies as data: what is sent to a model, and what comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from moot.config import OFFLINE
from moot.state.entries import EntryUsage, JsonObject, ModelFacts, memoize_by_identity
from moot.state.errors import ModelError

if TYPE_CHECKING:
    from moot.state import conversation

Purpose = Literal[
    "turn",
    "summary",
    "perspective",
    "extract",
    "reflect",
    "moderate",
    "decide",
    "judge",
    "ask",
    "evaluate",
    "clarify",
]


class WireMessage(TypedDict):
    """Chat message in OpenAI's format."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: NotRequired[str]
    """Author's name as a slug. Providers reject names that contain spaces."""
    tool_calls: NotRequired[list[JsonObject]]
    """Tool calls requested by an assistant message. Each has the form `{id, type: "function", function:
    {name, arguments}}`."""
    tool_call_id: NotRequired[str]
    """Id of the tool call whose result this message contains."""


@dataclass(frozen=True)
class Prompt:
    """Prompt for a model, with a record of the prompt's contents."""

    messages: tuple[WireMessage, ...]
    total_tokens: int
    """Exact number of tokens in the prompt. It is computed by OpenAI's formula for chat messages."""
    budget: int
    sections: Mapping[str, int] = field(default_factory=dict)
    """Token count of each prompt section, keyed by section name. The sum is `total_tokens` without
    `REPLY_PRIMING`."""
    shown_ids: tuple[str, ...] = ()
    """Ids of the transcript entries in the prompt, in order."""
    omitted: tuple[conversation.Omission, ...] = ()
    retrieved: tuple[str, ...] = ()
    """Ids of the transcript entries that retrieval added to the prompt, in order."""
    cites: tuple[str, ...] = ()
    """Ids of the transcript entries that summaries in the prompt cite."""
    layout: tuple[str, ...] = ()
    """Section name of each message in the prompt, in the order of the messages."""
    memory: Mapping[conversation.MemoryKind, int] = field(default_factory=dict)
    """Approximate number of prompt tokens for each kind of memory, such as the rolling summary."""

    @property
    def citable(self) -> tuple[str, ...]:
        """Ids that a reply may cite: the entries in the prompt, then those that its summaries cite."""
        return tuple(dict.fromkeys([*self.shown_ids, *self.cites]))

    def to_receipt(self) -> conversation.PromptRecord:
        """Return a record of this prompt to store with the model call."""
        return {
            "budget": self.budget,
            "total_tokens": self.total_tokens,
            "sections": {**self.sections},
            "message_ids": [self.shown_ids[0], self.shown_ids[-1]] if self.shown_ids else [],
            "omitted": [*self.omitted],
            "memory": {**self.memory},
        }


@dataclass(frozen=True)
class StreamAs:
    """Speaker and ids of a streamed reply."""

    entry_id: str
    """Id of the transcript entry that will store the reply."""
    speaker: str
    message_id: str = ""
    """Id of the streamed message, which is also its id in the debate's state. Default: `entry_id`."""


class Hints(TypedDict, total=False):
    """Information that helps the offline model or a local model reply. Providers never receive it."""

    purpose: Purpose
    phase: str
    """Phase of the protocol in which the call is made. A call outside all phases has its purpose here."""
    round: int
    speaker: str
    """Display name of the debater or judge who speaks."""
    role: str
    """Role of the debater who speaks, or `""`."""
    targets: Sequence[str]
    """Display names of the debaters to whom the speaker should reply."""
    debaters: Sequence[str]
    """Names of debaters that the model may use in a structured reply."""
    message_ids: Sequence[str]
    """Ids of messages that the reply may cite."""


@dataclass(frozen=True)
class ModelCall:
    """Request to a model, including all values that influence the reply."""

    purpose: Purpose
    model: str
    """The provider's name for the model, or `offline` for the offline model."""
    messages: tuple[WireMessage, ...]
    max_tokens: int
    """Maximum number of tokens in the reply. The budget reserves this number."""
    temperature: float | None = None
    """Sampling temperature. `None`: the provider's default."""
    seed: int | None = None
    fallbacks: tuple[str, ...] = ()
    """Names of the models to try, in order, if `model` fails."""
    schema: type[BaseModel] | None = None
    """Pydantic model of a structured reply, or `None` for plain text."""
    tools: tuple[JsonObject, ...] = ()
    """Definitions of the tools that the model may call, in the format of OpenAI's API."""
    prompt_tokens: int = 0
    """Exact number of tokens in `messages`, or 0 if it is unknown."""
    stream_as: StreamAs | None = None
    """Speaker and ids of the streamed reply, or `None` if the reply is not streamed. Only replies in turns
    are streamed."""
    call_index: int = 0
    """Index of the turn within its step. It distinguishes requests that are otherwise identical."""
    shortened_by: int = 0
    """Number of tokens by which the prompt was shortened after the model rejected it as too long."""
    hints: Hints = field(default_factory=Hints)
    prompt: Prompt | None = field(default=None, repr=False)
    """Prompt that contains `messages` and a record of its contents."""
    memory_kind: conversation.MemoryKind | Literal[""] = ""
    """Kind of memory that the reply creates, or `""` if it creates none."""

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 hash of all values that influence the reply, as JSON with sorted keys."""
        fields_before = {"fallbacks": self.fallbacks, "max_tokens": self.max_tokens}
        fields_after = {
            "model": self.model,
            "purpose": self.purpose,
            "schema": self.schema.model_json_schema() if self.schema else None,
            "seed": self.seed,
            "temperature": self.temperature,
            "tools": self.tools,
        }
        messages = ", ".join(map(_message_json, self.messages))
        text = f'{_to_json(fields_before)[:-1]}, "messages": [{messages}], {_to_json(fields_after)[1:]}'
        return hashlib.sha256(text.encode()).hexdigest()


_to_json = json.JSONEncoder(sort_keys=True, default=str).encode


@memoize_by_identity(512)  # many calls send the same messages
def _message_json(message: WireMessage) -> str:
    return _to_json(message)


MAX_SHORTENINGS = 3
"""Maximum number of times that a prompt is shortened after a server refused it as too long. A server that
states no numbers gets half of the prompt each time, so an eighth in the end."""

INCOMPLETE = "incomplete"
"""Finish reason that marks a reply as cut off. Either the stream ended early, or the reply was too long."""

REPEATED = "repetition"
"""Finish reason of a reply that ended in a loop. Its text ends before the first repetition."""


@dataclass(frozen=True)
class Reply:
    """A model's reply to one call, or the reason why the call failed."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    text: str = ""
    """Text of the reply without the model's reasoning."""
    data: JsonObject | None = None
    """Structured reply as JSON data, validated against the schema."""
    tool_calls: tuple[JsonObject, ...] = ()
    """Tool calls that the model requested, each with `id`, `name` and `args`."""
    model: str = ""
    """Name of the model that replied. It may be one of the fallback models."""
    provider: str = ""
    usage: EntryUsage = field(default_factory=EntryUsage)
    """Token usage of all attempts for which the provider charged."""
    finish_reason: str = "stop"
    """Reason why the model stopped generating text. `length` means that the reply is cut off even after a
    retry with more tokens."""
    reasoning: str = ""
    """Reasoning that the model returned in addition to its reply. The journal stores the reasoning, but the
    transcript does not."""
    latency_s: float = 0.0
    first_chunk_s: float | None = None
    """Seconds until the first chunk of the reply arrived. They are counted from the last attempt's request.
    `None`: not streamed."""
    attempts: int = 1
    error: str = ""
    """Reason why the call failed, or `""` if the call succeeded."""
    status: int | None = None
    """HTTP status code of the last failed attempt, or `None` if no status code is available."""
    retryable: bool = False
    """True if the same call may succeed later."""
    refused: bool = False
    """True if the model refused to reply or the provider's content filter blocked the reply."""
    misfit_template: bool = False
    """True if tokens of a chat template were cut from the end of the text. The server's template does not fit
    the model."""
    excess: int = 0
    """Number of tokens by which the request exceeded the model's limit. 0: the request was short enough."""
    facts: dict[str, ModelFacts] = field(default_factory=dict)
    """What the call has shown about the models that it asked, keyed by model name."""

    @property
    def is_final(self) -> bool:
        """Return True if repeating the call would give the same result, so that it can be stored."""
        return self.ok or self.refused or bool(self.excess)

    @property
    def ok(self) -> bool:
        """Return True if the call returned a reply without an error."""
        return not self.error

    @property
    def placeholder(self) -> bool:
        """Return True if this reply is a placeholder written by the offline model."""
        return self.provider == OFFLINE

    def require(self) -> Reply:
        """Return this reply. A failed call raises `ModelError`."""
        if self.error:
            raise ModelError(self.error, status=self.status, retryable=self.retryable)
        return self

    def to_json(self) -> JsonObject:
        """Convert the reply to JSON types so that it can be stored."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        """Create a reply from the data of `to_json`. Other data is a `ValueError`."""
        try:
            return _REPLY.validate_python(data)
        except ValidationError:
            raise ValueError("not a model's reply") from None


_REPLY = TypeAdapter(Reply)
T = TypeVar("T")
CallGenerator = Generator[Sequence[ModelCall], list[Reply], T]
"""Generator that yields batches of model calls and receives the replies."""


def gather_calls(flows: Sequence[CallGenerator[T]]) -> CallGenerator[list[T]]:
    """Run several generators concurrently, and combine their model calls in batches.

    Returns:
        Results of the generators, in order. Only the generators decide which calls are made together, so a
        repeated run with the same replies makes the same calls.
    """
    results: dict[int, T] = {}
    replies: dict[int, list[Reply] | None] = dict.fromkeys(range(len(flows)))
    while True:
        batches: dict[int, Sequence[ModelCall]] = {}
        for index, batch_replies in replies.items():
            try:
                batches[index] = (
                    next(flows[index]) if batch_replies is None else flows[index].send(batch_replies)
                )
            except StopIteration as end:
                results[index] = end.value
        if not batches:
            return [results[index] for index in range(len(flows))]
        answers = iter((yield [call for batch in batches.values() for call in batch]))
        replies = {index: [next(answers) for _ in batch] for index, batch in batches.items()}

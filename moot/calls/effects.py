"""Effects that a node can request, model calls and replies as data, and asyncio helpers.

A node body is a generator that yields effects: model calls, a question to a person, local work, the store.
`moot.runtime` handles them and sends back the results. The helpers shield a task, stop it, or run blocking
work inline or on a worker thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Literal, NotRequired, ParamSpec, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from moot.config import OFFLINE
from moot.state.entries import EntryUsage, JsonObject, ModelFacts, memoize_by_identity
from moot.state.errors import InputError, ModelError

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
        """Ids of the transcript entries that a reply may cite.

        The entries in the prompt come first, then the entries that summaries in the prompt cite.
        """
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
    """Information that helps the offline model or a local model produce a suitable reply.

    Providers never receive it.
    """

    purpose: Purpose
    phase: str
    """Current stage of the debate protocol. For a call that belongs to no stage, the purpose of the
    call."""
    round: int
    speaker: str
    """Display name of the debater or judge who speaks."""
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
    """Tools that the model may call, in OpenAI's function format."""
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
        """Return a SHA-256 hash of all values that influence the reply.

        The hashed text is one JSON object with its keys in alphabetical order.
        """
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
states no
numbers gets half of the prompt each time, so an eighth in the end."""

INCOMPLETE = "incomplete"
"""Finish reason that marks a reply as cut off. Either the stream ended early, or the reply was too long."""


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
    excess: int = 0
    """Number of tokens by which the request exceeded the model's limit. 0: the request was short enough."""
    facts: dict[str, ModelFacts] = field(default_factory=dict)
    """What the call has shown about the models that it asked, keyed by model name."""

    @property
    def is_final(self) -> bool:
        """Return True if repeating the call would give the same result.

        Such a reply can be stored.
        """
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
        """Return this reply.

        Raises:
            ModelError: The call failed.
        """
        if self.error:
            raise ModelError(self.error, status=self.status, retryable=self.retryable)
        return self

    def to_json(self) -> JsonObject:
        """Convert the reply to JSON types so that it can be stored."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        """Create a reply from JSON data that `to_json` returned.

        Raises:
            ValueError: The data describes no reply.
        """
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


Update = JsonObject

PAUSE = {"kind": "pause"}
"""Payload of an interrupt that only pauses the run."""


def is_pause(payload: object) -> bool:
    """Return True if an interrupt only pauses the run.

    Such an interrupt asks no question. `payload` is the interrupt's payload.
    """
    return isinstance(payload, Mapping) and payload.get("kind") == PAUSE["kind"]


@dataclass(frozen=True)
class Ask:
    """Request to interrupt the run and ask a person a question.

    When the run resumes, the node receives the person's reply.
    """

    payload: JsonObject


@dataclass(frozen=True)
class Emit:
    """Request to send a progress report to LangGraph's `custom` stream."""

    event: JsonObject


@dataclass(frozen=True)
class LocalJob:
    """Job that Moot runs itself, such as a tool call.

    It calls no model. The result is a text.
    """

    key: str
    """Text containing all parameters that affect the job's result."""
    run: Callable[[], str]
    """Function that performs the job on a worker thread. It may block."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 hash of `key`.

        The job's result is stored under this hash.
        """
        return hashlib.sha256(self.key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class LocalWork:
    """Request to run several local functions at the same time.

    The journal stores the jobs' results, and the node receives them.
    """

    jobs: Sequence[LocalJob]


@dataclass(frozen=True)
class ReadInbox:
    """Request to read the messages that people sent to the debate.

    The node receives the result as `InboxContents`.
    """

    after: int
    """Sequence number of the last inbox row that the debate has read."""


@dataclass(frozen=True)
class PutInStore:
    """Request to write a value to LangGraph's store, where other debates can read it.

    Without a store, nothing is written.
    """

    namespace: tuple[str, ...]
    key: str
    value: JsonObject


@dataclass(frozen=True)
class SearchStore:
    """Request to search a namespace of LangGraph's store.

    The node receives the values, latest first, or `[]` if there is no store.
    """

    namespace: tuple[str, ...]
    limit: int = 100


@dataclass(frozen=True)
class InboxContents:
    """Messages and pause requests that people sent to a running debate."""

    messages: Sequence[conversation.InboxMessage] = ()
    pause: bool = False
    """True if a person has asked to pause the debate."""
    failed: Sequence[conversation.FailedRun] = ()
    """Failed runs of the debate's graph nodes, each with its error and usage."""
    question_usage: Mapping[str, float] = field(default_factory=dict)
    """Usage of the models that answered people's questions about the debate since the last step."""
    last_number: int = 0
    """Sequence number of the last new inbox row, or 0 if there are no new rows."""


Effect = Sequence[ModelCall] | Ask | Emit | LocalWork | ReadInbox | PutInStore | SearchStore
NodeBody = Generator[Effect, Any, Update]
BackgroundTask = Generator[Sequence[ModelCall] | LocalWork, Any, T]
"""Generator that requests model calls or local jobs, and returns a value. It receives the results of the
requests. It can also run outside a LangGraph graph."""


def errors_update(state: conversation.StateValues, node: str, failures: Iterable[str]) -> Update:
    """Return a state update that records the errors from which a node recovered."""
    from moot.state.conversation import step_number  # imports LangChain, which commands need not load

    errors = [{"step": step_number(state), "node": node, "error": failure} for failure in failures if failure]
    return {"errors": errors} if errors else {}


def run_body_with(body: NodeBody, outcomes: Callable[[Effect], Any]) -> Update:
    """Run a graph node's body in a test, with prepared results.

    `outcomes` maps each effect to the result that is sent back.
    """
    outcome: Any = None
    try:
        while True:
            outcome = outcomes(body.send(outcome))
    except StopIteration as end:
        return dict(end.value or {})


P = ParamSpec("P")


@dataclass
class Stop:
    """Counter of requests to stop this process, such as Ctrl-C.

    The first request lets calls finish, and the second cancels them.
    """

    times: int = 0


stop = Stop()
GRACE_S = 30.0
"""Number of seconds that running calls get to finish after a stop request."""
STOP_POLL_S = 0.2
"""Number of seconds between two checks for a stop request."""


def require_asyncio(what: str) -> None:
    """Raise an error if no asyncio event loop is running.

    Raises:
        InputError: The event loop is another one, or none.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise InputError(
            f"{what} needs an asyncio event loop: under trio, call its synchronous version in a worker "
            "thread with `trio.to_thread.run_sync`"
        ) from None


async def sleep_until_stop(seconds: float) -> None:
    """Sleep for `seconds`, or until a person asks the process to stop.

    Raises:
        asyncio.CancelledError: A person asked to stop.
    """
    deadline = time.monotonic() + seconds
    while (seconds_left := deadline - time.monotonic()) > 0:
        if stop.times:
            raise asyncio.CancelledError
        await asyncio.sleep(min(seconds_left, STOP_POLL_S))


async def drain(call: Coroutine[object, None, T]) -> T:
    """Await a call, and let it finish even if a person asks the process to stop.

    The provider charges for a running call in any case. A call that finishes while it is cancelled returns
    its reply, so that the caller can store the reply.
    """
    task, deadline = asyncio.ensure_future(call), math.inf
    while not task.done():
        try:
            await asyncio.wait([task], timeout=None if deadline == math.inf else 0.05)
        except asyncio.CancelledError:
            deadline = min(deadline, time.monotonic() + (GRACE_S if stop.times == 1 else 0))
        if time.monotonic() >= deadline or (stop.times > 1 and deadline < math.inf):
            task.cancel()
            while not task.done():  # LangGraph cancels a node twice
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
    return task.result()


async def shield(work: Awaitable[T]) -> T:
    """Wait until `work` has finished, even if the caller is cancelled in the meantime.

    The cancellation is raised afterwards. LangGraph cancels a node twice, once for its step and once for its
    run.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # retrieve the exception, because the cancellation is raised instead
        raise cancelled
    return task.result()


async def cancel_all(tasks: Collection[asyncio.Task[object]]) -> None:
    """Cancel the tasks and wait until all of them have finished."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def shielded(work: Callable[P, Coroutine[object, None, T]]) -> Callable[P, Coroutine[object, None, T]]:
    """Decorate a coroutine function so that cancelling the caller does not interrupt it."""

    @wraps(work)
    async def await_call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await shield(work(*args, **kwargs))

    return await_call


async def to_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread.

    Raises:
        RuntimeError: The function raised `StopIteration`, which a future cannot hold. Its caller would wait
            for ever.
    """

    def run() -> T:
        try:
            return function(*arguments)
        except StopIteration as error:
            raise RuntimeError(f"{function!r} raised StopIteration") from error

    return await asyncio.to_thread(run)


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function on a worker thread. The function finishes even if its caller is cancelled."""
    return await shield(to_thread(function, *arguments))


class NonBlocking(threading.local):
    """Flag that forbids blocking calls in the current thread.

    The flag is set while a function runs directly on the event loop, which must not wait for locks or the
    disk.
    """

    active = False


class WouldBlock(Exception):
    """Error raised if a function would have to wait."""


non_blocking = NonBlocking()


async def run_inline(function: Callable[..., T], *arguments: object) -> T:
    """Run a function on the event loop, or on a worker thread if it would block.

    The function must be idempotent, because it may be started twice. A small write to SQLite takes 0.1 ms, a
    round trip to a worker thread 0.6 ms. Durable writes always use a worker thread, because syncing takes
    longer. So do all calls in LangGraph's development server, which forbids blocking calls on its event loop.
    """
    if "blockbuster" in sys.modules:  # imported by LangGraph's development server
        return await run_in_thread(function, *arguments)
    non_blocking.active = True
    try:
        return function(*arguments)
    except (WouldBlock, asyncio.InvalidStateError):  # the error of LangGraph's savers
        non_blocking.active = False
        return await run_in_thread(function, *arguments)
    finally:
        non_blocking.active = False

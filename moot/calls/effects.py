"""Effects: what a node may ask Moot to do.

A node body is a generator that yields effects: model calls, a question to a person, local work, the store.
`moot.runtime` handles them and sends back the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from moot.calls.model_calls import ModelCall
from moot.state.entries import JsonObject

if TYPE_CHECKING:
    from moot.state import conversation

T = TypeVar("T")

Update = JsonObject
PAUSE = {"kind": "pause"}
"""Payload of an interrupt that only pauses the run."""


def is_pause(payload: object) -> bool:
    """Return True if an interrupt with this payload only pauses the run and asks no question."""
    return isinstance(payload, Mapping) and payload.get("kind") == PAUSE["kind"]


@dataclass(frozen=True)
class Ask:
    """Request for a person's reply. The run stops, and the node receives the reply when the run resumes."""

    payload: JsonObject


@dataclass(frozen=True)
class Emit:
    """Request to send a progress report to LangGraph's `custom` stream."""

    event: JsonObject


@dataclass(frozen=True)
class LocalJob:
    """Job without a model that Moot runs itself, such as a tool call. The result is a text."""

    key: str
    """Text containing all parameters that affect the job's result."""
    run: Callable[[], str]
    """Function that performs the job on a worker thread. It may block."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 hash of `key`, under which the result is stored."""
        return hashlib.sha256(self.key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class LocalWork:
    """Request to run local functions at the same time. The results are journalled."""

    jobs: Sequence[LocalJob]


@dataclass(frozen=True)
class ReadInbox:
    """Request to read what people sent to the debate, as `InboxContents`."""

    after: int
    """Sequence number of the last inbox row that the debate has read."""


@dataclass(frozen=True)
class PutInStore:
    """Request to write a value to LangGraph's store, if there is one, for other debates."""

    namespace: tuple[str, ...]
    key: str
    value: JsonObject


@dataclass(frozen=True)
class SearchStore:
    """Request for the values in a namespace of LangGraph's store, latest first, `[]` without one."""

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
    """Run a node's body in a test. `outcomes` maps each effect to its result."""
    outcome: Any = None
    try:
        while True:
            outcome = outcomes(body.send(outcome))
    except StopIteration as end:
        return dict(end.value or {})

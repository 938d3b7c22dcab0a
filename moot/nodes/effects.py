"""What a node may ask for beside a model's words, as data: a person's answer, local work, the store.

A node's body is a generator that yields these; `driving/` carries them out and sends back what came of them.
"""

import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from moot.nodes.calls import ModelCall
from moot.state.conversation import StateValues, step_no
from moot.state.entries import JsonObject
from moot.state.failed_runs import FailedRun
from moot.state.floor import Interjection

Update = JsonObject

PAUSE = {"kind": "pause"}
"""What an interrupt holds that only stops the run."""


def is_pause(payload: object) -> bool:
    """Return whether an interrupt asks nothing and only stops the run."""
    return isinstance(payload, Mapping) and payload.get("kind") == PAUSE["kind"]


@dataclass(frozen=True)
class Ask:
    """Ask a person: the run is interrupted with this payload; the answer is sent back on resume."""

    payload: JsonObject


@dataclass(frozen=True)
class Emit:
    """Report progress on the `custom` stream."""

    event: JsonObject


@dataclass(frozen=True)
class Job:
    """Local work whose result is a text, such as a tool's run."""

    asked: str
    """What decides the result."""
    run: Callable[[], str]
    """Does the work; on a worker thread, since it may block."""

    @property
    def digest(self) -> str:
        """SHA-256 of what is asked, by which the journal knows the result."""
        return hashlib.sha256(self.asked.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Work:
    """Do local work, all jobs at the same time; sent back are the results, journalled like replies."""

    jobs: Sequence[Job]


@dataclass(frozen=True)
class Hear:
    """Listen to the floor; sent back is a `Heard`."""

    after: int
    """Number of the last interjection that was taken up."""


@dataclass(frozen=True)
class Remember:
    """Keep something beyond this debate, in LangGraph's store; without one nothing happens."""

    namespace: tuple[str, ...]
    key: str
    value: JsonObject


@dataclass(frozen=True)
class LookUp:
    """Look into LangGraph's store; sent back are the values there, the latest first, `[]` without a store."""

    namespace: tuple[str, ...]
    limit: int = 100


@dataclass(frozen=True)
class Heard:
    """What people want of a running debate."""

    said: Sequence[Interjection] = ()
    pause: bool = False
    """Whether the run is to stop here, once."""
    failed: Sequence[FailedRun] = ()
    """Every run of a node that failed."""


Effect = Sequence[ModelCall] | Ask | Emit | Work | Hear | Remember | LookUp
Body = Generator[Effect, Any, Update]
T = TypeVar("T")
Errand = Generator[Sequence[ModelCall] | Work, Any, T]
"""Yields calls and local work alone, so that it runs outside a graph too, and returns what came of them."""


def errors_update(state: StateValues, node: str, failures: Iterable[str]) -> Update:
    """Return the update that records what failed in a node and was got over, `{}` where nothing did."""
    errors = [{"step": step_no(state), "node": node, "error": failure} for failure in failures if failure]
    return {"errors": errors} if errors else {}


def drive_with(body: Body, outcomes: Callable[[Effect], Any]) -> Update:
    """Drive a body with plain outcomes, for tests: `outcomes` maps each effect to what is sent back."""
    outcome: Any = None
    try:
        while True:
            outcome = outcomes(body.send(outcome))
    except StopIteration as end:
        return dict(end.value or {})

"""Events of a running debate, as `Debate.stream` yields them."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from moot.state.conversation import StepKind
from moot.state.entries import Entry


class TokenEvent(TypedDict):
    """Part of a message that a debater's model is streaming."""

    event: Literal["token"]
    id: str
    """Id of the transcript entry for the streamed message."""
    speaker: str
    """Id of the debater."""
    text: str


class EntryEvent(TypedDict):
    """New entry in the transcript."""

    event: Literal["entry"]
    entry: Entry


class StepEvent(TypedDict):
    """Start of a step of the debate."""

    event: Literal["step"]
    number: int
    kind: StepKind
    phase: str
    round: int
    speakers: list[str]
    """Ids of the debaters who speak in this step."""


class SummaryEvent(TypedDict):
    """New version of a summary, or a failed attempt to write one."""

    event: Literal["summary"]
    owner: str
    """Id of the debater whose perspective is summarised, or `""` for a summary that all debaters share."""
    kind: NotRequired[str]
    version: NotRequired[int]
    """Version number of the new summary. It is missing if there is no new version."""
    method: NotRequired[str]
    failure: NotRequired[str]
    """Error message of the configured summarizer if it failed."""


class CruxEvent(TypedDict):
    """New crux card (the record of a side discussion between two debaters who disagree)."""

    event: Literal["crux"]
    card: str
    """Id of the crux card (the record of a side discussion)."""
    resolved: bool


class VerdictEvent(TypedDict):
    """Verdict of the judges."""

    event: Literal["verdict"]
    status: Literal["ok", "failed"]
    winner: str


class RetryEvent(TypedDict):
    """Failed model call that will be retried after a wait."""

    event: Literal["retry"]
    model: str
    why: str
    words: str
    """Sentence that describes the failure and says what happens next."""
    wait_s: float


class StoreFailedEvent(TypedDict):
    """Failed access to the store that holds memory across debates. The debate continues without it."""

    event: Literal["store_failed"]
    error: str


class EndEvent(TypedDict):
    """End of the debate."""

    event: Literal["end"]
    status: Literal["done", "limit"]
    reason: str


Event = (
    TokenEvent
    | EntryEvent
    | StepEvent
    | SummaryEvent
    | CruxEvent
    | VerdictEvent
    | RetryEvent
    | StoreFailedEvent
    | EndEvent
)
"""Union of all events that a running debate emits. The key `event` holds its kind."""

"""Progress events of a running debate."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from moot.state.conversation import StepKind
from moot.state.entries import Entry


class TokenEvent(TypedDict):
    """Event with a part of a message that a debater's model is streaming."""

    event: Literal["token"]
    id: str
    """Id of the transcript entry that will contain the streamed message."""
    speaker: str
    """Id of the debater who writes the streamed message."""
    text: str
    replaces: NotRequired[bool]
    """True if the text replaces all earlier parts of the message, which were the model's reasoning."""


class EntryEvent(TypedDict):
    """Event for a new entry in the transcript."""

    event: Literal["entry"]
    entry: Entry


class StepEvent(TypedDict):
    """Event that marks the start of a debate step."""

    event: Literal["step"]
    number: int
    kind: StepKind
    phase: str
    round: int
    speakers: list[str]
    """Ids of the debaters who speak in this step."""


class SummaryEvent(TypedDict):
    """Event for a new version of a summary, or for a failed attempt to write one."""

    event: Literal["summary"]
    owner: str
    """Id of the debater whose perspective is summarised, or `""` for a summary shared by all debaters."""
    kind: NotRequired[str]
    version: NotRequired[int]
    """Version number of the new summary. It is missing if there is no new version."""
    method: NotRequired[str]
    failure: NotRequired[str]
    """Error message of the configured summarizer if it failed."""


class CruxEvent(TypedDict):
    """Event for a new crux card.

    A crux card is the result of a side discussion between two debaters.
    """

    event: Literal["crux"]
    card: str
    """Id of the crux card that records the side discussion."""
    resolved: bool


class VerdictEvent(TypedDict):
    """Event that reports the verdict of the judges."""

    event: Literal["verdict"]
    status: Literal["ok", "failed"]
    winner: str
    decision: str
    """The decision in one line. `""` if the judges reached none."""


class RetryEvent(TypedDict):
    """Event for a failed model call that will be retried after a wait."""

    event: Literal["retry"]
    model: str
    why: str
    words: str
    """Message to the user about the failure and about what happens next."""
    wait_s: float


class StoreFailedEvent(TypedDict):
    """Event for a failure of the LangGraph store for cross-debate memory. The debate continues without it."""

    event: Literal["store_failed"]
    error: str


class EndEvent(TypedDict):
    """Event that marks the end of the debate."""

    event: Literal["end"]
    status: Literal["done", "limit"]
    reason: str
    answer: str
    """The debate's decision, or the winning answer of a vote. `""` if there is none."""


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

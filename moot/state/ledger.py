"""The ledger: what was said, as notes that are only ever added. Written by `record` and `reflect`.

Nothing here says how things stand: that is computed from the notes (`nodes/blackboard/standing.py`), so that
a later note, or a person's correction, changes it.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

MOTION = "p000"
"""Id of the proposition that the debate is about: its topic."""

OVERALL = "overall"
"""The aspect of a topic that is not split."""

Reader = Literal["rule", "model", "person"]
"""Who took a note: a later one outranks an earlier one of these on the same message."""

EventKind = Literal["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"]
"""What somebody does about a proposition: `concedes` gives it away, `withdraws` no longer holds it."""

GIVES_UP: tuple[EventKind, ...] = ("concedes", "withdraws")
"""What leaves nobody with a stance."""

EvidenceKind = Literal["figure", "source", "case", "experience"]


class Proposition(TypedDict):
    """A neutral statement that could be true or false."""

    note: Literal["proposition"]
    id: str
    """`p003`; `p000` is the motion itself, which no note opens."""
    text: str
    aspect: str
    """Aspect of the topic that it belongs to, `overall` where the topic is not split."""
    seq: int
    """`seq` of the message in which it first came up."""


class Saying(TypedDict):
    """What a stance is, apart from who holds it and where it was said."""

    kind: EventKind
    condition: str
    """What a `conditional` yes, or a no (`denies`), depends on: “if …”; `""` for nothing."""


class Quotation(TypedDict):
    """What every note of somebody's words has."""

    debater: str
    message_id: str
    quote: str
    """The words that show it, verbatim from the message."""
    by: Reader


class Event(Saying, Quotation):
    """What a debater said about a proposition."""

    note: Literal["event"]
    id: str
    proposition: str
    """Its id; `""` where somebody concedes without saying what."""
    ground: bool
    """Whether the debater's stance on the motion was said to rest on it."""
    confidence: float
    """How sure its reader is, 0–1."""


class Challenge(Quotation):
    """One point made against somebody; a message may make several."""

    note: Literal["challenge"]
    id: str
    to: str
    proposition: str
    """Id of what it is about, `""` where that cannot be told."""


class Question(Quotation):
    """A question that waits for an answer."""

    note: Literal["question"]
    id: str
    to: str
    """Debater who is asked, `""` for the whole floor."""


class Answer(Quotation):
    """What answers a challenge or a question."""

    note: Literal["answer"]
    to: str
    """Id of the challenge or question."""


class Evidence(Quotation):
    """A piece of evidence."""

    note: Literal["evidence"]
    id: str
    kind: EvidenceKind
    proposition: str
    """Id of what it is offered for, `""` where that cannot be told."""


class Gap(Quotation):
    """What a debater admits not to know."""

    note: Literal["gap"]
    id: str
    proposition: str


class Sameness(TypedDict):
    """Two propositions are one, or the one is the other's negation."""

    note: Literal["same"]
    one: str
    other: str
    opposite: bool
    by: Reader


class Retraction(TypedDict):
    """A note is taken back."""

    note: Literal["retraction"]
    of: str
    """Id of an event, challenge, question, piece of evidence or gap."""
    why: str
    by: Reader


class Reading(TypedDict):
    """One pass of a reader."""

    note: Literal["reading"]
    through: int
    """`seq` of the last entry that has been read."""
    by: Reader
    dropped: dict[str, int]
    """How many operations were not taken, by the reason."""


class Outlook(TypedDict):
    """A look at the debate from outside: what happened before it counts for no further reflection."""

    note: Literal["outlook"]


Note = Annotated[
    Proposition
    | Event
    | Challenge
    | Question
    | Answer
    | Evidence
    | Gap
    | Sameness
    | Retraction
    | Reading
    | Outlook,
    Field(discriminator="note"),
]
"""One note of the ledger; `note` says what it is."""


ReflectionKind = Literal["pattern", "shift", "convergence", "escalation"]


class Reflection(TypedDict):
    """An insight about the debate itself."""

    id: str
    content: str
    kind: ReflectionKind
    about: list[str]
    """Ids of debaters."""
    message_ids: list[str]
    round: int
    importance: int
    """1–10."""


CruxAnswer = Literal["yes", "no", "nuanced"]
CruxType = Literal["horizon", "evidence", "values", "definition", "claim", "premise"]
"""What a disagreement turns on."""


class CruxSide(TypedDict):
    """One debater's answer to a crux question."""

    answer: CruxAnswer
    reasoning: str
    falsifier: str
    """What would change this answer."""


class CruxCard(TypedDict):
    """What a crux room found."""

    id: str
    question: str
    claim: str
    """Id of the proposition that it came from."""
    sides: dict[str, CruxSide]
    type: CruxType
    diagnosis: str
    resolved: bool
    resolution: str
    message_ids: list[str]
    round: int
    room: NotRequired[str]
    """The room; absent in debates stored by earlier builds."""


Stage = Literal["", "positions", "exchange", "steelman"]


class Room(TypedDict):
    """One crux room: a pair of debaters with one proposition."""

    id: str
    claim: str
    """Id of the proposition that it is about."""
    between: list[str]
    round: int
    """Round in which it opened."""
    stage: Stage
    """Stage that was given last, `""` before the first."""
    cycle: int
    """Exchanges with steelmanning so far, the current one included."""
    cycles: NotRequired[int]
    """Exchanges that there may be; absent in debates stored by earlier builds."""
    second: NotRequired[bool]
    """Whether one of the two has spoken in this stage and the other is next."""
    assessed: int
    """Cycles that `reflect` has looked at."""
    closed: bool
    trigger: list[str]
    """Ids of the messages that led to it."""
    message_ids: list[str]
    """What was said in it."""

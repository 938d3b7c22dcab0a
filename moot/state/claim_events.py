"""Claim events, crux cards, crux rooms and reflections: the records of what debaters claim.

Claim events are append-only. The status of a claim is not stored: `moot.claims` computes it from the events,
so that a later event or a person's correction changes it.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

MAIN_QUESTION = "p000"
"""Claim id reserved for the main question of the debate."""

OVERALL = "overall"
"""Name of the aspect that covers the whole topic. It is used if the topic is not split into aspects."""

Extractor = Literal["model", "person"]
"""Who recorded a claim event, either a model or a person. If both recorded events for the same message, the
person's events are used."""

StanceKind = Literal["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"]
"""Kind of stance that a debater takes on a claim. `concedes` means that the debater accepts the opposite of
the claim, and `withdraws` that the debater no longer asserts it."""

GIVING_UP: tuple[StanceKind, ...] = ("concedes", "withdraws")
"""Stances with which a debater gives up an earlier position on a claim."""

EvidenceKind = Literal["figure", "source", "case", "experience"]

EvidenceSource = Literal["background", "tool", "message", "none"]
"""Origin of a debater's evidence, such as a tool result. `message` is a message from a person, and `none`
means that only the debater vouches for the evidence."""


class Claim(TypedDict):
    """Claim made in the debate, stated neutrally so that it can be true or false."""

    type: Literal["claim"]
    id: str
    """Id of the claim, such as `p003`. `p000` is the main question, which has no claim event."""
    text: str
    aspect: str
    """Part of the topic that the claim belongs to. `overall`: the topic is not split into parts."""
    seq: int
    """Transcript position (`seq`) of the message that first stated this claim."""


class StanceFields(TypedDict):
    """Debater's stance on a claim, with its condition if there is one."""

    kind: StanceKind
    condition: str
    """Condition of a `conditional` stance in the debater's own words, such as “if …”. Empty if the stance has
    no condition."""
    condition_count: NotRequired[int]
    """Number of conditions that were combined into the text of `condition`. Missing if no conditions were
    combined."""
    leans: NotRequired[Literal["yes", "no"]]
    """Side that a conditional stance favours, either `yes` or `no`. `yes` accepts the claim, and `no` rejects
    it. The default is `yes`."""
    option: NotRequired[str]
    """Option that the debater chooses if the main question is not a yes-or-no question. It may be another
    answer in the debater's words."""
    moved_to: NotRequired[str]
    """Id of the changed proposal for which the debater left this one. Computed for display and missing in
    stored events."""
    gave_up: NotRequired[str]
    """Answer option that the debater abandoned by taking this stance. Computed for display and missing in
    stored events."""


class QuotedEvent(TypedDict):
    """Base class of claim events that contain a quotation from a debater's message."""

    debater: str
    message_id: str
    quote: str
    """Text quoted word for word from the message."""
    by: Extractor


class StanceEvent(StanceFields, QuotedEvent):
    """Record of a debater's stance on a claim."""

    type: Literal["event"]
    id: str
    claim: str
    """Id of the claim that the stance is about."""
    ground: bool
    """True if this claim is a reason for the debater's position on the main question."""
    confidence: float
    """How certain the model is that the debater takes this stance, from 0 to 1. The model is the one that
    extracted the stance. Stances that a person recorded have the value 1."""
    condition_id: NotRequired[str]
    """Id of the condition on which a `conditional` stance depends, such as `k002`. Stances with the same
    condition share this id."""
    replaces: NotRequired[str]
    """Id of the debater's earlier condition that this stance replaces."""


class Challenge(QuotedEvent):
    """Record of a debater's challenge to another debater."""

    type: Literal["challenge"]
    id: str
    to: str
    claim: str
    """Id of the challenged claim, or `""` if it is unknown."""


class Question(QuotedEvent):
    """Record of a debater's question to one debater or to all debaters."""

    type: Literal["question"]
    id: str
    to: str
    """Id of the debater asked, or `""` if the question goes to all debaters."""


class Answer(QuotedEvent):
    """Record of a debater's answer to a challenge or a question."""

    type: Literal["answer"]
    to: str
    """Id of the challenge or question that this event answers."""


class Evidence(QuotedEvent):
    """Record of a piece of evidence that a debater gave."""

    type: Literal["evidence"]
    id: str
    kind: EvidenceKind
    claim: str
    """Id of the claim that the evidence supports, or `""` if that claim is unknown."""
    source: NotRequired[EvidenceSource]
    """Origin of the evidence, such as a tool result. Debates stored by older versions lack this field."""


class Gap(QuotedEvent):
    """Record of something that a debater admitted not knowing."""

    type: Literal["gap"]
    id: str
    claim: str


class Reversal(QuotedEvent):
    """Record of a finding that a debater says would change its mind. It is no condition of its position."""

    type: Literal["would_reverse"]
    id: str
    claim: str
    """Id of the claim on which the debater would change its mind, or `""` if that claim is unknown."""


class Amendment(QuotedEvent):
    """Record that a debater accepts a proposal with a change.

    The changed proposal is a claim of its own. Debaters who accept it assert it, and so leave the earlier
    one.
    """

    type: Literal["amends"]
    id: str
    claim: str
    """Id of the claim that states the changed proposal in full."""
    replaces: str
    """Id of the proposal that it changes, such as `p000` for the main question."""


class SameClaim(TypedDict):
    """Record that two claims mean the same or the exact opposite."""

    type: Literal["same"]
    one: str
    other: str
    opposite: bool
    by: Extractor


class Retraction(TypedDict):
    """Record that withdraws an earlier record, such as a stance or a challenge."""

    type: Literal["retraction"]
    of: str
    """Id of the record that is withdrawn. It is a stance event, challenge, question, piece of evidence or
    knowledge gap."""
    why: str
    by: Extractor


class ExtractionPass(TypedDict):
    """Record that claims have been extracted from all messages up to a certain one."""

    type: Literal["extraction_pass"]
    through: int
    """Transcript position (`seq`) of the last entry from which claims were extracted."""
    by: Extractor
    dropped: dict[str, int]
    """Number of items in the extractor's output that Moot rejected, keyed by reason."""


class ReflectionPass(TypedDict):
    """Record that a model has reflected on the debate.

    The next reflection ignores all earlier events.
    """

    type: Literal["reflection_pass"]
    dropped: NotRequired[list[str]]
    """Ids of earlier reflections to drop because later messages contradict them. Prompts no longer show
    them."""


ClaimEvent = Annotated[
    Claim
    | StanceEvent
    | Challenge
    | Question
    | Answer
    | Evidence
    | Gap
    | Reversal
    | Amendment
    | SameClaim
    | Retraction
    | ExtractionPass
    | ReflectionPass,
    Field(discriminator="type"),
]
"""Claim event of any type. The `type` key identifies the type."""


ReflectionKind = Literal["pattern", "shift", "convergence", "escalation"]


class Reflection(TypedDict):
    """Observation about the course of the debate, such as a shift of positions or an escalation."""

    id: str
    content: str
    kind: ReflectionKind
    about: list[str]
    """Ids of the debaters whom the reflection concerns."""
    message_ids: list[str]
    round: int
    importance: int
    """Importance of the reflection, from 1 (low) to 10 (high)."""


CardResult = Literal["yes", "no", "nuanced"]
CruxType = Literal["horizon", "evidence", "values", "definition", "claim", "premise"]
"""Kind of disagreement at the root of a dispute, such as `values` or `definition`. A crux is the question on
which a dispute depends."""


class CruxSide(TypedDict):
    """One debater's answer to the question behind a dispute.

    This question is called the crux of the dispute.
    """

    answer: CardResult
    reasoning: str
    falsifier: str
    """Finding that would make the debater change its answer."""


class CruxCard(TypedDict):
    """Result of a side discussion in which two debaters examine one disputed claim.

    Such a side discussion is called a crux room, and its result a crux card.
    """

    id: str
    question: str
    claim: str
    """Id of the disputed claim that the two debaters discussed."""
    sides: dict[str, CruxSide]
    type: CruxType
    diagnosis: str
    resolved: bool
    resolution: str
    message_ids: list[str]
    round: int
    room: NotRequired[str]
    """Id of the side discussion that produced this crux card. Debates stored by older versions lack this
    field."""


RoomStage = Literal["", "positions", "exchange", "steelman"]


class Room(TypedDict):
    """Side discussion between two debaters about one disputed claim. It is called a crux room."""

    id: str
    claim: str
    """Id of the disputed claim that the two debaters discuss."""
    between: list[str]
    round: int
    """Round of the debate in which this side discussion was opened."""
    stage: RoomStage
    """Current stage of this side discussion, or `""` before its first stage."""
    cycle: int
    """Sequence number of the current exchange in this side discussion. In an exchange, each debater states
    the other's position as strongly as possible."""
    cycles: NotRequired[int]
    """Maximum number of exchanges in this side discussion. Debates stored by older versions lack this
    field."""
    second: NotRequired[bool]
    """True if the second of the two debaters speaks next."""
    assessed: int
    """How often a model has assessed this side discussion. It is assessed after the positions and after every
    exchange."""
    card: NotRequired[CruxCard]
    """Result of the latest assessment of this side discussion. It names the question on which the
    disagreement depends."""
    closed: bool
    trigger: list[str]
    """Ids of the messages that led to this side discussion."""
    message_ids: list[str]
    """Ids of the messages that the two debaters wrote in this side discussion."""

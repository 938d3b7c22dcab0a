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
"""Aspect name for the whole topic, used if the topic is not split into aspects."""

Extractor = Literal["model", "person"]
"""Model or person that recorded a claim event. If both recorded events for the same message, the person's
events are used."""

StanceKind = Literal["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"]
"""Kind of stance that a debater takes on a claim. `concedes` means that the debater accepts the opposite of
the claim, and `withdraws` that the debater no longer asserts it."""

GIVING_UP: tuple[StanceKind, ...] = ("concedes", "withdraws")
"""Stances with which a debater gives up an earlier position on a claim."""

EvidenceKind = Literal["figure", "source", "case", "experience"]

EvidenceSource = Literal["background", "tool", "message", "none"]
"""Source of a piece of evidence. `message` is a message from a person, and `none` means that only the debater
vouches for the evidence."""


class Claim(TypedDict):
    """Claim made in the debate, stated neutrally so that it can be true or false."""

    type: Literal["claim"]
    id: str
    """Id of the claim, such as `p003`. `p000` is the main question, which has no claim event."""
    text: str
    aspect: str
    """Aspect of the topic that the claim belongs to, or `overall` if the topic is not split."""
    seq: int
    """Sequence number (`seq`) of the message that first stated this claim."""


class StanceFields(TypedDict):
    """Debater's stance on a claim, with its condition if there is one."""

    kind: StanceKind
    condition: str
    """Condition of a `conditional` stance in the debater's own words, such as “if …”. Empty if the stance has
    no condition."""
    condition_count: NotRequired[int]
    """Number of separate conditions that the text in `condition` combines. Missing if no
    conditions were combined."""
    leans: NotRequired[Literal["yes", "no"]]
    """Answer towards which a conditional stance leans, either `yes` (accept the claim) or `no` (reject it).
    The default is `yes`."""
    option: NotRequired[str]
    """Option that the debater chooses if the main question is not a yes-or-no question. It may be another
    answer in the debater's words."""
    gave_up: NotRequired[str]
    """Option that the debater gave up with this stance. Computed for display and missing in stored events."""


class QuotedEvent(TypedDict):
    """Base class of all claim events that quote a message."""

    debater: str
    message_id: str
    quote: str
    """Text quoted word for word from the message."""
    by: Extractor


class StanceEvent(StanceFields, QuotedEvent):
    """Claim event that records a debater's stance on a claim."""

    type: Literal["event"]
    id: str
    claim: str
    """Id of the claim that the stance is about."""
    ground: bool
    """True if this claim is a reason for the debater's position on the main question."""
    confidence: float
    """Extractor's confidence, from 0 to 1, that the debater takes this stance."""
    condition_id: NotRequired[str]
    """Id of the condition of a `conditional` stance, such as `k002`. Stances with the same condition share
    this id."""
    replaces: NotRequired[str]
    """Id of the debater's earlier condition that this stance replaces with a new one."""


class Challenge(QuotedEvent):
    """Claim event that records a debater's challenge to another debater."""

    type: Literal["challenge"]
    id: str
    to: str
    claim: str
    """Id of the challenged claim, or `""` if it is unknown."""


class Question(QuotedEvent):
    """Claim event that records a debater's question to one debater or to all debaters."""

    type: Literal["question"]
    id: str
    to: str
    """Id of the debater asked, or `""` if the question goes to all debaters."""


class Answer(QuotedEvent):
    """Claim event that records a debater's answer to a challenge or a question."""

    type: Literal["answer"]
    to: str
    """Id of the challenge or question that this event answers."""


class Evidence(QuotedEvent):
    """Claim event that records a piece of evidence."""

    type: Literal["evidence"]
    id: str
    kind: EvidenceKind
    claim: str
    """Id of the claim that the evidence supports, or `""` if that claim is unknown."""
    source: NotRequired[EvidenceSource]
    """Source of the evidence, such as a tool result. Debates stored by older versions lack this
    field."""


class Gap(QuotedEvent):
    """Claim event that records that a debater admitted not knowing something."""

    type: Literal["gap"]
    id: str
    claim: str


class SameClaim(TypedDict):
    """Claim event that marks two claims as equivalent or contradictory."""

    type: Literal["same"]
    one: str
    other: str
    opposite: bool
    by: Extractor


class Retraction(TypedDict):
    """Claim event that withdraws an earlier claim event."""

    type: Literal["retraction"]
    of: str
    """Id of the withdrawn stance event, challenge, question, piece of evidence or knowledge gap."""
    why: str
    by: Extractor


class ExtractionPass(TypedDict):
    """Claim event that marks the end of one pass of extracting claims from new messages."""

    type: Literal["extraction_pass"]
    through: int
    """`seq` of the last transcript entry from which claims were extracted."""
    by: Extractor
    dropped: dict[str, int]
    """Number of the extractor's claim changes that were rejected, keyed by reason."""


class ReflectionPass(TypedDict):
    """Claim event that marks the point up to which a model has reflected on the debate.

    The next reflection ignores earlier events.
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
"""Type of disagreement behind a crux, such as `values` or `definition`. A crux is the question on which a
dispute depends."""


class CruxSide(TypedDict):
    """One debater's answer to the question in a crux card (the result of a side discussion)."""

    answer: CardResult
    reasoning: str
    falsifier: str
    """Finding that would make the debater change its answer."""


class CruxCard(TypedDict):
    """Result of a crux room (two debaters' side discussion of one disputed claim)."""

    id: str
    question: str
    claim: str
    """Id of the claim that was discussed in the crux room (side discussion)."""
    sides: dict[str, CruxSide]
    type: CruxType
    diagnosis: str
    resolved: bool
    resolution: str
    message_ids: list[str]
    round: int
    room: NotRequired[str]
    """Id of the crux room (side discussion) that produced this crux card. Debates stored by older versions
    lack this field."""


RoomStage = Literal["", "positions", "exchange", "steelman"]


class Room(TypedDict):
    """Crux room: Side discussion between two debaters about one disputed claim."""

    id: str
    claim: str
    """Id of the claim that the two debaters discuss in this crux room (side discussion)."""
    between: list[str]
    round: int
    """Round in which the crux room (side discussion) was opened."""
    stage: RoomStage
    """Current stage of the crux room (side discussion), or `""` before the first stage."""
    cycle: int
    """Sequence number of the current exchange in this crux room (side discussion). In an exchange, each
    debater states the other's position as strongly as possible."""
    cycles: NotRequired[int]
    """Maximum number of exchanges in this crux room (side discussion). Debates stored by older versions
    lack this field."""
    second: NotRequired[bool]
    """True if the second debater speaks next in this stage of the side discussion."""
    assessed: int
    """Number of times that this crux room (side discussion) has been assessed. It is assessed after the
    positions and after every exchange."""
    card: NotRequired[CruxCard]
    """Result of the latest assessment of the side discussion (crux room). It names the question on which the
    disagreement depends."""
    closed: bool
    trigger: list[str]
    """Ids of the messages that triggered the crux room (side discussion)."""
    message_ids: list[str]
    """Ids of the messages that the debaters wrote in the crux room (side discussion)."""

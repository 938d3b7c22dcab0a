"""The blackboard: what the orchestrator has extracted. Written by `record` and `reflect` only."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

ClaimStatus = Literal["active", "in_crux_room", "resolved", "abandoned"]


class AspectPosition(TypedDict):
    """One debater's position on one aspect of the topic."""

    position: str
    evidence: list[str]
    """Evidence offered, newest last, each with its message: what was challenged, what came since."""
    challenged: list[str]
    """Challenges to it that are not answered yet, each with the id of its message."""
    met: NotRequired[list[str]]
    """Challenges to it that were answered, or talked over in a crux room, newest last."""
    message_ids: list[str]
    """Where it was stated."""


Relation = TypedDict(
    "Relation",
    {"with": str, "on": str, "strength": Literal["", "mild", "strong"], "message_id": str},
)
"""An agreement or disagreement with another debater, whose id is `with`; only the latter has a strength."""

Shift = TypedDict("Shift", {"aspect": str, "from": str, "to": str, "round": int, "message_id": str})
"""A position that changed."""


class LedgerRow(TypedDict):
    """Where one debater stands."""

    stance: str
    """Overall, as last stated."""
    aspects: dict[str, AspectPosition]
    agreements: list[Relation]
    disagreements: list[Relation]
    concessions: list[str]
    """What was conceded, with the message's id."""
    shifts: list[Shift]
    superseded: list[Shift]
    """Positions that later ones replaced, oldest first."""
    updated_round: int


class Claim(TypedDict):
    """A specific claim on which two debaters disagree."""

    id: str
    claim: str
    between: list[str]
    """The two debaters' ids: who asserts it, then who denies it."""
    status: ClaimStatus
    round: int
    message_ids: list[str]
    aspect: str
    """Aspect of the topic that it belongs to, `overall` where the topic is not split."""
    confidence: float
    """How sure the extraction is that the two oppose each other on it, 0–1."""
    specific: bool
    """Whether it says something definite enough to be settled."""
    touched: int
    """Round in which it was last contested."""
    room: str
    """Crux room that took it up, `""` before."""
    resolution: str
    card: str
    """Crux card that came of it, `""` before."""


class RoundPosition(TypedDict):
    """What one debater did in one round."""

    position: str
    key_argument: str
    evidence: list[str]
    engaged: list[str]
    """Ids of the debaters it answered."""


class RoundRecord(TypedDict):
    """One round, as recorded."""

    round: int
    phase: str
    positions: dict[str, RoundPosition]
    summary: str
    new_disagreements: list[str]
    """Ids of claims first contested in it."""
    shifts: list[str]


class Reflection(TypedDict):
    """An insight about the debate itself."""

    id: str
    content: str
    kind: Literal["pattern", "shift", "convergence", "escalation"]
    about: list[str]
    """Ids of debaters."""
    message_ids: list[str]
    round: int
    importance: int
    """1–10."""


class CruxSide(TypedDict):
    """One debater's answer to a crux question."""

    answer: Literal["yes", "no", "nuanced"]
    reasoning: str
    falsifier: str
    """What would change this answer."""


class CruxCard(TypedDict):
    """What a crux room found."""

    id: str
    question: str
    claim: str
    """Id of the claim it came from."""
    sides: dict[str, CruxSide]
    type: Literal["horizon", "evidence", "values", "definition", "claim", "premise"]
    diagnosis: str
    resolved: bool
    resolution: str
    message_ids: list[str]
    round: int

"""How far a debate has come: its crux rooms, what was asked and what was checked."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

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


class Clarifications(TypedDict, total=False):
    """How far debaters have asked a person, before the first round."""

    rounds: int
    """Times that they were asked for questions."""
    settled: bool
    """Whether nobody had a question left."""


class ConvergenceCheck(TypedDict):
    """How far a council's proposals agreed at the end of a round."""

    round: int
    agreement: float | None
    """Share of agreement, 0 to 1; `null` where it could not be found out."""
    in_dispute: list[str]
    """What was still in dispute, one point each."""

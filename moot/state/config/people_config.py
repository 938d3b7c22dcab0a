"""What people and tools add to a debate."""

from pydantic import Field

from moot.state.config.section import Section

HUMAN = "human"
"""A debater's `model` where a person takes the turns."""


class ClarificationsConfig(Section):
    """Questions of the debaters to a person before the first round."""

    enabled: bool = False
    """Without, nobody is asked anything."""
    max_per_debater: int = Field(3, ge=1, le=20)
    """Questions that one debater may ask in one round."""
    rounds: int = Field(1, ge=1, le=10)
    """Times that debaters may ask, the later ones knowing the answers; ends once nobody has a question."""


class PlannedInterjection(Section):
    """Something said from the floor at a set moment, so that every run of the debate hears it there."""

    after: int = Field(ge=0)
    """Turns taken before it is said; 0 for before the first."""
    text: str = Field(min_length=1)
    """The words."""
    speaker: str = "moderator"
    """`moderator`, a debater's id, or the slug of a guest."""

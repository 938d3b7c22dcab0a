"""What a dialogue is configured with."""

from pydantic import Field, field_validator

from moot.nodes.blackboard.rooms import CYCLES
from moot.state.config import ProtocolSettings, Section


class CruxConfig(Section):
    """When two debaters are sent to a crux room, and for how long."""

    enabled: bool = True
    """Whether two who disagree are sent to a room of their own."""
    confidence: float = Field(0.6, ge=0, le=1)
    """How sure the extraction must be that both stand on opposite sides of the claim."""
    specific: bool = True
    """Whether the claim must be specific."""
    relevance: int = Field(1, ge=0)
    """Terms that the claim must share with the topic, its aspect or the pair's positions on it."""
    cooldown: int = Field(1, ge=0)
    """Rounds that must pass before the same pair enters another room."""
    max_rooms: int = Field(4, ge=0)
    """Rooms in the whole debate."""
    cycles: int = Field(CYCLES, ge=1, le=6)
    """Exchanges with steelmanning in one room, at most."""


class DialogueConfig(ProtocolSettings):
    """Aspects and crux rooms of a `dialogue`."""

    key = "dialogue"

    aspects: tuple[str, ...] = ()
    """Aspects of the topic, one after the other; empty asks a model for them."""
    max_aspects: int = Field(3, ge=1, le=12)
    """Aspects that a model may name."""
    minirounds: int = Field(1, ge=1, le=6)
    """Times that everybody responds and replies on one aspect."""
    crux: CruxConfig = Field(default_factory=CruxConfig)

    @field_validator("aspects")
    @classmethod
    def _check_aspects(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(aspect.strip() for aspect in value):
            raise ValueError("an aspect is empty: say what it is, or leave the key out for a model to choose")
        return value

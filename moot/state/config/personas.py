"""Personas, the blackboard, dialogues, and who gives the floor."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from moot.state.config.section import Section

ANCHOR_CHARS = 40_000
"""Characters of all anchors of one debater: they are frozen into the state with the configuration."""


class Anchor(Section):
    """A text of a persona's own, from which passages are brought back and cited."""

    name: str = Field("text", min_length=1, max_length=60)
    """What it is cited as."""
    text: str = Field(min_length=1)
    """The text itself."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"text": data} if isinstance(data, str) else data


class Persona(Section):
    """The contract of a persona, beside its name, role and stance; every field is optional."""

    personality: str = ""
    """Temper and habits of mind."""
    stakes: str = ""
    """What it stands to win or lose."""
    epistemology: str = ""
    """What it takes for knowledge: trials, precedent, first principles."""
    time_horizon: str = ""
    """How far ahead it looks, such as `ten years`."""
    flip_conditions: tuple[str, ...] = ()
    """What would change its mind."""
    evidence_policy: str = ""
    """What evidence it offers and accepts."""
    voice: str = ""
    """How it speaks."""
    anchors: tuple[Anchor, ...] = ()
    """Texts of its own: `{name, text}` each, or the text alone."""

    @model_validator(mode="after")
    def _check_anchors(self) -> Persona:
        size = sum(len(anchor.text) for anchor in self.anchors)
        if size > ANCHOR_CHARS:
            raise ValueError(f"anchors hold {size} characters: give at most {ANCHOR_CHARS}")
        return self


class BlackboardConfig(Section):
    """How the blackboard is kept."""

    extraction: Literal["auto", "rule-based", "llm"] = "auto"
    """Who reads what was said: a model in one call a step, or the rules; `auto` means a model in `dialogue`
    alone. A call that fails is replaced by the rules."""
    model: str | None = None
    """Model of extraction, reflections and crux cards; `None` means the debate's."""
    temperature: float | None = Field(0.0, ge=0, le=2)
    """Sampling temperature of these calls."""
    reply: int = Field(1500, ge=200)
    """Reserve for their answers, tokens; minutes get 400 and four for each that they read, if more."""
    confidence: float = Field(0.5, ge=0, le=1)
    """How sure a model must be of what somebody said for it to be noted."""
    second_look: bool = True
    """Whether a model looks again at what would change how things stand: one more call where there is any."""
    reflect_at: int = Field(15, ge=1)
    """A reflection is due once 3·new disagreements + 4·concessions + 5·shifts pass this."""

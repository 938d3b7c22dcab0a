"""What single protocols are configured with, and who speaks where nobody is named."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

TWO_SIDES: tuple[dict[str, str], ...] = (
    {"id": "advocate", "name": "Advocate", "stance": "in favour"},
    {"id": "skeptic", "name": "Skeptic", "stance": "against"},
)

DEFAULT_DEBATERS: dict[str, tuple[dict[str, str], ...]] = {
    "council": (
        {"id": "architect", "name": "Architect", "role": "architect"},
        {"id": "performance", "name": "Performance", "role": "performance"},
        {"id": "testing", "name": "Testing", "role": "testing"},
    ),
    "single": ({"id": "answerer", "name": "Answerer"},),
    "vote": ({"id": "voter", "name": "Voter"},),
}
"""Debaters of a protocol where none are configured; two sides for all others."""


def default_debaters(protocol: Any) -> tuple[dict[str, str], ...]:
    """Return who speaks under a protocol where nobody is configured."""
    return DEFAULT_DEBATERS.get(protocol, TWO_SIDES) if isinstance(protocol, str) else TWO_SIDES


class TerminationConfig(BaseModel):
    """When a council stops before its last round."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["fixed", "convergence"] = "fixed"
    """`fixed` runs every round; `convergence` asks the judge after each but the last."""
    threshold: float = Field(0.8, ge=0, le=1)
    """Share of agreement, 0 to 1, from which the debate stops."""


class VoteConfig(BaseModel):
    """How the `vote` baseline votes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: int = Field(5, ge=2, le=256)
    """Independent answers, all at the same time; debaters take turns where there are several."""
    by: Literal["answer", "judge"] = "answer"
    """`answer` counts equal answers, without a call; `judge` lets the judge choose among them."""

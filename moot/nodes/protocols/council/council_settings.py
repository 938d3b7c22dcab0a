"""What a council is configured with."""

from typing import Literal

from pydantic import Field

from moot.state.config import ProtocolSettings


class TerminationConfig(ProtocolSettings):
    """When a council stops early."""

    key = "termination"

    type: Literal["fixed", "convergence"] = "fixed"
    """`fixed` runs every round; `convergence` asks the judge after each but the last."""
    threshold: float = Field(0.8, ge=0, le=1)
    """Share of agreement, 0 to 1, from which the debate stops."""

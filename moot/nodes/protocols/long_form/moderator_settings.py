"""What giving the floor is configured with."""

from pydantic import Field

from moot.state.config import ProtocolSettings


class ModeratorConfig(ProtocolSettings):
    """Who gives the floor in `moderated`."""

    key = "moderator"

    model: str | None = None
    """Model name; `None` means the debate's."""
    temperature: float | None = Field(0.3, ge=0, le=2)
    """Sampling temperature."""
    patience: int = Field(2, ge=1)
    """Turns that one debater, or one pair, may hold the floor without progress before the least recent
    speaker gets it; twice as many for a pair."""

    def model_names(self) -> tuple[str, ...]:
        """The moderator's."""
        return (self.model,) if self.model else ()

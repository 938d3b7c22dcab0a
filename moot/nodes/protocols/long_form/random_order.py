"""Random: the long form with speakers draw by a seed."""

import hashlib

from moot.nodes.protocols.long_form.long_form import (
    LongForm,
    ModeratorConfig,
    is_stuck,
    recent_speakers,
    speech_step,
)
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step


class RandomOrder(LongForm):
    """Speakers are draw: the same for the same seed; with more than two, nobody twice in a row.

    Nobody, and no pair, who makes no progress is draw for ever.
    """

    name = "random"
    settings = ModeratorConfig

    def give_floor(self, state: ConversationState, config: DebateConfig) -> Step:
        """Draw the next speaker."""
        last = recent_speakers(state, config)[-1:] if len(config.debaters) > 2 else []
        free = [debater for debater in config.names() if debater not in last]
        candidates = [who for who in free if not is_stuck(state, config, who)] or free
        # Seed and turn alone decide, so that a debate that is taken up again goes on as it would have.
        turn = state.get("turn_count", 0)
        digest = hashlib.sha256(f"{config.seed or 0}:{turn}".encode()).digest()
        speaker = candidates[int.from_bytes(digest[:8], "big") % len(candidates)]
        return speech_step(state, config, speaker)

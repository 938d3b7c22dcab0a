"""Random: the long form with speakers drawn by a seed."""

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
    """Speakers are drawn: the same for the same seed; with more than two, nobody twice in a row.

    Nobody, and no pair, who makes no progress is drawn for ever.
    """

    name = "random"
    settings = ModeratorConfig

    def give_floor(self, state: ConversationState, config: DebateConfig) -> Step:
        """Draw the next speaker."""
        last = recent_speakers(state, config)[-1:] if len(config.debaters) > 2 else []
        free = [debater for debater in config.names() if debater not in last]
        moving = [who for who in free if not is_stuck(state, config, who)]
        speaker = drawn(moving or free, config.seed or 0, state.get("turn_count", 0))
        return speech_step(state, config, speaker)


def drawn(candidates: list[str], seed: int, turn: int) -> str:
    """Return one of the candidates, decided by seed and turn alone, evenly over turns."""
    digest = hashlib.sha256(f"{seed}:{turn}".encode()).digest()
    return candidates[int.from_bytes(digest[:8], "big") % len(candidates)]

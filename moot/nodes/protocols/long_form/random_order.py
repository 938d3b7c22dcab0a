"""Random: the long form with speakers drawn by a seed."""

from __future__ import annotations

import hashlib

from moot.nodes.protocols.long_form.long_form import (
    is_stuck,
    last_speakers,
    long_form_phase,
    speech_instruction,
)
from moot.nodes.protocols.long_form.moderator_settings import ModeratorConfig
from moot.nodes.protocols.long_form.round_robin import RoundRobin
from moot.nodes.protocols.protocol import End, make_floor, make_step
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step


class RandomOrder(RoundRobin):
    """Speakers are drawn: the same for the same seed; with more than two, nobody twice in a row.

    Nobody, and no pair, who makes no progress is drawn for ever.
    """

    name = "random"
    settings = ModeratorConfig
    by_order = False

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End:
        """Draw the next speaker until all turns are taken."""
        turn, turns, size = state.get("turn_count", 0), config.total_turns(), len(config.debaters)
        if turn >= turns:
            return End(f"all {turns} turns are taken")
        last = last_speakers(state, config, 1) if size > 2 else []
        free = [d.id for d in config.debaters if d.id not in last]
        moving = [who for who in free if not is_stuck(state, config, who)]
        speaker = drawn(moving or free, config.seed or 0, turn)
        floor = make_floor(speaker, speech_instruction(state, config, speaker))
        return make_step(long_form_phase(state, config, speaker), turn // size + 1, [floor])


def drawn(candidates: list[str], seed: int, turn: int) -> str:
    """Return one of the candidates, decided by seed and turn alone, evenly over turns."""
    digest = hashlib.sha256(f"{seed}:{turn}".encode()).digest()
    return candidates[int.from_bytes(digest[:8], "big") % len(candidates)]

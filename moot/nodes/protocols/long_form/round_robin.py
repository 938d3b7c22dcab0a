"""Round-robin: N debaters in turn, for as many turns as configured. The long form."""

from collections.abc import Sequence

from moot.nodes.protocols.long_form.long_form import LongForm, speech_step
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step


class RoundRobin(LongForm):
    """Debaters speak in the order of the configuration."""

    name = "round-robin"
    by_order = True

    def give_floor(self, state: ConversationState, config: DebateConfig) -> Step:
        """Give it to the next in the order."""
        turn, order = state.get("turn_count", 0), config.turn_order()
        return speech_step(state, config, order[turn % len(order)], _phase(turn, config.total_turns(), order))


def _phase(turn: int, turns: int, order: Sequence[str]) -> str:
    """Return the phase of a turn: a speaker's first opens; its last closes, unless the debate is short."""
    size = len(order)
    speaker, place = order[turn % size], turn % size
    if turn < size and speaker not in order[:place]:
        return "opening"
    left = turns - turn - 1
    following = [order[(turn + step) % size] for step in range(1, min(left, size) + 1)]
    return "closing" if speaker not in following and turns >= 3 * size else "argument"

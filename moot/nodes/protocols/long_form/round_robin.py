"""Round-robin: N debaters in turn, for as many turns as configured. The long form."""

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
        place, left = turn % len(order), config.total_turns() - turn - 1
        speaker, following = order[place], [*order[place + 1 :], *order[: place + 1]]
        return speech_step(
            state,
            config,
            speaker,
            first=turn < len(order) and speaker not in order[:place],
            last=speaker not in following[: max(0, left)],
        )

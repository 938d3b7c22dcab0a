"""Round-robin: N debaters in turn, for as many turns as configured. The long form."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.memory.scene import Scene, debate_blocks
from nodes.memory.view import Block
from nodes.prompts.library import load_prompt
from nodes.protocols.agreement import with_agreement
from nodes.protocols.base import Consult, End, Protocol, make_floor, make_step
from nodes.protocols.forecast import (
    Batch,
    Forecast,
    judge_batch,
    make_forecast,
    prompt_of,
    reading_batches,
    rolling_batch,
    speaking,
    window_tokens,
    words_to_tokens,
)
from state.config import DebateConfig
from state.conversation import ConversationState, Step

SPEECH = load_prompt("speech", "turn", "turns", "opening", "words")

WORDS = 150
"""What a speech is asked to stay within."""

ASKS = {
    "opening": "Open: say where you stand on the topic and give your strongest reason.",
    "argument": "Answer what was said last, then take the debate one step further.",
    "closing": "Close: your strongest point, what you concede, and what would settle the rest.",
}


class RoundRobin(Protocol):
    """Debaters speak in the order of the configuration."""

    name = "round-robin"

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Give the floor to the next debater until all turns are taken."""
        turn, turns, size = state.get("turn_count", 0), config.total_turns(), len(config.debaters)
        if turn >= turns:
            return End(f"all {turns} turns are taken")
        phase = _phase(turn, turns, size)
        instruction = SPEECH.render(
            turn=str(turn + 1), turns=str(turns), opening=f"{ASKS[phase]} ", words=str(WORDS)
        )
        floor = make_floor(config.debaters[turn % size].id, with_agreement(instruction, config))
        return make_step(phase, turn // size + 1, [floor])

    def view(self, scene: Scene) -> Sequence[Block]:
        """Rules, rolling summary, window, tail."""
        return debate_blocks(scene)

    def forecast(self, config: DebateConfig) -> Forecast:
        """One call a turn; the prompt grows until the window is full."""
        turns, reply = config.total_turns(), words_to_tokens(WORDS, config)
        speakers, said = min(turns, len(config.debaters)), turns * reply.expected
        orders = 1 if config.judge.swap is False or speakers < 2 else 2
        seen = window_tokens(turns, reply.expected, config)
        return make_forecast(
            config,
            [
                *reading_batches(config, turns, reply.expected),
                Batch("turn", "speech", 1, prompt_of(seen, config), reply, _turns_by_model(turns, config)),
                *rolling_batch(config, entries=turns, tokens=said),
                judge_batch(config, said, criteria=5, orders=orders),
            ],
        )


def _phase(turn: int, turns: int, size: int) -> str:
    if turn < size:
        return "opening"
    return "closing" if turns - turn <= size and turns >= 3 * size else "argument"


def _turns_by_model(turns: int, config: DebateConfig) -> int:
    """Return the turns for which a model is called, not a person asked."""
    rounds, rest = divmod(turns, len(config.debaters))
    return rounds * len(speaking(config)) + sum(not debater.is_human for debater in config.debaters[:rest])

"""Round-robin: N debaters in turn, for as many turns as configured. The long form."""

from __future__ import annotations

from collections.abc import Sequence

from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.protocols.agreeableness import with_agreement
from moot.nodes.protocols.forecast import (
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
from moot.nodes.protocols.protocol import Consult, End, Protocol, make_floor, make_step
from moot.nodes.views.scene import Scene, debate_blocks
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step

SPEECH = load_prompt("speech", "turn", "turns", "opening", "words", home=__package__)

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
    by_order = True
    bounded_by = ("turns", "rounds")

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Give the floor to the next debater until all turns are taken."""
        turn, turns, order = state.get("turn_count", 0), config.total_turns(), config.turn_order()
        if turn >= turns:
            return End(f"all {turns} turns are taken")
        phase = _phase(turn, turns, order)
        instruction = SPEECH.render(
            turn=str(turn + 1), turns=str(turns), opening=f"{ASKS[phase]} ", words=str(WORDS)
        )
        floor = make_floor(order[turn % len(order)], with_agreement(instruction, config))
        return make_step(phase, turn // len(order) + 1, [floor])

    def view(self, scene: Scene) -> Sequence[Block]:
        """Rules, rolling summary, window, tail."""
        return debate_blocks(scene)

    def most_turns(self, config: DebateConfig) -> int:
        """As configured."""
        return config.total_turns()

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


def _phase(turn: int, turns: int, order: Sequence[str]) -> str:
    """Return the phase of a turn: a speaker's first opens; its last closes, unless the debate is short."""
    size = len(order)
    speaker, place = order[turn % size], turn % size
    if turn < size and speaker not in order[:place]:
        return "opening"
    left = turns - turn - 1
    following = [order[(turn + step) % size] for step in range(1, min(left, size) + 1)]
    return "closing" if speaker not in following and turns >= 3 * size else "argument"


def _turns_by_model(turns: int, config: DebateConfig) -> int:
    """Return the turns for which a model is called, not a person asked."""
    order, models = config.turn_order(), speaking(config)
    rounds, rest = divmod(turns, len(order))
    called = [speaker in models for speaker in order]
    return rounds * sum(called) + sum(called[:rest])

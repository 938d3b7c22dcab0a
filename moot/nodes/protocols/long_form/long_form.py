"""The long form: one speaker a turn, for as many turns as configured; in turn, or drawn by a seed."""

import hashlib
from collections.abc import Sequence

from pydantic import Field

from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.prompts.fitting import Block
from moot.nodes.prompts.library import load_prompt
from moot.nodes.protocols.protocol import (
    SPEECH_WORDS,
    Consult,
    End,
    Protocol,
    make_floor,
    make_step,
    with_agreement,
)
from moot.nodes.text.plain import all_done
from moot.nodes.views.scene import Scene
from moot.nodes.views.tail import debate_blocks
from moot.state.config import DebateConfig, ProtocolSettings
from moot.state.conversation import ConversationState, Step
from moot.state.entries import Entry, takes_turn

SPEECH = load_prompt("speech", "turn", "turns", "opening", "words", home=__package__)
ASKS = {
    "opening": "Open: say where you stand on the topic and give your strongest reason.",
    "argument": "Answer what was said last, then take the debate one step further.",
    "closing": "Close: your strongest point, what you concede, and what would settle the rest.",
}
_LOOK_BACK = 8
"""Entries for each debater among which the least recent speaker is looked for."""


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


class LongForm(Protocol):
    """One speaker a turn, for as many turns as configured."""

    bounded_by = ("turns", "rounds")

    def next_step(self, state: ConversationState, config: DebateConfig) -> Step | End | Consult:
        """Give the floor until all turns are taken."""
        turns = config.total_turns()
        if state.get("turn_count", 0) >= turns:
            return End(all_done(turns, "turn", "taken"))
        return self.give_floor(state, config)

    def give_floor(self, state: ConversationState, config: DebateConfig) -> Step | Consult:
        """Return the next turn, or whom to ask for it."""
        raise NotImplementedError

    def view(self, scene: Scene) -> Sequence[Block]:
        """Rules, rolling summary, window, tail."""
        return debate_blocks(scene)

    def repeats(self, config: DebateConfig) -> tuple[int, int]:
        """Round by round, until debaters close."""
        size = len(config.turn_order())
        return config.total_turns() - size, size


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
        candidates = [who for who in free if not is_stuck(state, config, who)] or free
        # Seed and turn alone decide, so that a debate that is taken up again goes on as it would have.
        turn = state.get("turn_count", 0)
        digest = hashlib.sha256(f"{config.seed or 0}:{turn}".encode()).digest()
        speaker = candidates[int.from_bytes(digest[:8], "big") % len(candidates)]
        return speech_step(state, config, speaker)


def speech_step(
    state: ConversationState,
    config: DebateConfig,
    speaker: str,
    *,
    first: bool | None = None,
    last: bool = False,
    order: str = "",
) -> Step:
    """Return the step of one speech: a speaker's first turn opens, its last one closes.

    Where no order tells which these are (`first` is `None`), whoever has not spoken opens, and the debate's
    last turns close. A moderator's `order` stands for what every argument is asked for.
    """
    turn, turns, size = state.get("turn_count", 0), config.total_turns(), len(config.turn_order())
    if first is None:
        first = not any(entry["speaker"] == speaker for entry in state["full_transcript"])
        last = turns - turn <= size
    phase = "opening" if first else "argument"
    if last and not first and turns >= 3 * size:  # a shorter debate has no time for closings
        phase = "closing"
    text = SPEECH.render(
        turn=str(turn + 1),
        turns=str(turns),
        opening="" if order and phase == "argument" else f"{ASKS[phase]} ",
        words=str(SPEECH_WORDS),
    )
    instruction = "\n\n".join(filter(None, (with_agreement(text, config), order)))
    return make_step(phase, turn // size + 1, [make_floor(speaker, instruction)])


def recent_speakers(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return who took the most recent turns, the newest last; fewer at the beginning."""
    return _turns(state["full_transcript"][-_LOOK_BACK * len(config.debaters) :], config)


def is_stuck(state: ConversationState, config: DebateConfig, speaker: str) -> bool:
    """Return whether giving `speaker` the floor would let one debater, or one pair, go on without progress.

    Progress is a new dispute, a concession, a shift or new evidence, as the blackboard has it.
    """
    patience = ModeratorConfig.of(config).patience
    recent = recent_speakers(state, config)
    alone, pair = recent[-patience:], recent[-2 * patience :]
    held_alone = len(alone) == patience and set(alone) == {speaker}
    held_by_pair = len(config.debaters) > 2 and len(pair) == 2 * patience and len({*pair, speaker}) <= 2
    span = patience if held_alone else 2 * patience
    since = state["full_transcript"][ledger_of(state).last_progress + 1 :]
    quiet = len(_turns(since, config)) >= span
    return quiet and (held_alone or held_by_pair)


def _turns(entries: Sequence[Entry], config: DebateConfig) -> list[str]:
    """Return who took the turns among entries; calls of tools, notices and remarks are none."""
    names = config.names()
    return [e["speaker"] for e in entries if e["speaker"] in names and takes_turn(e, names)]

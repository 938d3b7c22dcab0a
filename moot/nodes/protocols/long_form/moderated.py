"""Moderated: a model gives the floor, turn by turn, and says what to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import BaseModel

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.by_model import (
    debater_lines,
    found_in,
    known_debater,
    shown_entries,
    structured_call,
)
from moot.nodes.blackboard.digest import render_blackboard
from moot.nodes.calls import Hints, ModelCall, Reply
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import counter_of, narrow, one_of, voice_of
from moot.nodes.protocols.long_form.long_form import (
    LongForm,
    ModeratorConfig,
    is_stuck,
    recent_speakers,
    speech_step,
)
from moot.nodes.protocols.protocol import Consult, Outlay
from moot.nodes.text.tokens import cut_middle
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step
from moot.state.entries import kind_of

MODERATE = load_prompt("moderate", "topic", "debaters", "spoken", "board", "turn", "turns", home=__package__)

SHOWN, MESSAGE_TOKENS = 6, 150
"""Messages that the moderator sees, and about how long each of them is."""
TOLD = 12
"""Turns of which the moderator is told who took them."""
ORDER = 300
"""Characters of what the moderator asks a debater to do: more than the words it is told to use take."""
REPLY_TOKENS = 300


class Nomination(BaseModel):
    """Whom a moderator gives the floor."""

    reasoning: str
    next_speaker: str
    instruction: str


class Moderated(LongForm):
    """The long form with a moderator; in the order of the configuration where it names nobody."""

    name = "moderated"
    settings = ModeratorConfig
    least_debaters = 2

    def give_floor(self, state: ConversationState, config: DebateConfig) -> Consult:
        """Ask the moderator who speaks next."""
        outlay = Outlay("moderate", "moderation", 1, SHOWN * MESSAGE_TOKENS, reserve=REPLY_TOKENS)
        return Consult(lambda: [_call(state, config)], partial(_decide, state, config), outlay)


def _call(state: ConversationState, config: DebateConfig) -> ModelCall:
    voice = replace(voice_of(config, ModeratorConfig.of(config)), reply=REPLY_TOKENS)
    count = counter_of(voice, config)
    room, names = config.memory.budget.total // 4, config.names()
    system = MODERATE.render(
        topic=cut_middle(state["topic"], room, count),
        debaters=debater_lines(config),
        spoken=" → ".join(names[who] for who in recent_speakers(state, config)[-TOLD:]) or "nobody yet",
        board=render_blackboard(state, "", max_tokens=room, count=count, names=names),
        turn=str(state.get("turn_count", 0) + 1),
        turns=str(config.total_turns()),
    )
    recent = [entry for entry in state["full_transcript"][-SHOWN:] if kind_of(entry).shown]
    said = shown_entries(recent, names, room, count) or ["Nothing has been said yet."]
    schema = narrow(Nomination, {"next_speaker": one_of(names)})
    hints: Hints = {"topic": state["topic"]}
    return structured_call("moderate", config, system, said, schema, count, voice=voice, hints=hints)


def _decide(state: ConversationState, config: DebateConfig, replies: Sequence[Reply]) -> Step:
    found = found_in(Nomination, replies[0]) or {"next_speaker": "", "instruction": ""}
    named = known_debater(found["next_speaker"], config.names())
    speaker = named or config.debaters[state.get("turn_count", 0) % len(config.debaters)].id
    order = board_text(found["instruction"], ORDER) if named else ""
    if is_stuck(state, config, speaker):
        recent = recent_speakers(state, config)
        newest = {who: place for place, who in enumerate(recent)}
        others = [who for who in config.names() if who not in recent[-1:]] or list(config.names())
        # Whoever has not spoken for longest, the first in the configuration among equals.
        speaker, order = min(others, key=lambda who: newest.get(who, -1)), ""
    return speech_step(
        state, config, speaker, order=f"The moderator gives you the floor: {order}" if order else ""
    )

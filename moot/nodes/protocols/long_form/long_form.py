"""What the long forms share, whoever gives the floor: phases, instructions, who spoke last."""

from __future__ import annotations

from collections.abc import Sequence

from moot.nodes.blackboard.update import progress_of
from moot.nodes.protocols.agreeableness import with_agreement
from moot.nodes.protocols.long_form.moderator_settings import ModeratorConfig
from moot.nodes.protocols.long_form.round_robin import ASKS, SPEECH, WORDS
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, takes_turn

_LOOK_BACK = 8
"""Entries for each debater among which the least recent speaker is looked for."""


def long_form_phase(state: ConversationState, config: DebateConfig, speaker: str) -> str:
    """Return the phase of a speaker's turn: its first opens, the debate's last ones close."""
    turn, turns, size = state.get("turn_count", 0), config.total_turns(), len(config.debaters)
    if speaker not in (state.get("ledger") or {}):
        return "opening"
    return "closing" if turns - turn <= size and turns >= 3 * size else "argument"


def speech_instruction(state: ConversationState, config: DebateConfig, speaker: str) -> str:
    """Return what the next speaker is asked to do."""
    text = SPEECH.render(
        turn=str(state.get("turn_count", 0) + 1),
        turns=str(config.total_turns()),
        opening=f"{ASKS[long_form_phase(state, config, speaker)]} ",
        words=str(WORDS),
    )
    return with_agreement(text, config)


def last_speakers(state: ConversationState, config: DebateConfig, number: int) -> list[str]:
    """Return who took the last so many turns, the newest last; fewer at the beginning."""
    return _recent(state, config)[-number:]


def least_recent(state: ConversationState, config: DebateConfig, *, but: Sequence[str] = ()) -> str:
    """Return who has not spoken for longest, the first in the configuration among equals."""
    newest = {who: place for place, who in enumerate(_recent(state, config))}
    candidates = [d.id for d in config.debaters if d.id not in but] or list(config.names())
    return min(candidates, key=lambda who: newest.get(who, -1))


def is_stuck(state: ConversationState, config: DebateConfig, speaker: str) -> bool:
    """Return whether giving `speaker` the floor would let one debater, or one pair, go on without progress.

    Progress is a new dispute, a concession, a shift or new evidence, as the blackboard has it.
    """
    patience = ModeratorConfig.of(config).patience
    alone = last_speakers(state, config, patience)
    pair = last_speakers(state, config, 2 * patience)
    held_alone = len(alone) == patience and set(alone) == {speaker}
    held_by_pair = len(config.debaters) > 2 and len(pair) == 2 * patience and len({*pair, speaker}) <= 2
    span = patience if held_alone else 2 * patience
    since = state["full_transcript"][progress_of(state)["progress"] + 1 :]
    quiet = len(_turns(since, config)) >= span
    return quiet and (held_alone or held_by_pair)


def _recent(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return who took the most recent turns, the newest last."""
    return _turns(state["full_transcript"][-_LOOK_BACK * len(config.debaters) :], config)


def _turns(entries: Sequence[Entry], config: DebateConfig) -> list[str]:
    """Return who took the turns among entries; calls of tools, notices and remarks are none."""
    names = config.names()
    return [e["speaker"] for e in entries if e["speaker"] in names and takes_turn(e, names)]

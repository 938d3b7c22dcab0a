"""What the long forms share, whoever gives the floor: phases, instructions, who spoke last."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.blackboard.update import SILENT_KINDS
from nodes.protocols.agreement import with_agreement
from nodes.protocols.round_robin import ASKS, SPEECH, WORDS
from state.config import DebateConfig
from state.conversation import ConversationState

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


def _recent(state: ConversationState, config: DebateConfig) -> list[str]:
    """Return who took the most recent turns, the newest last."""
    names = config.names()
    recent = state["full_transcript"][-_LOOK_BACK * len(names) :]
    return [e["speaker"] for e in recent if e["speaker"] in names and e["kind"] not in SILENT_KINDS]

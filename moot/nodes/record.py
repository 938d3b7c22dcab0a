"""`record`: notes on the blackboard what a step's entries did in the debate."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from moot.nodes.blackboard.by_model import StepFindings, extraction_call, found_in, notes_by_model
from moot.nodes.blackboard.by_rule import notes_by_rule
from moot.nodes.blackboard.ledger import open_challenges
from moot.nodes.blackboard.notes import OVERALL, Notes
from moot.nodes.blackboard.update import unread, update_board
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, errors_update
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config import DebateConfig
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import Entry


def record(state: ConversationState, context: NodeContext) -> Body:
    """Update ledger, claims and the round's record; what a model cannot read, the rules do."""
    config = frozen_config(state)
    entries = unread(state, config)
    if not entries:
        return {}
    findings: dict[str, Any] = {"entries": []}
    failure = ""
    if reads_by_model(config):
        findings, failure = yield from _findings(state, config, entries, context)
    notes = [_notes(state, config, entry, findings) for entry in entries]
    update = update_board(state, config, notes)
    return {**update, **errors_update(state, "record", [failure])}


def reads_by_model(config: DebateConfig) -> bool:
    """Return whether a model notes what was said."""
    return protocol_named(config.protocol).reads_by_model(config)


def _findings(
    state: ConversationState, config: DebateConfig, entries: Sequence[Entry], context: NodeContext
) -> Generator[Sequence[ModelCall], list[Reply], tuple[dict[str, Any], str]]:
    """Return a model's findings and why there are none, `""` where there are."""
    aspect = _aspect(state, entries[0])
    call = extraction_call(state, config, entries, context.env.count_for(config), aspect=aspect)
    (reply,) = yield [call]
    found = found_in(StepFindings, reply)
    if found is not None:
        return found, ""
    return {"entries": []}, f"read by rule: {reply.error or 'the model gave no fitting answer'}"


def _notes(state: ConversationState, config: DebateConfig, entry: Entry, findings: dict[str, Any]) -> Notes:
    names, aspect = config.names(), _aspect(state, entry)
    challenged = open_challenges((state.get("ledger") or {}).get(entry["speaker"]) or {})
    found = notes_by_model(findings, entry, names, aspect=aspect, challenged=challenged)
    return found or notes_by_rule(
        entry, names, aspect=aspect, challenged=challenged, transcript=state["full_transcript"]
    )


def _aspect(state: ConversationState, entry: Entry) -> str:
    """Return the aspect that an entry is about: its room's, else the one that the protocol is at."""
    room = state.get("crux_rooms", {}).get(entry["room"])
    claim = (state.get("claims") or {}).get(room["claim"]) if room else None
    if claim is not None:
        return claim["aspect"]
    return state.get("step", {}).get("aspect") or OVERALL

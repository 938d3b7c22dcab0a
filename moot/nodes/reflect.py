"""`reflect`: looks at the debate from outside once enough has happened, and at crux rooms after a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.nodes.blackboard.by_model import found_in
from moot.nodes.blackboard.cards import (
    CruxFinding,
    card_by_model,
    card_by_rule,
    card_call,
    room_closes,
    settled,
)
from moot.nodes.blackboard.ledger import without_challenges
from moot.nodes.blackboard.reflections import (
    COUNTS_SET_BACK,
    Reflections,
    reflection_call,
    reflection_due,
    reflections_by_model,
    reflections_by_rule,
)
from moot.nodes.blackboard.rooms import to_assess
from moot.nodes.calls import Reply
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Update, errors_update
from moot.nodes.record import reads_by_model
from moot.state.blackboard import Claim, CruxCard, Reflection
from moot.state.config import DebateConfig
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState
from moot.state.progress import Room


def reflect_due(state: ConversationState) -> bool:
    """Return whether there is anything to reflect on."""
    return reflection_due(state) or bool(to_assess(state))


def reflect(state: ConversationState, context: NodeContext) -> Body:
    """Make reflections and crux cards, all calls at the same time; the rules stand in for one that fails."""
    config = frozen_config(state)
    count = context.env.count_for(config)
    rooms, due = to_assess(state), reflection_due(state)
    replies: list[Reply | None] = [None] * (len(rooms) + due)
    if reads_by_model(config):
        calls = [card_call(state, config, room, count, floor=floor) for floor, room in enumerate(rooms)]
        calls += [reflection_call(state, config, count, floor=len(rooms))] if due else []
        replies = yield calls
    cards = [_card(state, config, room, reply) for room, reply in zip(rooms, replies, strict=False)]
    update = _close_rooms(state, config, rooms, cards)
    for card_id, card in update.get("crux_cards", {}).items():
        yield Emit({"event": "crux", "card": card_id, "resolved": card["resolved"]})
    if due:
        update["reflections"] = _reflections(state, config, replies[-1])
        update["board_progress"] = COUNTS_SET_BACK
    return {**update, **errors_update(state, "reflect", [reply.error for reply in replies if reply])}


def _card(state: ConversationState, config: DebateConfig, room: Room, reply: Reply | None) -> CruxCard:
    found = found_in(CruxFinding, reply)
    return card_by_model(state, config, room, found) if found else card_by_rule(state, config, room)


def _reflections(state: ConversationState, config: DebateConfig, reply: Reply | None) -> list[Reflection]:
    found = found_in(Reflections, reply)
    return reflections_by_model(state, config, found) if found else reflections_by_rule(state, config)


def _close_rooms(
    state: ConversationState, config: DebateConfig, rooms: Sequence[Room], cards: Sequence[CruxCard]
) -> Update:
    """Return the update for the rooms looked at: of those that close, the card and the claim's end."""
    if not rooms:
        return {}
    claims = state.get("claims") or {}
    both = zip(rooms, cards, strict=True)
    closing = [card for room, card in both if room_closes(state, config, room, card)]
    closed = {card["claim"] for card in closing}
    talked_over = [claims[key] for key in sorted(closed) if key in claims]
    return {
        "ledger": _without_challenges(state, talked_over),
        "crux_cards": {card["id"]: card for card in closing},
        "claims": {
            card["claim"]: settled(claims[card["claim"]], card) for card in closing if card["claim"] in claims
        },
        "crux_rooms": {
            room["id"]: {**room, "assessed": room["cycle"], "closed": room["claim"] in closed}
            for room in rooms
        },
    }


def _without_challenges(state: ConversationState, claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the ledger's update: what a room has talked over is no unanswered challenge any more."""
    update: dict[str, Any] = {}
    for claim in claims:
        ledger = {**(state.get("ledger") or {})}
        ledger.update({who: {**ledger[who], **fields} for who, fields in update.items()})
        update |= without_challenges(ledger, claim["between"], claim["message_ids"])
    return update

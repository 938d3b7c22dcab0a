"""`reflect`: looks at the debate from outside once enough has happened, and at crux rooms after a cycle."""

from moot.nodes.blackboard.by_model import found_in
from moot.nodes.blackboard.reflections import (
    Reflections,
    reflection_call,
    reflection_due,
    reflections_by_model,
    reflections_by_rule,
)
from moot.nodes.blackboard.rooms import (
    CruxFinding,
    card_by_model,
    card_by_rule,
    card_call,
    card_events,
    room_closes,
    to_assess,
)
from moot.nodes.calls import Reply
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Update, errors_update
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState
from moot.state.ledger import Note


def reflect_due(state: ConversationState) -> bool:
    """Return whether there is anything to reflect on."""
    return _insights_due(state) or bool(to_assess(state))


def _insights_due(state: ConversationState) -> bool:
    """Return whether enough has happened, and somebody will speak who sees insights: not in a council."""
    unread = protocol_named(state["config"]["protocol"]).minutes_after
    return not (unread or state.get("step", {}).get("last_words")) and reflection_due(state)


def reflect(state: ConversationState, context: NodeContext) -> Body:
    """Make reflections and crux cards, all calls at the same time; the rules stand in for one that fails."""
    config = frozen_config(state)
    count = context.env.count_for(config)
    rooms, due = to_assess(state), _insights_due(state)
    replies: list[Reply | None] = [None] * (len(rooms) + due)
    if protocol_named(config.protocol).reads_by_model(config):
        calls = [card_call(state, config, room, count, floor=floor) for floor, room in enumerate(rooms)]
        calls += [reflection_call(state, config, count, floor=len(rooms))] if due else []
        replies = yield calls
    found = [found_in(CruxFinding, reply) for reply in replies[: len(rooms)]]
    update: Update = {}
    notes: list[Note] = []
    if rooms:
        update["crux_cards"], update["crux_rooms"] = {}, {}
        for room, data in zip(rooms, found, strict=True):
            card = card_by_model(state, config, room, data) if data else card_by_rule(state, config, room)
            closes = room_closes(state, room, card)
            update["crux_rooms"][room["id"]] = {**room, "assessed": room["cycle"], "closed": closes}
            if closes:
                update["crux_cards"][card["id"]] = card
                notes += card_events(state, config, room, data, notes) if data else []
                yield Emit({"event": "crux", "card": card["id"], "resolved": card["resolved"]})
    if due:
        data = found_in(Reflections, replies[-1])
        made = reflections_by_model(state, config, data) if data else reflections_by_rule(state, config)
        update["reflections"] = made
        notes.append({"note": "outlook"})
    if notes:
        update["minutes"] = notes
    return {**update, **errors_update(state, "reflect", [reply.error for reply in replies if reply])}

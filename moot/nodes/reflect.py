"""Node `reflect`: writes reflections on the debate, and crux cards of crux rooms."""

from moot.calls.effects import Emit, NodeBody, Update, errors_update
from moot.calls.model_calls import Reply
from moot.claims import crux_cards, reflections
from moot.memory.background import select_background
from moot.nodes.summarize import judge_sees_everything
from moot.prompts.structured_calls import structured_data
from moot.protocols.registry import next_step
from moot.protocols.schedule import End
from moot.runtime.context import NodeContext
from moot.state.claim_events import ClaimEvent, Room


def reflect_due(context: NodeContext) -> bool:
    """Return True if models must write reflections or assess crux rooms now."""
    return _insights_due(context) or bool(crux_cards.rooms_to_assess(context.state))


def _insights_due(context: NodeContext) -> bool:
    """Return True if reflections are due, after the last step only for a judge that lacks messages."""
    state, config, protocol = context.state, context.config, context.protocol
    step = state.get("step") or {}
    row = protocol.phases.get(step.get("phase", ""))
    if (row and not row.reflects) or step.get("is_final") or not reflections.reflection_due(state):
        return False
    if not isinstance(next_step(state, config), End):
        return True
    is_judged = config.judge.enabled and protocol.judge_spec.judged
    return is_judged and not judge_sees_everything(context)


def reflect(context: NodeContext) -> NodeBody:
    """Ask models to write reflections on the debate and to assess side discussions.

    A failed call falls back to the claim ledger.
    """
    state = context.state
    rooms, due = crux_cards.rooms_to_assess(state), _insights_due(context)
    replies: list[Reply | None] = [None] * (len(rooms) + due)
    if context.extracts_claims:
        calls = [
            crux_cards.card_call(context, room, call_index=call_index)
            for call_index, room in enumerate(rooms)
        ]
        if due:
            call_index = len(rooms)
            background = select_background(context).texts
            calls += [reflections.reflection_call(context, call_index=call_index, background=background)]
        replies = yield calls
    findings = [structured_data(crux_cards.CruxFinding, reply) for reply in replies[: len(rooms)]]
    update: Update = {}
    notes: list[ClaimEvent] = []
    if rooms:
        update["crux_cards"], update["crux_rooms"] = {}, {}
        for room, data in zip(rooms, findings, strict=True):
            card = (
                crux_cards.card_by_model(context, room, data)
                if data
                else crux_cards.card_by_rule(context, room)
            )
            notes += crux_cards.card_events(context, room, data, notes) if data else []
            is_over = crux_cards.is_room_over(state, room, card)
            assessed_room: Room = {**room, "assessed": room["cycle"] + 1, "closed": is_over}
            if data:
                assessed_room["card"] = card
            update["crux_rooms"][room["id"]] = assessed_room
            if is_over:
                update["crux_cards"][card["id"]] = card
                yield Emit({"event": "crux", "card": card["id"], "resolved": card["resolved"]})
    if due:
        data = structured_data(reflections.LaterReflections, replies[-1])
        new_reflections = (
            reflections.reflections_by_model(context, data)
            if data
            else reflections.reflections_by_rule(context)
        )
        update["reflections"] = new_reflections
        dropped_ids = reflections.contradicted_reflections(state, data["contradicted"]) if data else []
        notes.append({"type": "reflection_pass", "dropped": dropped_ids})
    if notes:
        update["claim_events"] = notes
    return {**update, **errors_update(state, "reflect", [reply.error for reply in replies if reply])}

"""`close`: ends the debate in good order."""

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Update
from moot.nodes.judging.announcement import outcome_message
from moot.nodes.memory.earlier import remember_positions
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState


def close(state: ConversationState, context: NodeContext) -> Body:
    """Set the final status and say why it ended."""
    ended = state["step"]["ended_by"]
    status = "limit" if ended["by"] == "limit" else "done"
    yield from remember_positions(state, context.debate, context.env.clock())
    yield Emit({"event": "end", "status": status, "reason": ended["reason"]})
    update: Update = {"status": status, "current_speaker": ""}
    given = state.get("solution", "")
    solution = with_answer(state, given)
    told = {**state, "solution": solution}
    update["messages"] = [outcome_message(told)]
    return update if solution == given else {**update, "solution": solution}


def with_answer(state: ConversationState, solution: str) -> str:
    """Return what a verdict gave, with the protocol's answer where that follows it or stands in for it."""
    protocol = protocol_named(frozen_config(state).protocol)
    answer = protocol.answer(state) if protocol.always_answers or not solution else ""
    return f"{solution}\n\n{answer}".strip() if answer else solution

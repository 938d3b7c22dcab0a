"""Node `close`: sets the final status and writes the result as the last message."""

from langchain_core.messages import AIMessage

from moot.calls.effects import Emit, NodeBody, Update
from moot.config.debate_config import frozen_config
from moot.judging.ui_messages import result_ui_messages
from moot.memory.cross_debate_memory import store_positions
from moot.protocols.registry import protocol_named, protocol_of
from moot.runtime.environment import NodeContext
from moot.runtime.qa import judged_headline, result_text
from moot.state.conversation import ConversationState, StateValues, step_number
from moot.state.entries import message_id
from moot.state.reducers import RESULT_ID_PREFIX
from moot.state.verdict import COUNT, PanelVerdict


def close(state: ConversationState, context: NodeContext) -> NodeBody:
    """End the debate by setting its final status and adding the result message."""
    end_reason = state["step"]["end_reason"]
    status = "limit" if end_reason["cause"] == "limit" else "done"
    yield from store_positions(state, context.debate, context.env.clock())
    yield Emit({"event": "end", "status": status, "reason": end_reason["reason"]})
    stored_solution = state.get("solution", "")
    solution = with_final_answer(state, stored_solution)
    values = {**state, "solution": solution}
    update: Update = {
        "status": status,
        "current_speaker": "",
        **result_update(values, *context.origin),
    }
    return update if solution == stored_solution else {**update, "solution": solution}


def with_final_answer(state: ConversationState, solution: str) -> str:
    """Append the protocol's final answer to a debate's solution.

    The protocol decides whether this happens. An empty solution is always replaced by the final answer.
    """
    protocol = protocol_named(frozen_config(state).protocol)
    answer = protocol.final_answer(state) if protocol.always_answers or not solution else ""
    return f"{solution}\n\n{answer}".strip() if answer else solution


def result_update(values: StateValues, *origin: str) -> Update:
    """Return the state update that stores a debate's result.

    The update contains the result message, the answer and the UI messages. The result message contains the
    decision, reasons, citations and open points. `origin` are the ids of the debate and the checkpoint.
    """
    judging_no, step_no = (values.get("verdict") or {}).get("judging", 0), step_number(values)
    result_id = message_id(f"{RESULT_ID_PREFIX}{step_no}-{judging_no}", *origin)
    return {
        "messages": [AIMessage(result_text(values), id=result_id, name="judge")],
        "answer": final_answer(values),
        "ui": result_ui_messages(values, judged_headline(values), result_id),
    }


def final_answer(values: StateValues) -> str:
    """Return a debate's final answer as Markdown.

    Every protocol has an answer, so a debate can be compared with a single answer or a vote. It is `""`
    before the end.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    solution = protocol_of(values).at_a_glance(values.get("solution", "")).strip()
    is_judged = verdict and verdict["status"] == "ok" and not verdict.get("placeholder")
    decision = verdict.get("decision", "") if verdict and is_judged else ""
    if verdict and is_judged and not verdict.get("solution_markdown") and decision:
        solution = ""  # findings that a protocol adds to a decision are no answer
    is_option = verdict is not None and "options" in verdict and verdict["judge"] != COUNT
    is_repeated = decision and decision in solution and not is_option  # an option can occur in any text
    return "\n\n".join(filter(None, [decision, "" if is_repeated else solution]))

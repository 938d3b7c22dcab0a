"""Node `close`: sets the final status and writes the result as the last message."""

from langchain_core.messages import AIMessage

from moot.calls.effects import Emit, NodeBody, Update
from moot.judging.ui_messages import result_ui_messages
from moot.memory.cross_debate_memory import store_positions
from moot.protocols.result import final_answer, judged_headline, result_text, with_final_answer
from moot.runtime.context import NodeContext
from moot.state.conversation import StateValues, step_number
from moot.state.entries import message_id
from moot.state.reducers import RESULT_ID_PREFIX


def close(context: NodeContext) -> NodeBody:
    """End the debate by setting its final status and adding the result message."""
    state = context.state
    end_reason = state["step"]["end_reason"]
    status = "limit" if end_reason["cause"] == "limit" else "done"
    yield from store_positions(context, context.debate, context.env.clock())
    stored_solution = state.get("solution", "")
    solution = with_final_answer(state, stored_solution)
    values = {**state, "solution": solution}
    update: Update = {"status": status, "current_speaker": "", **result_update(values, *context.origin)}
    answer = update["answer"]
    yield Emit({"event": "end", "status": status, "reason": end_reason["reason"], "answer": answer})
    return update if solution == stored_solution else {**update, "solution": solution}


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

"""Node `close`: sets the final status and writes the result as the last message."""

from langchain_core.messages import AIMessage

from moot.calls.effects import Emit, NodeBody, PutInStore, Update
from moot.judging.judge_response import ShownField, shown
from moot.judging.ui_messages import result_ui_messages
from moot.memory.cross_debate_memory import store_positions
from moot.protocols.registry import protocol_named, rules_of
from moot.runtime.environment import NodeContext
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, StateValues, step_number
from moot.state.entries import message_id
from moot.state.reducers import RESULT_ID_PREFIX
from moot.state.verdict import COUNT, PLACEHOLDER, PanelVerdict
from moot.text.plain_text import clip

WHY_CHARS, SOLUTION_CHARS = 700, 2_000
"""Maximum numbers of characters in the judge's reasons and in the solution, as shown in the result
message."""
MOST = 6
"""Maximum number of items in each list of the message that announces the debate's result."""


def close(state: ConversationState, context: NodeContext) -> NodeBody:
    """End the debate by setting its final status and adding the result message."""
    ended = state["step"]["end_reason"]
    status = "limit" if ended["cause"] == "limit" else "done"
    yield from store_positions(state, context.debate, context.env.clock())
    config = frozen_config(state)
    protocol = protocol_named(config.protocol)
    namespace, record = protocol.store_namespace(config), protocol.store_record(state, config)
    if namespace and record and context.debate:
        yield PutInStore(namespace, context.debate, record)
    yield Emit({"event": "end", "status": status, "reason": ended["reason"]})
    given = state.get("solution", "")
    solution = with_final_answer(state, given)
    values = {**state, "solution": solution}
    update: Update = {
        "status": status,
        "current_speaker": "",
        **result_update(values, *context.origin),
    }
    return update if solution == given else {**update, "solution": solution}


def with_final_answer(state: ConversationState, solution: str) -> str:
    """Return the solution, with the protocol's final answer appended if one is needed."""
    protocol = protocol_named(frozen_config(state).protocol)
    answer = protocol.final_answer(state) if protocol.always_answers or not solution else ""
    return f"{solution}\n\n{answer}".strip() if answer else solution


def result_update(values: StateValues, *origin: str) -> Update:
    """Return the state update that stores a debate's result.

    It has the result message, the answer and the UI messages. The message has the decision, reasons,
    citations and open points. `origin` are the ids of the debate and the checkpoint.
    """
    number, no = (values.get("verdict") or {}).get("judging", 0), step_number(values)
    known_as = message_id(f"{RESULT_ID_PREFIX}{no}-{number}", *origin)
    return {
        "messages": [AIMessage(result_text(values), id=known_as, name="judge")],
        "answer": final_answer(values),
        "ui": result_ui_messages(values, _headline(values), known_as),
    }


def _headline(values: StateValues) -> str:
    """Return one line that states the debate's result, or `""` if there is no valid verdict."""
    verdict: PanelVerdict | None = values.get("verdict") or None
    if verdict is None or verdict["status"] != "ok":
        return ""
    config = frozen_config(values)
    return protocol_named(config.protocol).headline(verdict, config.names())


def result_text(values: StateValues, share: float = 1.0) -> str:
    """Return the text of the debate's result message as Markdown.

    `share` scales its parts' maximum lengths.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    ended = (values.get("step") or {}).get("end_reason", {}).get("reason", "")
    config = frozen_config(values)
    protocol = protocol_named(config.protocol)
    parts = _verdict_text(verdict, values, share) if verdict else [f"**No verdict.** {ended}".strip()]
    parts.append(clip(protocol.at_a_glance(values.get("solution", "")), int(share * SOLUTION_CHARS)))
    return "\n\n".join(filter(None, parts))


def _verdict_text(verdict: PanelVerdict, values: StateValues, share: float) -> list[str]:
    why, most = int(share * WHY_CHARS), max(1, int(share * MOST))
    if verdict["status"] == "failed":
        return [f"**No verdict.** Judging failed: {clip(verdict['error'], why)}"]
    if verdict.get("placeholder"):
        return [f"**{PLACEHOLDER}**"]
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    cited = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:most]
    names, transcript = frozen_config(values).names(), values.get("full_transcript") or []
    fields = shown(verdict, names, headline=_headline(values), transcript=transcript)
    return [
        *(_field_text(field, most, why) for field in fields),
        clip(verdict["reasoning"], why),
        f"From {', '.join(cited)}." if cited else "",
    ]


def _field_text(field: ShownField, most: int, chars: int) -> str:
    if field.name in ("question", "winner"):
        return f"**{clip(field.text, chars)}**"
    if field.single:
        return f"{field.label}: {clip(field.text, chars)}"
    lines = [f"{line.text}{''.join(f' [{key}]' for key in line.citations)}" for line in field.lines[:most]]
    return "\n".join([f"{field.label}:", *(f"- {clip(line, chars // 2)}" for line in lines)])


def final_answer(values: StateValues) -> str:
    """Return a debate's final answer as Markdown.

    Every protocol has an answer, so a debate can be compared with a single answer or a vote. It is `""`
    before the end.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    solution = rules_of(values).at_a_glance(values.get("solution", "")).strip()
    judged = verdict and verdict["status"] == "ok" and not verdict.get("placeholder")
    decision = verdict.get("decision", "") if verdict and judged else ""
    if verdict and judged and not verdict.get("solution_markdown") and decision:
        solution = ""  # findings that a protocol adds to a decision are no answer
    is_option = verdict is not None and "options" in verdict and verdict["judge"] != COUNT
    repeated = decision and decision in solution and not is_option  # an option can occur in any text
    return "\n\n".join(filter(None, [decision, "" if repeated else solution]))

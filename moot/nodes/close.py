"""`close`: ends the debate in good order, and tells the outcome to those who read messages alone."""

from langchain_core.messages import AIMessage

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Update
from moot.nodes.judging.opinion_check import confidence_of
from moot.nodes.memory.earlier import remember_positions
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.text.plain import clip
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, StateValues, step_no
from moot.state.reducers import OUTCOME
from moot.state.verdict import PLACEHOLDER, Decision

WHY_CHARS, SOLUTION_CHARS = 700, 2_000
"""A reader who wants more than a glance has the state, the report and `moot ask`."""
MOST = 6
"""Citations, and open questions, that it names."""


def close(state: ConversationState, context: NodeContext) -> Body:
    """Set the final status and say why it ended."""
    ended = state["step"]["ended_by"]
    status = "limit" if ended["by"] == "limit" else "done"
    yield from remember_positions(state, context.debate, context.env.clock())
    yield Emit({"event": "end", "status": status, "reason": ended["reason"]})
    given = state.get("solution", "")
    solution = with_answer(state, given)
    message = outcome_message({**state, "solution": solution})
    update: Update = {"status": status, "current_speaker": "", "messages": [message]}
    return update if solution == given else {**update, "solution": solution}


def with_answer(state: ConversationState, solution: str) -> str:
    """Return what a verdict gave, with the protocol's answer where that follows it or stands in for it."""
    protocol = protocol_named(frozen_config(state).protocol)
    answer = protocol.answer(state) if protocol.always_answers or not solution else ""
    return f"{solution}\n\n{answer}".strip() if answer else solution


def outcome_message(values: StateValues) -> AIMessage:
    """Return the last message of a debate that has ended: decision, why, citations and what stays open."""
    number, no = (values.get("verdict") or {}).get("judging", 0), step_no(values)
    return AIMessage(outcome_text(values), id=f"{OUTCOME}{no}-{number}", name="judge")


def outcome_text(values: StateValues, share: float = 1.0) -> str:
    """Return what that message says, Markdown; with `share` of the room, whoever reads it has less of it."""
    verdict: Decision | None = values.get("verdict") or None
    ended = (values.get("step") or {}).get("ended_by", {}).get("reason", "")
    config = frozen_config(values)
    protocol = protocol_named(config.protocol)
    headline = protocol.headline(verdict, config.names()) if verdict else ""
    parts = _ruling(verdict, headline, share) if verdict else [f"**No verdict.** {ended}".strip()]
    parts.append(clip(protocol.at_a_glance(values.get("solution", "")), int(share * SOLUTION_CHARS)))
    return "\n\n".join(filter(None, parts))


def _ruling(verdict: Decision, headline: str, share: float) -> list[str]:
    why, most = int(share * WHY_CHARS), max(1, int(share * MOST))
    if verdict["status"] == "failed":
        return [f"**No verdict.** Judging failed: {clip(verdict['error'], why)}"]
    if verdict.get("placeholder"):
        return [f"**{PLACEHOLDER}**"]
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    cited = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:most]
    unmet = [item["text"] for item in verdict["unmet_requirements"]]
    sure = confidence_of(verdict)
    left = [*unmet, *verdict["open_questions"]][:most]
    return [
        f"**{headline}**" + ("" if sure is None else f" (confidence {sure} of 100)"),
        clip(verdict["reasoning"], why),
        f"From {', '.join(cited)}." if cited else "",
        "\n".join(["Open:", *(f"- {clip(item, why // 2)}" for item in left)]) if left else "",
    ]

"""Questions about a finished debate in its chat, and model calls after a limit is reached."""

import re
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage

from moot.calls.effects import BackgroundTask, LocalJob, LocalWork, ModelCall, NodeBody, Update
from moot.configuration.configure import operators_limits
from moot.memory.question_prompt import JudgedResult, QuestionPrompt, ask_index, question_prompt
from moot.memory.questions import ANSWER_SCHEMA, JUDGED_SCHEMA, DebateAnswer, answer_schema, ask
from moot.people.interjections import new_input_messages, new_input_text
from moot.prompts.request import model_params, prompt_budget, schema_tokens, with_schema
from moot.protocols.base import End
from moot.protocols.registry import limit_reached
from moot.retrieval.indexes import embeddings_of
from moot.runtime.environment import NodeContext
from moot.runtime.result_text import decision_line, verdict_text
from moot.state.config import DebateConfig
from moot.state.config.boundary import Capability, Permissions
from moot.state.config.model_settings import OFFLINE, RECORDED
from moot.state.conversation import ConversationState, StateValues
from moot.state.entries import message_id
from moot.state.errors import ModelError
from moot.state.reducers import RESULT_ID_PREFIX
from moot.state.verdict import PanelVerdict


def can_continue(text: str, config: DebateConfig) -> bool:
    """Return True if a message such as `Go on` asks a finished debate to continue."""
    names = "|".join(re.escape(name) for each in config.debaters for name in (each.name, each.id))
    return bool(re.match(rf"\s*((please,?\s+)?go on\b|@({names})\b|({names})\s*[,:])", text, re.IGNORECASE))


def answer_questions(state: ConversationState, context: NodeContext) -> NodeBody:
    """Answer a person's new questions about a finished debate. The transcript does not change."""
    context = replace(context, permissions=permissions_for_answer(context.permissions))
    reached = spending_ceiling_reached(state, context.permissions.config, context.env.default_config())
    try:
        if reached:
            text = f"**No answer.** {reached}"
        else:
            text = (yield from answer_question(state, context, new_input_text(state))).to_markdown()
    except ModelError as error:
        text = f"**No answer.** {error}"
    return _answer_update(state, context, text)


def refuse_continuation(state: ConversationState, context: NodeContext, reached: End) -> NodeBody:
    """Tell a person why a finished debate takes no more turns. No model is called."""
    yield from ()
    config = context.permissions.config
    by_operator = spending_ceiling_reached(state, config, context.env.default_config())
    return _answer_update(
        state,
        context,
        f"**No answer.** {by_operator or f'{reached.reason}, so the debate takes no more turns'}",
    )


def _answer_update(state: ConversationState, context: NodeContext, text: str) -> Update:
    questions = new_input_messages(state)
    number = len(state.get("calls") or [])
    ids = [f"{RESULT_ID_PREFIX}asked-{number}-{place}" for place, _ in enumerate(questions)]
    assigned = {"op": "assign_ids", "ids": ids, "names": [message.name or "user" for message in questions]}
    known_as = message_id(f"{RESULT_ID_PREFIX}answer-{number}", *context.origin)
    message = AIMessage(text, id=known_as, name="judge")
    return {"status": state["status"], "messages": [assigned, message]}


def spending_ceiling_reached(state: StateValues, config: DebateConfig, operator: DebateConfig) -> str:
    """Return an error message if a debate has reached the operator's spending limit, otherwise `""`.

    Args:
        state: state of the debate.
        config: authorized configuration of the debate.
        operator: configuration of the operator, in addition to `MOOT_CONFIG`.
    """
    reached = limit_reached(state, operators_limits(config, operator))
    return "" if not reached or reached.limit == "limits.wall_clock_s" else _no_more_calls(reached)


def _no_more_calls(reached: End) -> str:
    return f"{reached.reason}, so the debate makes no more model calls: only the operator can raise the limit"


def call_refusal(
    state: ConversationState, context: NodeContext, node: str, calls: Sequence[ModelCall]
) -> str:
    """Return an error message if a node must not make these model calls, otherwise `""`.

    After a step has reached a ceiling of the operator, the debate is brought to its end once. Each node may
    then make its calls once. A client that writes the state could otherwise run the node again.

    Args:
        state: state of the debate when the node began.
        context: context of the node.
        node: name of the node. `open` checks the limits itself.
        calls: calls that the node wants to make.
    """
    operators = operators_limits(context.permissions.config, context.env.default_config())
    reached = limit_reached(state, operators)
    if not reached or node == "open":
        return ""
    turns = [each["checkpoint"] for each in state.get("receipts") or []]
    # An imported document may state checkpoints that do not exist yet.
    last_turn = max((each for each in turns if each < context.checkpoint), default="")
    made = {
        each["purpose"]
        for each in state.get("calls") or []
        if each["node"] == node and each["checkpoint"] > last_turn and not each["error"]
    }
    return "" if made.isdisjoint(call.purpose for call in calls) else _no_more_calls(reached)


def permissions_for_answer(permissions: Permissions, model: str | None = None) -> Permissions:
    """Return the permissions for using the given model to answer questions about a debate.

    Default: the judge's model. A recorded debate is answered by the offline model.
    """
    is_recording = model_params(permissions.config, permissions.config.judge).model.startswith(RECORDED)
    chosen = model or (OFFLINE if is_recording else None)
    if not chosen:
        return permissions
    judge = permissions.config.judge.model_copy(update={"model": chosen})
    granted = {*permissions.granted, Capability("model", model)} if model else permissions.granted
    return replace(
        permissions, config=permissions.config.model_copy(update={"judge": judge}), granted=granted
    )


def answer_question(
    state: ConversationState, context: NodeContext, question: str
) -> BackgroundTask[DebateAnswer]:
    """Answer a question about a debate from its transcript.

    Raises:
        ModelError: no model replied.
    """
    seen: list[QuestionPrompt] = []

    def look() -> str:
        seen.append(_question_prompt(state, context, question))
        return ""

    # This runs in a worker thread, because it may wait for an embedding model. The journal does not store the
    # prompt, so the prompt is assembled again after a resume.
    yield LocalWork([LocalJob(question, look)])
    asked = seen[0] if seen else _question_prompt(state, context, question)
    config = context.permissions.config
    count = context.env.token_counter_for(config, model_params(config, config.judge).model)
    # The schema lists the ids of the shown messages if the ids fit into the remaining tokens.
    schema = JUDGED_SCHEMA if asked.result else ANSWER_SCHEMA
    listing = answer_schema(asked.prompt.shown, asked.result)
    extra = schema_tokens(listing, count) - schema_tokens(schema, count)
    fits = asked.prompt.total_tokens + extra <= config.memory.budget.total
    return (yield from ask(state, config, asked, listing if fits else schema))


def _question_prompt(state: ConversationState, context: NodeContext, question: str) -> QuestionPrompt:
    """Return the prompt for a question about a debate.

    Indexing a long transcript for the first time takes a while.
    """
    config, env = context.permissions.config, context.env
    embeddings = embeddings_of(context.permissions, env.embeddings)
    index = ask_index(env.indexes, context.debate, state, config, embeddings)
    count = env.token_counter_for(config, model_params(config, config.judge).model)
    result = _judged_result(state)
    schema = JUDGED_SCHEMA if result else ANSWER_SCHEMA
    budget = prompt_budget(config.memory.budget.total, schema, count)
    asked = question_prompt(state, config, question, index, count, budget=budget, result=result)
    return replace(asked, prompt=with_schema(asked.prompt, schema, count))


def _judged_result(state: ConversationState) -> JudgedResult | None:
    """Return the verdict on a debate, or `None` if no judge and no vote decided it."""
    verdict: PanelVerdict | None = state.get("verdict") or None
    if not verdict or verdict["status"] != "ok" or verdict.get("placeholder"):
        return None
    return JudgedResult(decision_line(state), verdict_text(verdict, state))

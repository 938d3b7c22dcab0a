"""Results of a debate as text, questions about it in its chat, and model calls after a limit."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage

from moot.calls.effects import BackgroundTask, LocalJob, LocalWork, ModelCall, NodeBody, Update
from moot.config import DebateConfig
from moot.config.boundary import Capability, Permissions
from moot.config.debate_config import frozen_config
from moot.config.model_settings import OFFLINE, RECORDED
from moot.configuration import operators_limits
from moot.judging.judge_response import ShownField, shown
from moot.memory import question_prompt as question_prompts
from moot.people import new_input_messages, new_input_text
from moot.prompts.request import model_params, prompt_budget, schema_tokens, with_schema
from moot.protocols.base import End
from moot.protocols.registry import limit_reached, protocol_named
from moot.retrieval.indexes import embeddings_of
from moot.runtime.environment import NodeContext
from moot.runtime.fitting import fitted_context, until_prompts_fit
from moot.state.conversation import ConversationState, StateValues
from moot.state.entries import ModelFacts, message_id
from moot.state.errors import ModelError
from moot.state.reducers import RESULT_ID_PREFIX
from moot.state.verdict import PLACEHOLDER, PanelVerdict
from moot.text.plain_text import clip

WHY_CHARS = 700
"""Maximum length of the reasons in a debate's result message, in characters."""
SOLUTION_CHARS = 2_000
"""Maximum length of the solution in a debate's result message, in characters."""
MOST = 6
"""Maximum number of items in each list of the debate's result message."""


def judged_headline(values: StateValues) -> str:
    """Return one line that states the debate's result, or `""` if there is no valid verdict."""
    verdict: PanelVerdict | None = values.get("verdict") or None
    if verdict is None or verdict["status"] != "ok":
        return ""
    config = frozen_config(values)
    return protocol_named(config.protocol).headline(verdict, config.names())


def decision_line(values: StateValues) -> str:
    """Return the decision on the debate's question, or the winner if nothing was decided."""
    decision, headline = (values.get("verdict") or {}).get("decision") or "", judged_headline(values)
    return headline if headline.startswith(decision) else decision


def result_text(values: StateValues, share: float = 1.0) -> str:
    """Return the text of the message that reports the debate's result, as Markdown.

    `share` scales the maximum length of each part.
    """
    verdict: PanelVerdict | None = values.get("verdict") or None
    ended = (values.get("step") or {}).get("end_reason", {}).get("reason", "")
    config = frozen_config(values)
    protocol = protocol_named(config.protocol)
    text = verdict_text(verdict, values, share) if verdict else f"**No verdict.** {ended}".strip()
    solution = clip(protocol.at_a_glance(values.get("solution", "")), int(share * SOLUTION_CHARS))
    return "\n\n".join(filter(None, [text, solution]))


def verdict_text(verdict: PanelVerdict, values: StateValues, share: float = 1.0) -> str:
    """Return a verdict as Markdown text, without the debate's solution.

    `share` scales the maximum length of each part.
    """
    max_chars, max_items = int(share * WHY_CHARS), max(1, int(share * MOST))
    if verdict["status"] == "failed":
        return f"**No verdict.** Judging failed: {clip(verdict['error'], max_chars)}"
    if verdict.get("placeholder"):
        return f"**{PLACEHOLDER}**"
    scores = [score for row in verdict["scores"].values() for score in row.values()]
    citations = list(dict.fromkeys(key for score in scores for key in score["citations"]))[:max_items]
    names, transcript = frozen_config(values).names(), values.get("full_transcript") or []
    fields = shown(verdict, names, headline=judged_headline(values), transcript=transcript)
    parts = [
        *(_field_text(field, max_items, max_chars) for field in fields),
        clip(verdict["reasoning"], max_chars),
        f"From {', '.join(citations)}." if citations else "",
    ]
    return "\n\n".join(filter(None, parts))


def _field_text(field: ShownField, max_items: int, max_chars: int) -> str:
    if field.name in ("question", "winner"):
        return f"**{clip(field.text, max_chars)}**"
    if field.single:
        return f"{field.label}: {clip(field.text, max_chars)}"
    lines = [
        f"{line.text}{''.join(f' [{key}]' for key in line.citations)}" for line in field.lines[:max_items]
    ]
    return "\n".join([f"{field.label}:", *(f"- {clip(line, max_chars // 2)}" for line in lines)])


def can_continue(text: str, config: DebateConfig) -> bool:
    """Return True if a person's message, such as `Go on`, asks a finished debate to continue."""
    names = "|".join(re.escape(name) for each in config.debaters for name in (each.name, each.id))
    return bool(re.match(rf"\s*((please,?\s+)?go on\b|@({names})\b|({names})\s*[,:])", text, re.IGNORECASE))


def answer_questions(state: ConversationState, context: NodeContext) -> NodeBody:
    """Answer a person's new questions about a finished debate. The transcript does not change."""
    context = replace(context, permissions=permissions_for_answer(context.permissions))
    reached = spending_refusal(state, context.permissions.config, context.env.default_config())
    try:
        if reached:
            text = f"**No answer.** {reached}"
        else:
            text = (yield from answer_question(state, context, new_input_text(state))).to_markdown()
    except ModelError as error:
        text = f"**No answer.** {error}"
    return _answer_update(state, context, text)


def refuse_continuation(state: ConversationState, context: NodeContext, reached: End) -> NodeBody:
    """Tell a person why the finished debate takes no more turns. No model is called."""
    yield from ()
    config = context.permissions.config
    by_operator = spending_refusal(state, config, context.env.default_config())
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
    answer_id = message_id(f"{RESULT_ID_PREFIX}answer-{number}", *context.origin)
    message = AIMessage(text, id=answer_id, name="judge")
    return {"status": state["status"], "messages": [assigned, message]}


def spending_refusal(state: StateValues, config: DebateConfig, operator: DebateConfig) -> str:
    """Return an error message if a debate has reached the operator's limit.

    The message is `""` if it has not. The limit on time does not count.

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
    """Return an error message if an operator's limit forbids the calls.

    The message is `""` if the calls are allowed. After a step has reached a ceiling of the operator, the
    debate is brought to its end once. Each node may then make its calls once. A client that writes the state
    could otherwise run the node again.

    Args:
        state: state of the debate when the node began.
        context: context of the node.
        node: name of the node. `open` checks the limits itself.
        calls: calls that the node wants to make.
    """
    limits_config = operators_limits(context.permissions.config, context.env.default_config())
    reached = limit_reached(state, limits_config)
    if not reached or node == "open":
        return ""
    turns = [each["checkpoint"] for each in state.get("receipts") or []]
    # An imported document may state checkpoints that do not exist yet.
    last_turn = max((each for each in turns if each < context.checkpoint), default="")
    purposes = {
        each["purpose"]
        for each in state.get("calls") or []
        if each["node"] == node and each["checkpoint"] > last_turn and not each["error"]
    }
    return "" if purposes.isdisjoint(call.purpose for call in calls) else _no_more_calls(reached)


def permissions_for_answer(permissions: Permissions, model: str | None = None) -> Permissions:
    """Return the permissions for answering questions about a debate.

    `model` answers the questions. Without it, the judge's model answers them, or the offline model if the
    debate is recorded.
    """
    is_recording = model_params(permissions.config, permissions.config.judge).model.startswith(RECORDED)
    answer_model = model or (OFFLINE if is_recording else None)
    if not answer_model:
        return permissions
    judge = permissions.config.judge.model_copy(update={"model": answer_model})
    granted = {*permissions.granted, Capability("model", model)} if model else permissions.granted
    return replace(
        permissions, config=permissions.config.model_copy(update={"judge": judge}), granted=granted
    )


def answer_question(
    state: ConversationState, context: NodeContext, question: str
) -> BackgroundTask[question_prompts.DebateAnswer]:
    """Answer a question about a debate from its transcript, with a prompt that fits the model.

    Raises:
        ModelError: no model replied.
    """

    def answer(facts: Mapping[str, ModelFacts]) -> BackgroundTask[question_prompts.DebateAnswer]:
        return _answer(state, fitted_context(context, facts, "ask"), question)

    return (yield from until_prompts_fit(answer, state.get("model_facts") or {}))


def _answer(
    state: ConversationState, context: NodeContext, question: str
) -> BackgroundTask[question_prompts.DebateAnswer]:
    prompts: list[question_prompts.QuestionPrompt] = []

    def assemble() -> str:
        prompts.append(_question_prompt(state, context, question))
        return ""

    # This runs in a worker thread, because it may wait for an embedding model. The journal does not store the
    # prompt, so the prompt is assembled again after a resume.
    yield LocalWork([LocalJob(question, assemble)])
    question_prompt = prompts[0] if prompts else _question_prompt(state, context, question)
    config = context.permissions.config
    count = context.env.token_counter_for(config, model_params(config, config.judge).model)
    # The schema lists the ids of the shown messages if the ids fit into the remaining tokens.
    schema = question_prompts.JUDGED_SCHEMA if question_prompt.result else question_prompts.ANSWER_SCHEMA
    listing_schema = question_prompts.answer_schema(question_prompt.prompt.shown_ids, question_prompt.result)
    extra_tokens = schema_tokens(listing_schema, count) - schema_tokens(schema, count)
    fits = question_prompt.prompt.total_tokens + extra_tokens <= config.memory.budget.total
    return (
        yield from question_prompts.ask(state, config, question_prompt, listing_schema if fits else schema)
    )


def _question_prompt(
    state: ConversationState, context: NodeContext, question: str
) -> question_prompts.QuestionPrompt:
    """Return the prompt for a question about a debate.

    Indexing a long transcript for the first time takes a while.
    """
    config, env = context.permissions.config, context.env
    embeddings = embeddings_of(context.permissions, env.embeddings)
    index = question_prompts.ask_index(env.indexes, context.debate, state, config, embeddings)
    count = env.token_counter_for(config, model_params(config, config.judge).model)
    result = _judged_result(state)
    schema = question_prompts.JUDGED_SCHEMA if result else question_prompts.ANSWER_SCHEMA
    budget = prompt_budget(config.memory.budget.total, schema, count)
    question_prompt = question_prompts.question_prompt(
        state, config, question, index, count, budget=budget, result=result
    )
    return replace(question_prompt, prompt=with_schema(question_prompt.prompt, schema, count))


def _judged_result(state: ConversationState) -> question_prompts.JudgedResult | None:
    """Return the verdict on a debate, or `None` if it was not decided.

    A judge or a vote decides a debate.
    """
    verdict: PanelVerdict | None = state.get("verdict") or None
    if not verdict or verdict["status"] != "ok" or verdict.get("placeholder"):
        return None
    return question_prompts.JudgedResult(decision_line(state), verdict_text(verdict, state))

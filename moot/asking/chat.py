"""Chat of a finished debate: a person's questions are answered there, or the debate continues."""

import re

from langchain_core.messages import AIMessage

from moot.asking.answer import answer_question, permissions_for_answer
from moot.calls.effects import NodeBody, Update
from moot.config import DebateConfig
from moot.people import new_input_messages, new_input_text
from moot.protocols.schedule import End
from moot.runtime.context import NodeContext
from moot.runtime.spending import spending_refusal
from moot.state.entries import message_id
from moot.state.errors import ModelError
from moot.state.reducers import RESULT_ID_PREFIX


def can_continue(text: str, config: DebateConfig) -> bool:
    """Return True if a person's message, such as `Go on`, asks a finished debate to continue."""
    names = "|".join(re.escape(name) for each in config.debaters for name in (each.name, each.id))
    return bool(re.match(rf"\s*((please,?\s+)?go on\b|@({names})\b|({names})\s*[,:])", text, re.IGNORECASE))


def answer_questions(context: NodeContext) -> NodeBody:
    """Answer a person's new questions about a finished debate. The transcript does not change."""
    asking = context.under(permissions_for_answer(context.permissions))
    try:
        if refusal := spending_refusal(context.ceiling_reached):
            text = f"**No answer.** {refusal}"
        else:
            text = (yield from answer_question(asking, new_input_text(asking.state))).to_markdown()
    except ModelError as error:
        text = f"**No answer.** {error}"
    return _answer_update(context, text)


def refuse_continuation(context: NodeContext, reached: End) -> NodeBody:
    """Tell a person why the finished debate takes no more turns. No model is called."""
    yield from ()
    refusal = spending_refusal(context.ceiling_reached)
    return _answer_update(
        context, f"**No answer.** {refusal or f'{reached.reason}, so the debate takes no more turns'}"
    )


def _answer_update(context: NodeContext, text: str) -> Update:
    state = context.state
    questions = new_input_messages(state)
    number = len(state.get("calls") or [])
    ids = [f"{RESULT_ID_PREFIX}asked-{number}-{place}" for place, _ in enumerate(questions)]
    assigned = {"op": "assign_ids", "ids": ids, "names": [message.name or "user" for message in questions]}
    answer_id = message_id(f"{RESULT_ID_PREFIX}answer-{number}", *context.origin)
    message = AIMessage(text, id=answer_id, name="judge")
    return {"status": state["status"], "messages": [assigned, message]}

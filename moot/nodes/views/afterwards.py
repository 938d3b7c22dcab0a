"""What people say in a chat once a debate is over: questions to its record, unless it is to go on."""

import re
from dataclasses import replace

from langchain_core.messages import AIMessage

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Errand, Job, Work
from moot.nodes.memory.indexes import embeddings_of
from moot.nodes.people.interjections import foreign_messages, said_outside
from moot.nodes.prompts.request import voice_of
from moot.nodes.views.answer import DebateAnswer, ask
from moot.nodes.views.question_view import AskView, ask_index, ask_view
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, Reach
from moot.state.config.model_settings import OFFLINE, RECORDED
from moot.state.conversation import ConversationState
from moot.state.errors import ModelError
from moot.state.reducers import OUTCOME


def goes_on(said: str, config: DebateConfig) -> bool:
    """Return whether words after the end are to be argued: they begin with `Go on`, or a debater's name."""
    names = "|".join(re.escape(name) for each in config.debaters for name in (each.name, each.id))
    return bool(re.match(rf"\s*((please,?\s+)?go on\b|@({names})\b|({names})\s*[,:])", said, re.IGNORECASE))


def answer_floor(state: ConversationState, context: NodeContext) -> Body:
    """Answer what was said outside, to all who read messages; the debate stays as it is."""
    context = replace(context, claim=answering_claim(context.claim))
    said = foreign_messages(state)
    try:
        answer = yield from answer_question(state, context, said_outside(state))
        text = answer.to_markdown()
    except ModelError as error:
        text = f"**No answer.** {error}"
    number = len(state.get("calls") or [])
    ids = [f"{OUTCOME}asked-{number}-{place}" for place, _ in enumerate(said)]
    adopted = {"op": "adopt", "ids": ids, "names": [message.name or "user" for message in said]}
    told = AIMessage(text, id=f"{OUTCOME}answer-{number}", name="judge")
    return {"status": state["status"], "messages": [adopted, told]}


def answering_claim(claim: Claim, model: str | None = None) -> Claim:
    """Return a claim under which a model answers, by default the judge's; for a recording none does."""
    is_recording = voice_of(claim.config, claim.config.judge).model.startswith(RECORDED)
    chosen = model or (OFFLINE if is_recording else None)
    if not chosen:
        return claim
    judge = claim.config.judge.model_copy(update={"model": chosen})
    granted = {*claim.granted, Reach("model", model)} if model else claim.granted
    return replace(claim, config=claim.config.model_copy(update={"judge": judge}), granted=granted)


def answer_question(state: ConversationState, context: NodeContext, question: str) -> Errand[DebateAnswer]:
    """Answer a question to a debate's record.

    Raises:
        ModelError: no model answered.
    """
    seen: list[AskView] = []

    def look() -> str:
        seen.append(_question_view(state, context, question))
        return ""

    # In a thread: it may wait for an embedding model. What a journal says was done is done again, at once.
    yield Work([Job(question, look)])
    view = seen[0] if seen else _question_view(state, context, question)
    return (yield from ask(state, context.claim.config, view))


def _question_view(state: ConversationState, context: NodeContext, question: str) -> AskView:
    """Assemble the view of a question; reading a long transcript for the first time takes a while."""
    config, env = context.claim.config, context.env
    embeddings = embeddings_of(context.claim, env.embeddings)
    index = ask_index(env.indexes, context.debate, state, config, embeddings)
    count = env.count_for(config, voice_of(config, config.judge).model)
    return ask_view(state, config, question, index, count)

"""Asks a stored debate a question, without changing it."""

import asyncio
from typing import cast

from moot.graph.session import DebateSession
from moot.nodes.driving.answering import Answering, JournalPlace, run_flow
from moot.nodes.driving.environment import NodeContext
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.views.afterwards import answering_claim, question_seen
from moot.nodes.views.answer import DebateAnswer, ask
from moot.state.conversation import ConversationState
from moot.state.entries import clean_text
from moot.state.errors import InputError


def ask_debate(session: DebateSession, question: str, model: str | None = None) -> DebateAnswer:
    """Answer a question about a debate from its record; another process may run it meanwhile.

    Args:
        session: of the debate.
        question: in words.
        model: who answers, by default the judge's model; a recording's answers nothing new, so none does.
    """
    asked = clean_text(question).strip()
    if not asked:
        raise InputError("the question is empty: say what you want to know")
    state = cast(ConversationState, session.state().values)
    context = NodeContext(session.environment, answering_claim(session.claim(state), model), session.thread)
    claim, environment = context.claim, context.env

    async def answer() -> DebateAnswer:
        seen = await asyncio.to_thread(question_seen, state, context, asked)  # other debates run on this loop
        return await run_flow(ask(state, claim.config, seen), Answering(environment, claim, JournalPlace()))

    return call_from_sync(answer)

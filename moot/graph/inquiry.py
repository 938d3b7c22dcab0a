"""Asks a stored debate a question, without changing it."""

import asyncio
from typing import cast

from moot.graph.session import DebateSession
from moot.nodes.driving.answering import Answering, JournalPlace, run_flow
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.memory.embeddings import embeddings_of
from moot.nodes.views.answer import DebateAnswer, answering_model, ask
from moot.nodes.views.question_view import AskView, ask_index, ask_view
from moot.state.conversation import ConversationState
from moot.state.entries import clean_text
from moot.state.errors import InputError


def ask_debate(session: DebateSession, question: str) -> DebateAnswer:
    """Answer a question about a debate from its record; another process may run it meanwhile."""
    asked = clean_text(question).strip()
    if not asked:
        raise InputError("the question is empty: say what you want to know")
    state = cast(ConversationState, session.state().values)
    claim, environment = session.claim(state), session.environment
    config = claim.config

    def view() -> AskView:
        count = environment.count_for(config, answering_model(config))
        embeddings = embeddings_of(claim, environment.embeddings)
        index = ask_index(environment.indexes, session.thread, state, config, embeddings)
        return ask_view(state, config, asked, index, count)

    async def answer() -> DebateAnswer:
        # Reading a long transcript for the first time takes a while; other debates run on this loop.
        seen = await asyncio.to_thread(view)
        return await run_flow(ask(state, config, seen), Answering(environment, claim, JournalPlace()))

    return call_from_sync(answer)

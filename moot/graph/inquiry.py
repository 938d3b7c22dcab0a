"""Asks a stored debate a question, without changing it."""

import asyncio
from dataclasses import replace
from typing import cast

from moot.graph.session import DebateSession
from moot.nodes.driving.answering import Answering, JournalPlace, run_flow
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.memory.embeddings import embeddings_of
from moot.nodes.views.answer import DebateAnswer, answering_model, ask
from moot.nodes.views.question_view import AskView, ask_index, ask_view
from moot.state.config.boundary import Reach
from moot.state.config.model_settings import OFFLINE, RECORDED
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
    claim, environment = session.claim(state), session.environment
    chosen = model or (OFFLINE if answering_model(claim.config).startswith(RECORDED) else None)
    if chosen:
        judge = claim.config.judge.model_copy(update={"model": chosen})
        granted = {*claim.granted, Reach("model", model)} if model else claim.granted
        claim = replace(claim, config=claim.config.model_copy(update={"judge": judge}), granted=granted)
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

"""Asks a stored debate a question, without changing it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from moot.nodes.driving.answering import Answering, Place, run_flow
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.memory.embeddings import embeddings_of
from moot.nodes.views.question_view import Answer, AskView, answering_model, ask, ask_index, ask_view
from moot.state.config import DebateConfig
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState
from moot.state.entries import clean_text
from moot.state.errors import InputError

if TYPE_CHECKING:
    from moot.graph.stored_debate import Debate


def ask_debate(debate: Debate, question: str) -> Answer:
    """Answer a question about a debate, running or over, from its record.

    The debate stays as it is: nothing is written, and another process may run it meanwhile.

    Raises:
        InputError: the question is empty.
        ModelError: no model answered.
    """
    asked = clean_text(question).strip()
    if not asked:
        raise InputError("the question is empty: say what you want to know")
    return call_from_sync(_answer, debate, asked)


async def _answer(debate: Debate, question: str) -> Answer:
    environment, graph = debate._debates.environment, debate._debates.graph
    snapshot = await graph.aget_state({"configurable": {"thread_id": debate.id}})
    state = cast(ConversationState, snapshot.values)
    config = frozen_config(state)
    # Reading a long transcript for the first time takes a while; other debates run on this loop.
    asked = await asyncio.to_thread(_view, debate, environment, state, config, question)
    return await run_flow(ask(state, config, asked), Answering(environment, config, Place()))


def _view(
    debate: Debate, environment: Environment, state: ConversationState, config: DebateConfig, question: str
) -> AskView:
    model = answering_model(config)
    count = environment.count_for(config, model)
    embeddings = embeddings_of(config, environment.embeddings)
    index = ask_index(environment.indexes, debate.id, state, config, embeddings)
    return ask_view(state, config, question, index, count)

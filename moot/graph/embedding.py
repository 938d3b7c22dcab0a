"""Debates in other people's programs: a node of a LangGraph graph, and a LangChain tool for agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field

from moot.graph.api import aopen_debates
from moot.graph.debate import build_graph
from moot.graph.preflight import shorten_debate
from moot.nodes.close import outcome_text
from moot.nodes.driving.environment import Environment, environment_of
from moot.nodes.driving.portal import MANY, call_from_sync
from moot.nodes.models.registry import ChatSource
from moot.nodes.protocols.protocol_table import PROTOCOLS
from moot.nodes.text.tokens import counter, cut_end
from moot.state.config import DebateConfig
from moot.state.config.boundary import requested_config
from moot.state.conversation import ConversationInput, ConversationOutput
from moot.state.errors import InputError, MootError
from moot.state.event_loop import in_thread

VERDICT_TOKENS = 300
"""What an agent's context spares for a verdict, o200k; the rest is `Debate.document`'s."""
VERDICT_SHARE = 0.4
"""Of the last message's room: why, what is open and the answer then have 1,360 characters, 300 tokens."""


def debate_node(
    config: DebateConfig | None = None,
    *,
    map_in: Callable[[Any], str | Mapping[str, object]] | None = None,
    map_out: Callable[[dict[str, Any]], object] | None = None,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
) -> RunnableLambda[Any, Any]:
    """Return a debate as a node of another graph, whose checkpointer keeps it and whose resume resumes it.

    Args:
        config: who argues, how and how long; the default has two debaters.
        map_in: from the parent's state to a topic, or to what `build_graph`'s graph takes, `{"topic": …}`;
            by default the last human message of `messages` is the topic.
        map_out: from the debate's output, its `full_transcript` with it, to the parent's update; by default
            the outcome alone joins `messages`, as one message of the name `judge`.
        environment: models and clock; the default is the real world.
        models: LangChain chat models by name, as for `open_debates`.

    Returns:
        What `add_node` takes, for `invoke` and `ainvoke`. Running it raises `InputError` without a topic.
    """
    graph = build_graph(environment=environment, models=models)
    tell = map_out or (lambda output: {"messages": output["messages"][-1:]})
    options: dict[str, Any] = {
        "context": config or DebateConfig(),
        "output_keys": [*ConversationOutput.__annotations__, "full_transcript"],
    }

    def debate_input(state: object) -> Mapping[str, object]:
        asked = (map_in or _last_asked)(state)
        asked = {"topic": asked} if isinstance(asked, str) else asked
        if unknown := sorted(asked.keys() - ConversationInput.__annotations__.keys()):
            known = ", ".join(ConversationInput.__annotations__)
            raise InputError(f"map_in: a debate takes no {', '.join(unknown)}: give some of {known}")
        return asked

    # The graph stands in both functions itself, where LangGraph looks for a node's subgraph.
    def argue(state: object, config: RunnableConfig) -> object:
        return tell(graph.invoke(debate_input(state), config, **options))

    async def aargue(state: object, config: RunnableConfig) -> object:
        return tell(await graph.ainvoke(debate_input(state), config, **options))

    return RunnableLambda(argue, aargue, name="debate")


def _last_asked(state: object) -> str:
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    said = [message.text for message in convert_to_messages(messages or []) if message.type == "human"]
    return said[-1] if said else ""


class DebaterRequest(BaseModel):
    """Somebody who is to argue."""

    model_config = ConfigDict(extra="forbid")

    name: str
    role: str = ""
    stance: str = Field("", description="What is defended.")
    model: str = Field("", description="Leave it out for everybody's.")


class DebateRequest(BaseModel):
    """What an agent says to have something debated: data alone, everything else is the operator's."""

    question: str = Field(description="What is argued: a question or motion, with the facts that bear on it.")
    protocol: str = Field("", description=f"Rules: {', '.join(PROTOCOLS)}; leave it out for the usual ones.")
    turns: int = Field(0, ge=0, description="Speeches in all, at most; leave it out for the usual number.")


def debate_tool(
    config: DebateConfig | None = None,
    *,
    database: str | None = None,
    most_turns: int = 20,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
) -> BaseTool:
    """Return a LangChain tool by which an agent has a question debated, and reads the verdict.

    The debate is stored, so that `moot show ID` has all of it. What goes wrong is the tool's answer.

    Args:
        config: everything that an agent does not say, and what it may leave out; models, for example.
        database: where debates are stored, as for `open_debates`.
        most_turns: speeches of a debate at most whose protocol or turns an agent chooses.
        environment: models and clock; the default is the real world.
        models: LangChain chat models by name, as for `open_debates`.

    Returns:
        A tool `debate(question, protocol, turns)`; its text has at most `VERDICT_TOKENS` tokens, o200k.
    """
    usual, env = config or DebateConfig(), environment_of(environment, models)

    async def adebate(question: str, protocol: str = "", turns: int = 0) -> str:
        place = ""
        try:
            settings = requested_config(usual, {"protocol": protocol or None, "turns": turns or None})
            if protocol or turns:
                settings = shorten_debate(settings, min(turns or most_turns, most_turns))
            async with aopen_debates(database, environment=env) as debates:
                debate = await in_thread(debates.start, question, settings)
                place = f"\n\nDebate {debate.id}"
                await debate.arun()
                text = outcome_text((await in_thread(debate.state)).values, VERDICT_SHARE)
        except MootError as error:
            raise ToolException(f"{error}{place}") from error
        count = counter()
        return cut_end(text, VERDICT_TOKENS - count(place), count) + place

    return StructuredTool.from_function(
        lambda *words, **request: call_from_sync(lambda: adebate(*words, **request), loop=MANY),
        adebate,
        name="debate",
        description="Have language models argue a question and a judge decide it, which takes minutes. "
        "Returns the verdict, why, what stays open, and the debate's id.",
        args_schema=DebateRequest,
        handle_tool_error=True,
    )

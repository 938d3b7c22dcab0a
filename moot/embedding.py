"""Debates in other programs: a node for a LangGraph graph and a LangChain tool for agents."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import copy_context
from functools import partial
from typing import Any

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import set_config_context
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_stream_writer
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field

from moot.api import Debate, Debates, Event, aopen_debates
from moot.calls.concurrency import run_in_thread
from moot.config import DebateConfig, stages
from moot.debates.config_checks import shorten_debate
from moot.graph.debate import build_graph
from moot.models.registry import ChatSource
from moot.protocols import registry, result
from moot.runtime.background_loop import BATCH_LOOP, call_from_sync
from moot.runtime.environment import Environment, make_environment
from moot.state.conversation import ConversationInput, ConversationOutput
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError, MootError, WaitingForPerson
from moot.state.langgraph_internals import count_answers, detached_config
from moot.text.tokens import counter, truncate_end

VERDICT_TOKENS = 300
"""Maximum number of tokens in the debate tool's reply. The reply contains the verdict and the debate's id.
The tokens are counted with the encoding o200k."""
VERDICT_SHARE = 0.4
"""Share of the debate tool's reply that is reserved for the verdict, from 0 to 1. The reasons and the answer
use the rest."""


def debate_node(
    config: DebateConfig | None = None,
    *,
    map_in: Callable[[Any], str | Mapping[str, object]] | None = None,
    map_out: Callable[[dict[str, Any]], object] | None = None,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
) -> RunnableLambda[Any, Any]:
    """Return a node that runs a debate inside another LangGraph graph.

    That graph checkpoints and resumes it.

    Args:
        config: Configuration of the debate. Default: two debaters.
        map_in: Function from the parent's state to a topic, or to the graph's input such as `{"topic": …}`.
            Default: the last human message of `messages` is the topic.
        map_out: Function from the debate's output, including `full_transcript`, to the update of the parent.
            Default: the result is added to `messages` as one message with the name `judge`.
        environment: Models and clock. Default: real models and the system clock.
        models: LangChain chat models by name, as for `open_debates`.
        tools: LangChain tools of the debaters by name, as for `open_debates`.

    Returns:
        A runnable for `add_node`, for `invoke` and `ainvoke`. It raises `InputError` without a topic.
    """
    graph = build_graph(environment=environment, models=models, tools=tools)
    to_update = map_out or (lambda output: {"messages": output["messages"][-1:]})
    options: dict[str, Any] = {
        "context": config or DebateConfig(),
        "output_keys": [*ConversationOutput.__annotations__, "full_transcript"],
    }

    def debate_input(state: object) -> Mapping[str, object]:
        mapped_input = (map_in or _last_human_message)(state)
        graph_input = {"topic": mapped_input} if isinstance(mapped_input, str) else mapped_input
        if unknown := sorted(graph_input.keys() - ConversationInput.__annotations__.keys()):
            known = ", ".join(ConversationInput.__annotations__)
            raise InputError(
                f"map_in returned a mapping with the unknown keys {', '.join(unknown)}: use only {known}"
            )
        return graph_input

    # Both functions refer to `graph`, because LangGraph finds the subgraph of a node there.
    def argue(state: object, config: RunnableConfig) -> object:
        return to_update(graph.invoke(debate_input(state), config, **options))

    async def aargue(state: object, config: RunnableConfig) -> object:
        return to_update(await graph.ainvoke(debate_input(state), config, **options))

    return RunnableLambda(argue, aargue, name="debate")


def _last_human_message(state: object) -> str:
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    texts = [message.text for message in convert_to_messages(messages or []) if message.type == "human"]
    return texts[-1] if texts else ""


MAX_REQUESTED_NAME = 200
"""Maximum number of characters in a model or protocol name that an agent requests. Errors repeat the name."""
MAX_QUESTION_CHARS = 300_000
"""Maximum number of characters in a question that an agent passes to the debate tool."""


class DebaterRequest(BaseModel):
    """Debater that an agent describes when it requests a debate."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Name of the debater, such as Ada.", examples=["Ada"])
    role: str = Field("", description="Area of expertise of the debater.", examples=["security engineer"])
    stance: str = Field("", description="Position to defend.", examples=["Use one repository."])
    model: str = Field(
        "",
        max_length=MAX_REQUESTED_NAME,
        description="Name of the debater's model. Default: the model of the debate.",
        examples=["anthropic:claude-sonnet-5"],
    )


class DebateRequest(BaseModel):
    """Arguments of the tool that agents call to run a debate.

    The operator configures all other settings.
    """

    question: str = Field(
        max_length=MAX_QUESTION_CHARS, description="Question to debate, including the relevant facts."
    )
    protocol: str = Field(
        "",
        max_length=MAX_REQUESTED_NAME,
        description=f"Protocol of the debate: {', '.join(registry.PROTOCOLS)}. "
        "Default: the configured protocol.",
    )
    turns: int = Field(0, ge=0, description="Maximum number of turns. Default: the configured maximum.")


def debate_tool(
    config: DebateConfig | None = None,
    *,
    database: str | None = None,
    most_turns: int = 20,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
) -> BaseTool:
    """Return a LangChain tool that lets an agent run a debate and receive its verdict.

    The debate is stored, and `moot show ID` prints it. The tool returns errors as its reply.

    In a LangGraph agent, the debate's events go to the `custom` stream, each with the id of its debate under
    `debate`. They include the streamed tokens. If the agent has a checkpointer, a question of the debate to a
    person interrupts the agent, and `Command(resume=…)` gives the answer. An agent that is resumed continues
    the same debate.

    Args:
        config: Default configuration for everything that the agent does not choose.
        database: Database of the debates, as for `open_debates`.
        most_turns: Maximum turns of a debate whose protocol or turns the agent chooses, at least 1.
        environment: Models and clock. Default: real models and the system clock.
        models: LangChain chat models by name, as for `open_debates`.
        tools: LangChain tools of the debaters by name, as for `open_debates`.

    Returns:
        A tool `debate(question, protocol, turns)` whose reply has at most `VERDICT_TOKENS` tokens (o200k).

    Raises:
        ConfigError: `most_turns` is less than 1.
    """
    if most_turns < 1:
        raise ConfigError(f"most_turns is {most_turns}: set it to at least 1")
    default_config, env = config or DebateConfig(), make_environment(environment, models, tools)

    async def adebate(question: str, protocol: str = "", turns: int = 0) -> str:
        reference = ""
        request = {"protocol": protocol or None, "turns": turns or None}
        configurable = ensure_config().get("configurable", {})
        name = _debate_name(configurable, {"question": question, **request})
        try:
            settings = stages.requested_config(default_config, request)
            if protocol or turns:
                settings = shorten_debate(settings, min(turns or most_turns, most_turns))
            async with aopen_debates(database, environment=env) as debates:
                debate = await run_in_thread(_start, debates, question, settings, name, default_config)
                reference = f"\n\nDebate {debate.id}"
                await _run_in_agent(debate, has_checkpointer=name is not None)
                text = result.result_text((await run_in_thread(debate.state)).values, VERDICT_SHARE)
        except MootError as error:
            raise ToolException(f"{error}{reference}") from error
        count = counter()
        return truncate_end(text, VERDICT_TOKENS - count(reference), count) + reference

    return StructuredTool.from_function(
        lambda *arguments, **request: call_from_sync(lambda: adebate(*arguments, **request), loop=BATCH_LOOP),
        adebate,
        name="debate",
        description="Have language models debate a question and let a judge decide it. A debate takes "
        "several minutes. The tool returns the verdict, the reasons for it, the open points, and the id of "
        "the debate.",
        args_schema=DebateRequest,
        handle_tool_error=True,
    )


def _debate_name(configurable: Mapping[str, object], request: Mapping[str, object]) -> str | None:
    """Return the same name whenever an agent repeats a tool call, or `None` without a checkpointer."""
    namespace, thread = configurable.get("checkpoint_ns"), configurable.get("thread_id")
    if not namespace or not thread:
        return None
    return str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(["moot", thread, namespace, request])))


def _start(
    debates: Debates, question: str, settings: DebateConfig, name: str | None, operator: DebateConfig
) -> Debate:
    """Return or start the debate. An agent chose its settings, which grant only what the operator's name."""
    request = partial(debates.start, question, settings, name=name, operator=operator, if_exists="resume")
    with set_config_context(detached_config(ensure_config())) as context:
        return context.run(request)


async def _run_in_agent(debate: Debate, *, has_checkpointer: bool) -> None:
    """Run a debate to its end inside an agent's tool call.

    Its events and questions are passed on to the agent. The debate runs apart from the agent's graph: it uses
    its own database, and its messages do not mix with the agent's. An answer that an earlier run of the tool
    call gave is not given again.
    """
    write = _stream_writer()
    answer: object = None
    answer_count = -1  # not counted yet
    while True:
        try:
            await _pass_on(partial(debate.astream, answer=answer), debate.id, write)
            return
        except WaitingForPerson as waiting:
            if not has_checkpointer:
                raise
            if answer_count < 0:
                answer_count = await run_in_thread(call_from_sync, partial(_answers_given, debate))
            payload = {**_payload(waiting.questions), "debate": debate.id}
            while answer_count > 0:
                interrupt(payload)
                answer_count -= 1
            answer = interrupt(payload)


async def _answers_given(debate: Debate) -> int:
    """Return how many times people have answered the debate's questions."""
    return sum(
        [count_answers(checkpoint.pending_writes) async for checkpoint in debate.session.checkpoints()]
    )


def _payload(questions: object) -> JsonObject:
    first = questions[0] if isinstance(questions, list) and questions else questions
    return dict(first) if isinstance(first, Mapping) else {}


async def _pass_on(
    stream: Callable[[], AsyncGenerator[Event, None]], debate: str, write: Callable[[JsonObject], object]
) -> None:
    """Forward a debate's events to the agent that called the tool."""

    async def run() -> None:
        async with aclosing(stream()) as events:
            async for event in events:
                write({**event, "debate": debate})

    with set_config_context(detached_config(ensure_config())) as context:
        running = asyncio.get_running_loop().create_task(run(), context=context)
        try:
            await running
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait([running])
            raise


def _stream_writer() -> Callable[[JsonObject], object]:
    """Return a function that sends events to LangGraph's `custom` stream, if there is a graph."""
    try:
        write, context = get_stream_writer(), copy_context()
    except (RuntimeError, LookupError):
        return lambda event: None
    return lambda event: context.run(write, event)  # the writer reads the agent's place from the context

"""The debate graph: its nodes and edges, as LangGraph Studio draws them."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from moot.config import DebateConfig, boundary, stages
from moot.graph.routing import Route, course_edges
from moot.graph.runnable import NODE_TRACING, DebateGraph
from moot.models.registry import ChatSource
from moot.nodes.clarify import clarify
from moot.nodes.close import close
from moot.nodes.extract import extract
from moot.nodes.judge import judge
from moot.nodes.open import open_debate
from moot.nodes.plan import plan
from moot.nodes.read_topic import read_topic
from moot.nodes.reflect import reflect
from moot.nodes.summarize import summarize
from moot.nodes.trim import trim
from moot.nodes.turn import turn
from moot.protocols.registry import PROTOCOLS
from moot.protocols.schedule import turn_phases
from moot.runtime import context, telemetry
from moot.runtime.environment import Environment, make_environment
from moot.runtime.run_node import Node
from moot.state.conversation import ConversationInput, ConversationOutput, ConversationState
from moot.state.entries import memoize_by_identity
from moot.state.errors import ConfigError
from moot.state.langgraph_internals import compiled_parts

PHASED = ("council", "dialogue")
"""Protocols that have their own graph, with one node for each phase of the debate."""
PHASE_NODES = tuple(dict.fromkeys(phase for name in PHASED for phase in turn_phases(PROTOCOLS[name].phases)))
"""Graph nodes that each run the turns of one debate phase. Every graph has all of them, so that each
graph can continue a debate of another one. A drawing shows only the nodes of its own graph."""


def build_graph(
    checkpointer: BaseCheckpointSaver[Any] | Literal[False] | None = None,
    *,
    store: BaseStore | None = None,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
    phases_of: str = "",
) -> DebateGraph:
    """Build and compile the debate graph.

    Args:
        checkpointer: storage of debates. `None`: no storage, or the server's own.
        store: storage of debaters' memories across debates. `None`: no storage, or the server's own.
        environment: models, clock and token counters. Default: models are found by their names.
        models: LangChain chat models, or functions that make them, by the names used in the configuration.
        tools: LangChain tools, by the names that debaters' `tools` use in the configuration.
        phases_of: protocol whose phases are nodes of their own in place of `turn`, `council` or `dialogue`.
            Debates of other protocols run in the node `turn`. `""`: all debates do.

    Returns:
        A graph for `invoke`, `stream`, `ainvoke` and `astream`. Its input is `{"topic": …}`, its config
        `{"configurable": {"thread_id": …}}`, its `context` a `DebateConfig`. A `context` that is a dict, as
        servers pass it on, is untrusted: only settings that are safe for any caller are accepted in it.

    Raises:
        ConfigError: the checkpointer keeps only the latest checkpoint, or `phases_of` is another protocol.
    """
    saver = type(checkpointer).__name__
    if "Shallow" in saver:
        raise ConfigError(
            f"the checkpointer {saver} keeps only the latest checkpoint, but a transcript needs "
            f"all checkpoints: use {saver.replace('Shallow', '')}"
        )
    if phases_of and phases_of not in PHASED:
        raise ConfigError(
            f"phases_of: {phases_of!r} is not a protocol with phases: use one of {', '.join(PHASED)}"
        )
    protocol = PROTOCOLS[phases_of] if phases_of else None
    env = make_environment(environment, models, tools)
    telemetry.redact_langsmith()
    builder = StateGraph(
        ConversationState,
        context_schema=cast(type[DebateConfig], boundary.UntrustedConfig),
        input_schema=ConversationInput,
        output_schema=ConversationOutput,
    )
    builder.add_node("open", Node("open", open_debate, env), trace_policy=NODE_TRACING)
    builder.add_node("plan", Node("plan", plan, env), trace_policy=NODE_TRACING)
    builder.add_node("clarify", Node("clarify", clarify, env), trace_policy=NODE_TRACING)
    for name in ("turn", *PHASE_NODES):
        builder.add_node(name, Node("turn", turn, env), trace_policy=NODE_TRACING)
    builder.add_node("extract", Node("extract", extract, env), trace_policy=NODE_TRACING)
    builder.add_node("summarize", Node("summarize", summarize, env), trace_policy=NODE_TRACING)
    builder.add_node("trim", Node("trim", trim, env), trace_policy=NODE_TRACING)
    builder.add_node("reflect", Node("reflect", reflect, env), trace_policy=NODE_TRACING)
    builder.add_node("judge", Node("judge", judge, env), trace_policy=NODE_TRACING)
    builder.add_node("close", Node("close", close, env), trace_policy=NODE_TRACING)
    builder.add_node("read_topic", Node("read_topic", read_topic, env), trace_policy=NODE_TRACING)

    builder.add_edge(START, "open")
    opened = ("read_topic", "extract", "summarize", "trim", "plan", "clarify", "turn", END)
    after_open = Route("open", env, opened, protocol)
    builder.add_conditional_edges("open", after_open, after_open.labelled)
    after_topic = Route("read_topic", env, ("summarize", "trim", "plan"))
    builder.add_conditional_edges("read_topic", after_topic, after_topic.labelled)
    after_plan = Route("plan", env, ("clarify", "turn", "judge", "close"), protocol)
    builder.add_conditional_edges("plan", after_plan, after_plan.labelled)
    after_clarify = Route("clarify", env, ("summarize", "trim", "reflect", "plan"))
    builder.add_conditional_edges("clarify", after_clarify, after_clarify.labelled)
    for name in ("turn", *PHASE_NODES):
        after_turn = Route("turn", env, ("extract", "summarize", "trim", "reflect", "plan"))
        builder.add_conditional_edges(name, after_turn, after_turn.labelled)
    after_extract = Route("extract", env, ("summarize", "trim", "reflect", "plan"))
    builder.add_conditional_edges("extract", after_extract, after_extract.labelled)
    after_summarize = Route("summarize", env, ("trim", "reflect", "plan"))
    builder.add_conditional_edges("summarize", after_summarize, after_summarize.labelled)
    after_trim = Route("trim", env, ("reflect", "plan"))
    builder.add_conditional_edges("trim", after_trim, after_trim.labelled)
    after_judge = Route("judge", env, ("summarize", "plan"))
    builder.add_conditional_edges("judge", after_judge, after_judge.labelled)
    builder.add_edge("reflect", "plan")
    builder.add_edge("close", END)
    compiled = builder.compile(checkpointer=checkpointer, store=store, name=phases_of or "debate")
    drawn = course_edges(protocol.phases) if protocol is not None else ()
    return DebateGraph(environment=env, drawn_edges=drawn, **compiled_parts(compiled))


def served_graph(phases_of: str = "") -> DebateGraph:
    """Build a graph for a LangGraph server, with the operator's configuration by default."""

    @memoize_by_identity(4)
    def of_protocol(operator: DebateConfig) -> DebateConfig:
        return stages.requested_config(operator, {"protocol": phases_of}) if phases_of else operator

    env = Environment(default_config=lambda: of_protocol(stages.operators_config()))
    served = build_graph(environment=env, phases_of=phases_of)
    served.brief_history = True
    return served


graph = served_graph()
"""Debate graph that a LangGraph server loads through `langgraph.json`."""

NODES: Mapping[str, context.NodeFunction] = {
    name: cast(Node, spec.runnable).body
    for name, spec in graph.builder.nodes.items()
    if name not in PHASE_NODES
}
"""Functions of the graph's nodes, keyed by node name."""

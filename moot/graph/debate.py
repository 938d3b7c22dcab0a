"""The graph: what Studio draws, and what every run goes through."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from moot.graph.routes import Route, after_open, after_plan, after_summary, after_trim, after_window
from moot.nodes.clarify import clarify
from moot.nodes.close import close
from moot.nodes.driving.driver import as_node
from moot.nodes.driving.environment import Environment, NodeBody
from moot.nodes.judge import judge
from moot.nodes.open import open_debate
from moot.nodes.plan import plan
from moot.nodes.record import record
from moot.nodes.reflect import reflect
from moot.nodes.summarize import summarize
from moot.nodes.trim import trim
from moot.nodes.turn import turn
from moot.state.config import DebateConfig
from moot.state.config.boundary import ForeignConfig
from moot.state.conversation import ConversationInput, ConversationOutput, ConversationState

RECURSION_LIMIT = 10**9
"""LangGraph's default would end a debate at about 2,500 turns."""

NODES: Mapping[str, NodeBody] = {
    "open": open_debate,
    "plan": plan,
    "clarify": clarify,
    "turn": turn,
    "record": record,
    "trim": trim,
    "summarize": summarize,
    "reflect": reflect,
    "judge": judge,
    "close": close,
}

DebateGraph = CompiledStateGraph[ConversationState, DebateConfig, ConversationInput, ConversationOutput]


def build_graph(
    checkpointer: BaseCheckpointSaver[Any] | Literal[False] | None = None,
    *,
    store: BaseStore | None = None,
    environment: Environment | None = None,
) -> DebateGraph:
    """Compile the debate graph.

    Args:
        checkpointer: where debates are kept; `None` for none, or for the server's own.
        store: where debaters' memories across debates are kept; `None` for none, or for the server's own.
        environment: models, clock and counters; the default reaches OpenAI-compatible endpoints and the
            built-in offline model.

    Returns:
        A graph for `invoke`, `stream`, `ainvoke` and `astream`, with `{"topic": …}` as input,
        `{"configurable": {"thread_id": …}}` as config and a `DebateConfig` as `context`. A `context` that is
        a dict, as servers pass their requests on, is foreign: it says what is data, no more.
    """
    env = environment or Environment()
    builder = StateGraph(
        ConversationState,
        context_schema=cast(type[DebateConfig], ForeignConfig),
        input_schema=ConversationInput,
        output_schema=ConversationOutput,
    )
    for name, body in NODES.items():
        builder.add_node(name, as_node(name, body, env))
    builder.add_edge(START, "open")
    builder.add_conditional_edges("open", Route(after_open), ["record", "summarize", "plan"])
    builder.add_conditional_edges("plan", Route(after_plan), ["clarify", "turn", "judge", "close"])
    builder.add_edge("clarify", "trim")
    builder.add_edge("turn", "record")
    builder.add_edge("record", "trim")
    builder.add_conditional_edges("trim", Route(after_trim), ["summarize", "reflect", "plan"])
    builder.add_conditional_edges("summarize", Route(after_summary), ["reflect", "plan"])
    builder.add_edge("reflect", "plan")
    builder.add_conditional_edges("judge", Route(after_window), ["summarize", "plan"])
    builder.add_edge("close", END)
    compiled = builder.compile(checkpointer=checkpointer, store=store, name="debate")
    return compiled.with_config(recursion_limit=RECURSION_LIMIT)


graph = build_graph()
"""The graph for `langgraph.json`; the server brings the checkpointer."""

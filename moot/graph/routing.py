"""Routing: the conditional edges of the debate graph."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.graph import Edge
from langgraph.graph import END, START

from moot.nodes.extract import extraction_due
from moot.nodes.read_topic import topic_parts, wants_facts
from moot.nodes.reflect import reflect_due
from moot.nodes.summarize import entries_to_fold, perspectives_due
from moot.nodes.trim import trim_through
from moot.protocols.base import Protocol
from moot.protocols.schedule import OVER, Phase, turn_phases
from moot.runtime.context import NodeContext, node_context
from moot.runtime.environment import Environment
from moot.runtime.fitting import fitted_context
from moot.state.conversation import ENDED_STATUSES, ConversationState
from moot.state.entries import traits_of
from moot.state.errors import InputError

LABELS: Mapping[str, str] = {
    "read_topic": "a model finds the question",
    "extract": "claims are due",
    "trim": "the window is full",
    "summarize": "messages are leaving the window",
    "reflect": "enough has happened",
    "plan": "next step",
    "clarify": "a person is asked",
    "turn": "turns are next",
    "judge": "a verdict is due",
    "close": "the debate is over",
    END: "a question was answered",
}
"""Edge labels in drawings of the graph, keyed by target node. A label gives the reason why the node runs
next."""


def successor(node: str, context: NodeContext, targets: Collection[str]) -> str:
    """Return the name of the node that runs after `node`."""
    if node == "plan":
        return context.state["step"]["kind"]
    return after_open(context) if node == "open" else first_due(context, targets)


def _require_channel(state: ConversationState, channel: Literal["step", "status"]) -> None:
    """Raise an `InputError` if a client updates the state as a node that has not run."""
    if not state.get(channel):
        raise InputError(
            f"the debate cannot continue here, because the state channel `{channel}` is still empty: set "
            "`as_node` to a node that has already run in this debate"
        )


def course_edges(phases: Mapping[str, Phase]) -> list[Edge]:
    """Return the edges with which the graph of one protocol is drawn.

    An edge between two phases stands for a path through `plan`. The nodes that extract claims, summarize and
    trim run on such a path where they have work. They are drawn once, after the phases with new claims.
    """
    nodes = {name: "judge" if phase.assess else name for name, phase in phases.items()} | {OVER: "judge"}
    reading = [name for name, phase in phases.items() if phase.extracts]
    care = ["extract", "summarize", "trim", *["reflect"] * any(each.reflects for each in phases.values())]
    course = [(nodes[name], nodes[each]) for name, phase in phases.items() for each in phase.following]
    pairs = [
        *((START, "open"), ("open", "plan"), ("open", "extract"), ("plan", "clarify"), ("clarify", "plan")),
        ("plan", next(iter(phases))),
        *((source, target) for source, target in course if (source, target) != ("judge", "judge")),
        *((name, "extract") for name in reading),
        *pairwise([*care, "plan"]),
        *(("judge", "close"), ("close", END)),
    ]
    exits = Counter(source for source, _ in set(pairs))
    return [Edge(*pair, conditional=exits[pair[0]] > 1) for pair in dict.fromkeys(pairs)]


def turn_node(context: NodeContext, protocol: Protocol | None) -> str:
    """Return the node of the step's phase in a graph of a single protocol, or else `turn`."""
    is_own_protocol = protocol is not None and context.config.protocol == protocol.name
    phase = context.state["step"]["phase"]
    phases = turn_phases(protocol.phases) if protocol is not None and is_own_protocol else ()
    return phase if phase in phases else "turn"


def after_open(context: NodeContext) -> str:
    """Return the node that runs after `open`.

    The node is `END` if a question was answered, or the waiting node if a message resumes a debate.
    Otherwise, the node is `read_topic` if a model has to find the question, `extract` if an imported
    transcript has to be read, or else `summarize` or `plan`.
    """
    state = context.state
    if state["status"] in ENDED_STATUSES:
        return END
    step = state.get("step") or {}
    if step.get("resumed"):
        return "clarify" if step["kind"] == "clarify" else "turn"
    if topic_parts(context) or wants_facts(context):
        return "read_topic"
    imported = not state["turn_count"] and any(traits_of(entry).argues for entry in state["full_transcript"])
    return "extract" if imported else first_due(context, ("summarize", "trim"))


def first_due(context: NodeContext, targets: Collection[str]) -> str:
    """Return the first of the `targets` nodes that has work to do.

    Return `plan` if none of them has any. A node with nothing to do is skipped, because its run would still
    write a checkpoint.
    """
    leaving = context.leaving_through if "trim" in targets else -1
    if "extract" in targets and extraction_due(context, leaving):
        return "extract"
    if "summarize" in targets and (entries_to_fold(context, leaving) or perspectives_due(context)):
        return "summarize"
    if leaving >= 0 and trim_through(context) >= 0:
        return "trim"
    return "reflect" if "reflect" in targets and reflect_due(context) else "plan"


class Route(Runnable[ConversationState, str]):
    """Conditional edge of the debate graph.

    It runs inline. LangGraph runs a plain function in a worker thread: a run that is cancelled meanwhile
    stores the node's update without its successor, and the debate would end when it is resumed.
    """

    def __init__(
        self, node: str, env: Environment, targets: Sequence[str], protocol: Protocol | None = None
    ) -> None:
        """Create an edge to target nodes, which with `protocol` include its phases."""
        self.name = f"after_{node}"
        phases = turn_phases(protocol.phases) if protocol is not None and "turn" in targets else ()
        self.labelled: dict[Hashable, str] = {
            **{LABELS[target]: target for target in targets},
            **{f"phase {phase}": phase for phase in phases},
        }
        """Target nodes by label: the `path_map` of `add_conditional_edges`."""
        self._node, self._env, self._targets, self._protocol = node, env, targets, protocol
        self._labels = {target: label for label, target in self.labelled.items()}

    def invoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Choose the next graph node, and return the label of its edge."""
        if self._node in ("plan", "open"):
            _require_channel(input, "step" if self._node == "plan" else "status")
        context = fitted_context(node_context(self._env, input), input.get("model_facts") or {}, "trim")
        target = successor(self._node, context, self._targets)
        target = turn_node(context, self._protocol) if target == "turn" else target
        return str(self._labels[target])

    async def ainvoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Asynchronous version of `invoke`."""
        return self.invoke(input)

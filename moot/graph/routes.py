"""Where the graph goes after each node, and why."""

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END

from moot.nodes.driving.environment import Environment
from moot.nodes.record import record_due
from moot.nodes.reflect import reflect_due
from moot.nodes.summarize import entries_to_fold, perspectives_due
from moot.nodes.trim import leaves_through
from moot.state.conversation import OVER, ConversationState
from moot.state.earlier_builds import up_to_date
from moot.state.entries import kind_of

LEFT = {"summarize": "messages left the window"}
ON = {**LEFT, "reflect": "enough has happened", "plan": "next step"}
FULL = {"trim": "the window is over-full", **ON}
WHY: Mapping[str, Mapping[str, str]] = {
    "open": {
        "record": "a transcript is to be read",
        **LEFT,
        "plan": "it begins, or goes on",
        "clarify": "questions are answered",
        "turn": "a person has spoken",
        END: "a question about it was answered",
    },
    "plan": {
        "clarify": "a person is asked",
        "turn": "the floor is given",
        "judge": "to be judged",
        "close": "over",
    },
    "clarify": FULL,
    "turn": {"record": "minutes are due", **FULL},
    "record": FULL,
    "trim": ON,
    "summarize": {"reflect": "enough has happened", "plan": "next step"},
    "judge": {**LEFT, "plan": "judged"},
}
"""Where the graph may go after each node, and why."""


def successor(node: str, state: ConversationState, env: Environment) -> str:
    """Return the node that comes after one."""
    if node == "plan":
        return state["step"]["kind"]
    return after_open(state, env) if node == "open" else first_due(state, env, WHY[node])


def after_open(state: ConversationState, env: Environment) -> str:
    """End where a question was answered; go where a transcript is read, back to what waited, or on."""
    if state["status"] in OVER:
        return END
    step = state.get("step") or {}
    if step.get("again"):
        return "clarify" if step["kind"] == "clarify" else "turn"
    handed_over = not state["turn_count"] and any(kind_of(entry).argues for entry in state["full_transcript"])
    return "record" if handed_over else first_due(state, env, ("summarize",))


def first_due(state: ConversationState, env: Environment, among: Collection[str]) -> str:
    """Go to the first of these nodes that has something to do, else on to `plan`.

    A node with nothing to do would still take a checkpoint.
    """
    leaving = leaves_through(state, env) if "trim" in among else -1
    if "record" in among and record_due(state, leaving):
        return "record"
    if leaving >= 0:
        return "trim"
    if "summarize" in among and (entries_to_fold(state) or perspectives_due(state)):
        return "summarize"
    return "reflect" if "reflect" in among and reflect_due(state) else "plan"


class Route(Runnable[ConversationState, str]):
    """The decision after a node: why the graph goes where it goes, so that a drawing of it says so.

    It is taken at once: no stop can come between a node's update and its successor.

    LangGraph takes a plain function to a worker thread. A run that is cancelled meanwhile has the update
    stored without the successor: resumed, it takes the node as finished, and the debate ends where it stands.
    """

    def __init__(self, node: str, env: Environment) -> None:
        self.name = f"after_{node}"
        self._node, self._env = node, env

    def invoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return why the next node is next."""
        return WHY[self._node][successor(self._node, up_to_date(input), self._env)]

    async def ainvoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return it without giving way to anything else."""
        return self.invoke(input)

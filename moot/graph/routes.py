"""Where the graph goes after each node, and why."""

from collections.abc import Callable, Collection, Hashable, Mapping
from copy import copy
from functools import partial
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END

from moot.nodes.driving.environment import Environment
from moot.nodes.record import record_due
from moot.nodes.reflect import reflect_due
from moot.nodes.summarize import perspectives_due, unsummarised
from moot.nodes.trim import leaves_through
from moot.state.conversation import OVER, ConversationState, StepKind
from moot.state.earlier_builds import up_to_date
from moot.state.entries import kind_of

Decision = Callable[[ConversationState, Environment], str]


class Route(Runnable[ConversationState, str]):
    """A decision, named by why it goes where it goes, so that a drawing of the graph says so.

    It is taken at once: no stop can come between a node's update and its successor.

    LangGraph takes a plain function to a worker thread. A run that is cancelled meanwhile has the update
    stored without the successor: resumed, it takes the node as finished, and the debate ends where it stands.
    """

    def __init__(self, why: Mapping[str, str], decide: Decision | None = None) -> None:
        """Make one; `why` says of each node that it may lead to what leads there.

        Without a decision of its own it leads to the first of them that has something to do.
        """
        self.name = (decide or first_due).__name__
        self._decide, self._why, self._env = decide or partial(first_due, among=why), why, Environment()

    def within(self, env: Environment) -> Self:
        """Return the same decision for a graph in this environment."""
        route = copy(self)
        route._env = env
        return route

    @property
    def path_map(self) -> dict[Hashable, str]:
        """Where each reason leads."""
        return {why: node for node, why in self._why.items()}

    def invoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return why the next node is next."""
        return self._why[self._decide(up_to_date(input), self._env)]

    async def ainvoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return it without giving way to anything else."""
        return self.invoke(input)


def after_open(state: ConversationState, env: Environment) -> str:
    """End where a question was answered; go where a transcript is read, back to what waited, or on."""
    if state["status"] in OVER:
        return END
    step = state.get("step") or {}
    if step.get("again"):
        return "clarify" if step["kind"] == "clarify" else "turn"
    handed_over = not state["turn_count"] and any(kind_of(entry).argues for entry in state["full_transcript"])
    return "record" if handed_over else first_due(state, env, ("summarize",))


def after_plan(state: ConversationState, env: Environment) -> StepKind:
    """Go to the node that carries out the step."""
    return state["step"]["kind"]


def first_due(state: ConversationState, env: Environment, among: Collection[str]) -> str:
    """Go to the first of these nodes that has something to do, else on to `plan`.

    A node with nothing to do would still take a checkpoint.
    """
    leaving = leaves_through(state, env) if "trim" in among else -1
    if "record" in among and record_due(state, leaving):
        return "record"
    if leaving >= 0:
        return "trim"
    if "summarize" in among and (unsummarised(state) or perspectives_due(state)):
        return "summarize"
    return "reflect" if "reflect" in among and reflect_due(state) else "plan"


LEFT = {"summarize": "messages left the window"}
ON = {**LEFT, "reflect": "enough has happened", "plan": "next step"}
FULL = {"trim": "the window is over-full", **ON}
ROUTES: Mapping[str, Route] = {
    "open": Route(
        {
            "record": "a transcript is to be read",
            **LEFT,
            "plan": "it begins, or goes on",
            "clarify": "questions are answered",
            "turn": "a person has spoken",
            END: "a question about it was answered",
        },
        after_open,
    ),
    "plan": Route(
        {
            "clarify": "a person is asked",
            "turn": "the floor is given",
            "judge": "to be judged",
            "close": "over",
        },
        after_plan,
    ),
    "clarify": Route(FULL),
    "turn": Route({"record": "minutes are due", **FULL}),
    "record": Route(FULL),
    "trim": Route(ON),
    "summarize": Route({"reflect": "enough has happened", "plan": "next step"}),
    "judge": Route({**LEFT, "plan": "judged"}),
}

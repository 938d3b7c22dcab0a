"""Where the graph goes after each node, and why."""

from collections.abc import Callable, Hashable, Mapping
from copy import copy
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


class Route(Runnable[ConversationState, str]):
    """A decision, named by why it goes where it goes, so that a drawing of the graph says so.

    It is taken at once: no stop can come between a node's update and its successor.

    LangGraph takes a plain function to a worker thread. A run that is cancelled meanwhile has the update
    stored without the successor: resumed, it takes the node as finished, and the debate ends where it stands.
    """

    def __init__(self, decide: Callable[[ConversationState, Environment], str], **why: str) -> None:
        """Make one; `why` says of each node that it may lead to what leads there."""
        self.name = decide.__name__
        self._decide, self._why, self._env = decide, why, Environment()

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
    return "record" if handed_over else after_window(state, env)


def after_window(state: ConversationState, env: Environment) -> str:
    """Go where messages have left the window unsummarised or perspective summaries are due, else on."""
    return "summarize" if unsummarised(state) or perspectives_due(state) else "plan"


def after_turn(state: ConversationState, env: Environment) -> str:
    """Go where minutes are due, else on: a node with nothing to do would still take a checkpoint."""
    leaving = leaves_through(state, env)
    return "record" if record_due(state, leaving) else _trimmed(state, env, leaving)


def after_record(state: ConversationState, env: Environment) -> str:
    """Go where the window is over-full, else where it would go after that."""
    return _trimmed(state, env, leaves_through(state, env))


def _trimmed(state: ConversationState, env: Environment, leaving: int) -> str:
    return "trim" if leaving >= 0 else after_trim(state, env)


def after_trim(state: ConversationState, env: Environment) -> str:
    """Go where summaries are due, else where enough has happened to reflect on, else on."""
    return "summarize" if after_window(state, env) == "summarize" else after_summary(state, env)


def after_summary(state: ConversationState, env: Environment) -> str:
    """Go where enough has happened to reflect on, or a crux room is to be looked at, else on."""
    return "reflect" if reflect_due(state) else "plan"


def after_plan(state: ConversationState, env: Environment) -> StepKind:
    """Go to the node that carries out the step."""
    return state["step"]["kind"]


LEFT, FULL = "messages left the window", "the window is over-full"
ON = {"summarize": LEFT, "reflect": "enough has happened", "plan": "next step"}
ROUTES: Mapping[str, Route] = {
    "open": Route(
        after_open,
        record="a transcript is to be read",
        summarize=LEFT,
        plan="it begins, or goes on",
        clarify="questions are answered",
        turn="a person has spoken",
        **{END: "a question about it was answered"},
    ),
    "plan": Route(
        after_plan, clarify="a person is asked", turn="the floor is given", judge="to be judged", close="over"
    ),
    "clarify": Route(after_record, trim=FULL, **ON),
    "turn": Route(after_turn, record="minutes are due", trim=FULL, **ON),
    "record": Route(after_record, trim=FULL, **ON),
    "trim": Route(after_trim, **ON),
    "summarize": Route(after_summary, reflect="enough has happened", plan="next step"),
    "judge": Route(after_window, summarize=LEFT, plan="judged"),
}

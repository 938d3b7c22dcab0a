"""Where the graph goes after each node."""

from collections.abc import Callable, Hashable
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END

from moot.nodes.reflect import reflect_due
from moot.nodes.summarize import perspectives_due, unsummarised
from moot.state.conversation import ConversationState, StepKind
from moot.state.earlier_builds import up_to_date
from moot.state.entries import kind_of


class Route(Runnable[ConversationState, str]):
    """A decision, named by why it goes where it goes, so that a drawing of the graph says so.

    It is taken at once: no stop can come between a node's update and its successor.

    LangGraph takes a plain function to a worker thread. A run that is cancelled meanwhile has the update
    stored without the successor: resumed, it takes the node as finished, and the debate ends where it stands.
    """

    def __init__(self, decide: Callable[[ConversationState], str], **why: str) -> None:
        """Make one; `why` says of each node that it may lead to what leads there."""
        self.name = decide.__name__
        self._decide, self._why = decide, why

    @property
    def path_map(self) -> dict[Hashable, str]:
        """Where each reason leads."""
        return {why: node for node, why in self._why.items()}

    def invoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return why the next node is next."""
        return self._why[self._decide(up_to_date(input))]

    async def ainvoke(self, input: ConversationState, config: RunnableConfig | None = None, **_: Any) -> str:
        """Return it without giving way to anything else."""
        return self.invoke(input)


def after_open(state: ConversationState) -> str:
    """End where a question was answered; go where a transcript is read, back to what waited, or on."""
    if state["status"] in ("done", "limit"):
        return END
    step = state.get("step") or {}
    if step.get("again"):
        return "clarify" if step["kind"] == "clarify" else "turn"
    handed_over = not state["turn_count"] and any(kind_of(entry).argues for entry in state["full_transcript"])
    return "record" if handed_over else after_window(state)


def after_window(state: ConversationState) -> Literal["summarize", "plan"]:
    """Go where messages have left the window unsummarised or perspective summaries are due, else on."""
    return "summarize" if unsummarised(state) or perspectives_due(state) else "plan"


def after_trim(state: ConversationState) -> Literal["summarize", "reflect", "plan"]:
    """Go where summaries are due, else where enough has happened to reflect on, else on."""
    return "summarize" if after_window(state) == "summarize" else after_summary(state)


def after_summary(state: ConversationState) -> Literal["reflect", "plan"]:
    """Go where enough has happened to reflect on, or a crux room is to be looked at, else on."""
    return "reflect" if reflect_due(state) else "plan"


def after_plan(state: ConversationState) -> StepKind:
    """Go to the node that carries out the step."""
    return state["step"]["kind"]

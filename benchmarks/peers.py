"""Others' ways to keep a prompt within a budget, where they are installed: langmem and LangChain.

Each gets a transcript message by message and makes a view of it before every reply, as an agent would; what
is measured is the view that capabilities_of the model.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from moot.models.offline import ScriptedCall, ScriptedModel
from moot.text.tokens import REPLY_PRIMING, counter


@dataclass(frozen=True)
class AttackResult:
    """What came of one case."""

    largest: int
    """Tokens of the largest prompt."""
    unseen: int | None = None
    """Messages that nobody ever saw; `None` where that cannot be told."""
    trouble: str = ""
    """What else went wrong."""

    def text(self) -> str:
        """Return it in a few words."""
        unseen = f", {self.unseen} unseen" if self.unseen is not None else ""
        return f"{self.largest:,}{unseen}" + (f" ({self.trouble})" if self.trouble else "")


Peer = Callable[[Sequence[tuple[str, str]], str | None, int], AttackResult]

Making = Callable[[list[AnyMessage]], list[AnyMessage]]
"""Makes a view of a history."""


def exact(messages: Iterable[Any]) -> int:
    """Return the exact size of LangChain messages by the chat formula."""
    count = counter()
    return REPLY_PRIMING + sum(4 + count(str(message.text)) for message in messages)


def _history(said: Sequence[tuple[str, str]]) -> tuple[list[AnyMessage], list[list[AnyMessage]]]:
    """Return what is there at the start, and what comes turn by turn; results come with their calls."""
    start: list[AnyMessage] = [SystemMessage("You argue.", id="s")]
    start += [HumanMessage(text, id=f"h{n}") for n, (kind, text) in enumerate(said) if kind == "person"]
    start += [AIMessage(text, id=f"i{n}") for n, (kind, text) in enumerate(said) if kind == "import"]
    tools = [text for kind, text in said if kind == "tool"]
    turns: list[list[AnyMessage]] = []
    if tools:
        calls = [{"id": f"c{n}", "name": "read_file", "args": {}} for n in range(len(tools))]
        results = [ToolMessage(text, tool_call_id=f"c{n}", id=f"t{n}") for n, text in enumerate(tools)]
        turns.append([AIMessage("", tool_calls=calls, id="calls"), *results])
    turns += [[AIMessage(text, id=f"a{n}")] for n, (kind, text) in enumerate(said) if kind == "ai"]
    return start, turns


def _follow(said: Sequence[tuple[str, str]], make: Callable[[], Making]) -> AttackResult:
    history, turns = _history(said)
    view = make()
    largest, trouble = 0, ""
    for turn in [[], *turns]:
        history = [*history, *turn]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what they warn of is measured
                shown = view(history)
        except Exception as error:  # whatever a library raises is its outcome here
            return AttackResult(largest, None, f"{type(error).__name__}")
        largest = max(largest, exact(shown))
        if not [message for message in shown if not isinstance(message, SystemMessage)]:
            trouble = "an empty view"
        if any("too long to summarize" in str(message.text) for message in shown):
            trouble = "history dropped"
    return AttackResult(largest, None, trouble)


def _model(summary: str | None) -> ScriptedModel:
    def answer(call: ScriptedCall) -> str:
        return "\n".join(str(message.text) for message in call.messages) if summary is None else summary

    return ScriptedModel(lambda call: _or_raise(summary, answer(call)))


def _or_raise(summary: str | None, text: str) -> str | Exception:
    return RuntimeError("503") if summary == "raise" else text


def _langmem(said: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langmem.short_term import summarize_messages

    def make() -> Making:
        running: list[Any] = [None]

        def view(history: list[AnyMessage]) -> list[AnyMessage]:
            result = summarize_messages(
                history,
                running_summary=running[0],
                token_counter=exact,
                model=_model(summary),
                max_tokens=budget,
                max_tokens_before_summary=budget,
                max_summary_tokens=budget // 8,
            )
            running[0] = result.running_summary or running[0]
            return list(result.messages)

        return view

    return _follow(said, make)


def _middleware(said: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.messages import RemoveMessage
    from langgraph.runtime import Runtime

    def make() -> Making:
        middleware = SummarizationMiddleware(
            model=_model(summary), trigger=("tokens", budget), keep=("messages", 20), token_counter=exact
        )
        kept: list[AnyMessage] = []
        seen: set[str] = set()

        def view(history: list[AnyMessage]) -> list[AnyMessage]:
            nonlocal kept
            kept = [*kept, *(message for message in history if message.id not in seen)]
            seen.update(str(message.id) for message in history)
            update = middleware.before_model({"messages": kept}, Runtime())
            if update:
                kept = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
            return kept

        return view

    return _follow(said, make)


def _trim(said: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langchain_core.messages import trim_messages

    def make() -> Making:
        def view(history: list[AnyMessage]) -> list[AnyMessage]:
            shown: Any = trim_messages(
                history,
                max_tokens=budget,
                strategy="last",
                token_counter=exact,
                include_system=True,
                start_on="human",
            )
            return list(shown)

        return view

    return _follow(said, make)


def _installed() -> dict[str, Peer]:
    """Return the contenders that are here; trim_messages comes with LangChain's core and is always."""
    found: dict[str, Peer] = {}
    if importlib.util.find_spec("langmem"):
        found["langmem"] = _langmem
    if importlib.util.find_spec("langchain"):
        found["SummarizationMiddleware"] = _middleware
    if found:
        found["trim_messages"] = _trim
    return found


PEERS: dict[str, Peer] = _installed()

"""Make prompts with langmem and LangChain, if they are installed, to compare their sizes with Moot's.

Each library gets a transcript message by message and makes a prompt from it before every reply, as an agent
would. The benchmark measures this prompt.
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
    """Result of one case."""

    largest: int
    """Tokens of the largest prompt."""
    unseen: int | None = None
    """Number of messages that no prompt showed, `None` if unknown."""
    problem: str = ""
    """Any other problem, such as an exception."""

    def text(self) -> str:
        """Return a cell of the table."""
        unseen = f", {self.unseen} unseen" if self.unseen is not None else ""
        return f"{self.largest:,}{unseen}" + (f" ({self.problem})" if self.problem else "")


Peer = Callable[[Sequence[tuple[str, str]], str | None, int], AttackResult]

PromptMaker = Callable[[list[AnyMessage]], list[AnyMessage]]
"""Makes a prompt from a history."""


def count_tokens(messages: Iterable[Any]) -> int:
    """Return the exact number of tokens of LangChain messages in the chat format."""
    count = counter()
    return REPLY_PRIMING + sum(4 + count(str(message.text)) for message in messages)


def _history(messages: Sequence[tuple[str, str]]) -> tuple[list[AnyMessage], list[list[AnyMessage]]]:
    """Return the messages at the start, and the messages of each turn.

    The results of tool calls are in the turn of their calls.
    """
    start: list[AnyMessage] = [SystemMessage("You argue.", id="s")]
    start += [HumanMessage(text, id=f"h{n}") for n, (kind, text) in enumerate(messages) if kind == "person"]
    start += [AIMessage(text, id=f"i{n}") for n, (kind, text) in enumerate(messages) if kind == "import"]
    tools = [text for kind, text in messages if kind == "tool"]
    turns: list[list[AnyMessage]] = []
    if tools:
        calls = [{"id": f"c{n}", "name": "read_file", "args": {}} for n in range(len(tools))]
        results = [ToolMessage(text, tool_call_id=f"c{n}", id=f"t{n}") for n, text in enumerate(tools)]
        turns.append([AIMessage("", tool_calls=calls, id="calls"), *results])
    turns += [[AIMessage(text, id=f"a{n}")] for n, (kind, text) in enumerate(messages) if kind == "ai"]
    return start, turns


def _measure(messages: Sequence[tuple[str, str]], make: Callable[[], PromptMaker]) -> AttackResult:
    history, turns = _history(messages)
    make_prompt = make()
    largest, problem = 0, ""
    for turn in [[], *turns]:
        history = [*history, *turn]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the benchmark measures what they warn about
                shown = make_prompt(history)
        except Exception as error:  # an exception is the result of a library
            return AttackResult(largest, None, f"{type(error).__name__}")
        largest = max(largest, count_tokens(shown))
        if not [message for message in shown if not isinstance(message, SystemMessage)]:
            problem = "an empty prompt"
        if any("too long to summarize" in str(message.text) for message in shown):
            problem = "history dropped"
    return AttackResult(largest, None, problem)


def _model(summary: str | None) -> ScriptedModel:
    def reply(call: ScriptedCall) -> str:
        return "\n".join(str(message.text) for message in call.messages) if summary is None else summary

    return ScriptedModel(lambda call: _error_or_text(summary, reply(call)))


def _error_or_text(summary: str | None, text: str) -> str | Exception:
    return RuntimeError("503") if summary == "raise" else text


def _langmem(messages: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langmem.short_term import summarize_messages

    def make() -> PromptMaker:
        running: list[Any] = [None]

        def make_prompt(history: list[AnyMessage]) -> list[AnyMessage]:
            result = summarize_messages(
                history,
                running_summary=running[0],
                token_counter=count_tokens,
                model=_model(summary),
                max_tokens=budget,
                max_tokens_before_summary=budget,
                max_summary_tokens=budget // 8,
            )
            running[0] = result.running_summary or running[0]
            return list(result.messages)

        return make_prompt

    return _measure(messages, make)


def _middleware(messages: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.messages import RemoveMessage
    from langgraph.runtime import Runtime

    def make() -> PromptMaker:
        middleware = SummarizationMiddleware(
            model=_model(summary),
            trigger=("tokens", budget),
            keep=("messages", 20),
            token_counter=count_tokens,
        )
        kept: list[AnyMessage] = []
        seen: set[str] = set()

        def make_prompt(history: list[AnyMessage]) -> list[AnyMessage]:
            nonlocal kept
            kept = [*kept, *(message for message in history if message.id not in seen)]
            seen.update(str(message.id) for message in history)
            update = middleware.before_model({"messages": kept}, Runtime())
            if update:
                kept = [m for m in update["messages"] if not isinstance(m, RemoveMessage)]
            return kept

        return make_prompt

    return _measure(messages, make)


def _trim(messages: Sequence[tuple[str, str]], summary: str | None, budget: int) -> AttackResult:
    from langchain_core.messages import trim_messages

    def make() -> PromptMaker:
        def make_prompt(history: list[AnyMessage]) -> list[AnyMessage]:
            shown: Any = trim_messages(
                history,
                max_tokens=budget,
                strategy="last",
                token_counter=count_tokens,
                include_system=True,
                start_on="human",
            )
            return list(shown)

        return make_prompt

    return _measure(messages, make)


def _installed_peers() -> dict[str, Peer]:
    """Return the libraries that are installed. `trim_messages` is part of LangChain's core."""
    peers: dict[str, Peer] = {}
    if importlib.util.find_spec("langmem"):
        peers["langmem"] = _langmem
    if importlib.util.find_spec("langchain"):
        peers["SummarizationMiddleware"] = _middleware
    if peers:
        peers["trim_messages"] = _trim
    return peers


PEERS: dict[str, Peer] = _installed_peers()

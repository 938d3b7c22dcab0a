"""Measure the largest prompt under hostile input, in exactly counted tokens.

    python -m benchmarks.attack [--quick]

Every case runs as a real debate. With the `bench` extra, the same messages go through langmem, LangChain's
SummarizationMiddleware and trim_messages, each with a limit of 8,000 tokens.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.peers import PEERS, AttackResult
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.memory.summarizers.registry import SUMMARIZERS, summarizer_named
from moot.memory.summarizers.summarizer import Summarizer
from moot.runtime.environment import Environment
from moot.text.tokens import counter
from moot.tools.tool import wire_tokens

BUDGET = 8_000
QUESTION = "Should we?"
SHORT = "I hold that costs rose by {n} % in year {n}, and that this settles it. "
SCRIPTS = {
    "prose": "We measured a fall of 12 % in the second year, which nobody has explained so far. ",
    "Chinese": "我们在第二年测得下降百分之十二，至今没有人能够解释这一现象。",
    "emoji": "🚎👩‍👩‍👧‍👦🔥📉🏳️‍🌈",
    "code": "def f(x):\n\treturn {k: v**2 for k, v in x.items() if v != 0x1F}  # <|endoftext|>\n",
}
_LABEL = re.compile(r"\[(m\d{6,})\]:")


@dataclass(frozen=True)
class Case:
    """Hostile input of one debate."""

    name: str
    messages: Sequence[str] = ()
    """Messages of the debaters, turn by turn. Three short turns follow."""
    imported: Sequence[str] = ()
    """Transcript to continue, imported at once."""
    summary: str | None = "They argued about costs [m000001]."
    """Reply of the summarizer's model. `None` repeats its input, `"raise"` fails."""
    method: str = "llm"
    tools: bool = False
    """True if the first turn makes ten tool calls at once."""
    memory: dict[str, Any] = field(default_factory=dict)


def generate_text(tokens: int, script: str = "prose") -> str:
    """Return a text of at least this many tokens."""
    piece = SCRIPTS[script]
    return piece * (tokens // counter()(piece) + 1)


def cases(scale: float = 1.0) -> list[Case]:
    """Return the cases; `scale` shortens the long ones."""
    short = [SHORT.format(n=n) for n in range(1, 21)]
    many = [f"{n}. {generate_text(400)}" for n in range(int(80 * scale))]
    giant = generate_text(int(40_000 * scale))
    return [
        Case("giant last", [*short, giant]),
        Case("giant middle", [*short, giant, *short]),
        Case("10 parallel tool results", short[:4], tools=True),
        Case("import of 150k tokens", imported=[generate_text(150) for _ in range(int(1000 * scale))]),
        Case("summary far too long", many, summary=generate_text(6_000)),
        Case("summary echoes", many, summary=None),
        Case("summary empty", many, summary=""),
        Case("summariser raises", many, method="raising"),
        Case("model fails to summarise", many, summary="raise"),
        Case("models alone, no person", imported=many),
        *(Case(script, [generate_text(600, script) for _ in range(int(60 * scale))]) for script in SCRIPTS),
    ]


class _RaisingSummarizer(Summarizer):
    """Summarizer that always raises."""

    name = "raising"

    def summarize(self, request: Any) -> Any:
        """Raise an error."""
        raise RuntimeError("out of order")
        yield


@dataclass
class AttackedModel:
    """Model that replies with a case's messages and records its prompts."""

    case: Case
    calls: list[ModelCall] = field(default_factory=list)
    spoken: int = 0

    async def complete(self, call: ModelCall, models: Any, *, config: Any = None) -> Reply:
        """Return the reply to a call."""
        self.calls.append(call)
        if call.purpose == "summary":
            return self._summary(call)
        if self.case.tools and call.tools and not any(m["role"] == "tool" for m in call.messages):
            asked = tuple(
                {"id": f"c{n}", "name": "read_file", "args": {"path": f"{n}.txt"}} for n in range(10)
            )
            return Reply(tool_calls=asked, model="m")
        lines, number = self.case.messages, self.spoken
        self.spoken += 1
        return Reply(text=lines[number] if number < len(lines) else SHORT.format(n=number), model="m")

    def _summary(self, call: ModelCall) -> Reply:
        if self.case.summary == "raise":
            return Reply(error="m: 503")
        source = call.messages[-1]["content"]
        cited = re.search(r"m\d{6,}", source)
        text = source if self.case.summary is None else self.case.summary
        text = text.replace("m000001", cited[0]) if cited else text
        return Reply(text=text, model="m")


def attack(case: Case, **memory: Any) -> AttackResult:
    """Run a case as a debate, and return its largest prompt and the messages that no prompt showed."""
    summarizer_named.cache_clear()
    with patch.dict(SUMMARIZERS, {"raising": _RaisingSummarizer()}), tempfile.TemporaryDirectory() as folder:
        for number in range(10):
            (Path(folder) / f"{number}.txt").write_text(generate_text(3_000))
        model = AttackedModel(case)
        environment = Environment(complete=model.complete)
        graph: Any = build_graph(InMemorySaver(), environment=environment)
        thread = {"configurable": {"thread_id": "5cf1a1f4-1fd8-4a4c-9a27-6f1a9f0c5d10"}}
        graph.invoke(_initial_state(case), thread, context=_config(case, folder, memory))
        return _result(graph.get_state(thread).values, model.calls)


def _initial_state(case: Case) -> dict[str, Any]:
    messages = [{"speaker": ("ada", "bo")[n % 2], "content": text} for n, text in enumerate(case.imported)]
    return {"topic": QUESTION, "full_transcript": messages}


def _config(case: Case, folder: str, memory: dict[str, Any]) -> DebateConfig:
    tools = {"tools": ["read_file"]} if case.tools else {}
    return DebateConfig.model_validate(
        {
            "turns": len(case.messages) + 3,
            "judge": {"enabled": False},
            "context": folder if case.tools else None,
            "debaters": [{"name": "Ada", **tools}, {"name": "Bo"}],
            "memory": {"summarizer": case.method, **case.memory, **memory},
        }
    )


def _result(state: dict[str, Any], calls: Sequence[ModelCall]) -> AttackResult:
    count = counter()
    sizes = [3 + wire_tokens(call.messages, count) for call in calls]
    shown = {key for call in calls for m in call.messages for key in _LABEL.findall(m["content"])}
    covered = (state.get("rolling_summary") or {}).get("covers_through_seq", -1)
    unseen = [
        entry["id"]
        for entry in state["full_transcript"][1:-1]
        if entry["id"] not in shown and entry["seq"] > covered and entry["kind"] not in _TOOLS
    ]
    empty = any(not call.messages or not call.messages[-1]["content"].strip() for call in calls)
    return AttackResult(max(sizes), len(unseen), "an empty prompt" if empty else "")


_TOOLS = frozenset({"tool_call", "tool_result"})
"""Entry kinds that are shown as tool messages within the turn that made them."""


def rows(scale: float = 1.0) -> Iterator[tuple[Case, dict[str, AttackResult]]]:
    """Yield each case with the results of all libraries."""
    for case in cases(scale):
        contenders: dict[str, Callable[[], AttackResult]] = {"Moot": lambda case=case: attack(case)}  # type: ignore[misc]  # bound at once
        for name, run in PEERS.items():
            contenders[name] = lambda case=case, run=run: run(messages_of(case), case.summary, BUDGET)  # type: ignore[misc]  # bound at once
        yield case, {name: contender() for name, contender in contenders.items()}


def messages_of(case: Case) -> list[tuple[str, str]]:
    """Return a case's messages for other libraries: `(kind, text)` each."""
    tools = [("tool", generate_text(3_000)) for _ in range(10)] if case.tools else []
    person = [] if case.imported else [("person", QUESTION)]
    imported = [("import", text) for text in case.imported]
    return [*person, *imported, *tools, *(("ai", text) for text in case.messages)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="Largest prompt under hostile input.")
    parser.add_argument("--quick", action="store_true", help="cases of an eighth of the size")
    options = parser.parse_args(arguments)
    print(
        f"attack: largest prompt by exact count (target ≤ {BUDGET:,}), "
        "messages that no prompt showed (target 0)"
    )
    print(f"  {'':<26}" + "".join(f"{name:>26}" for name in ["Moot", *PEERS]))
    for case, outcomes in rows(0.125 if options.quick else 1.0):
        print(f"  {case.name:<26}" + "".join(f"{outcome.text():>26}" for outcome in outcomes.values()))
    if not PEERS:
        print("  (install langmem and LangChain to compare: pip install 'moot[bench]')")


if __name__ == "__main__":
    main()

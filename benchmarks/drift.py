"""Measure summary drift: how many of the oldest facts are still known after 200 turns.

    python -m benchmarks.drift [--turns 200] [--keep 0.9] [--quick]

Each turn states one fact. The summarizer's model keeps each fact that it reads with a fixed probability,
independently each time. The result is the share of the 50 oldest facts in the last summary or blackboard of
some debater.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.runtime.environment import Environment

OLDEST, TARGET = 50, 40
METHODS = ("llm", "hierarchical")
"""Summarizers that use a model."""
FILLER = (
    "Whoever has walked along that shore knows how little of it is visible from the road, and how much of "
    "what is said about it comes from people who were never there. I do not blame them, but I would rather "
    "look at what was measured. Let us go on from there, one step after the other, and see who follows. "
)
_FACT = re.compile(r"F(\d{3}) reads (\d{4})")


@dataclass
class ForgetfulSummarizer:
    """Model that states a fact in each turn, and keeps each fact with probability `keep` in a summary."""

    keep: float
    seed: int
    calls: list[ModelCall] = field(default_factory=list)

    async def complete(self, call: ModelCall, models: Any, *, config: Any = None) -> Reply:
        """Return the reply to a call."""
        if call.purpose == "summary":
            return Reply(text=self._summary(call) or "Nothing was measured.", model="m")
        self.calls.append(call)
        number = len(self.calls)
        return Reply(text=f"{FILLER}The gauge {fact(number)} today. {FILLER}", model="m")

    def _summary(self, call: ModelCall) -> str:
        found = dict.fromkeys(_FACT.findall(call.messages[-1]["content"]))
        return " ".join(f"F{n} reads {value};" for n, value in found if self._keeps(f"{n}{call.digest}"))

    def _keeps(self, what: str) -> bool:
        drawn = hashlib.blake2b(f"{self.seed}{what}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") / 2**64 < self.keep


def fact(number: int) -> str:
    """Return the fact that a turn states."""
    return f"F{number:03d} reads {1000 + number * 37 % 9000}"


def facts_kept(method: str, turns: int = 200, keep: float = 0.9, seed: int = 1) -> set[int]:
    """Run a debate and return the facts in some debater's last summary or blackboard."""
    model = ForgetfulSummarizer(keep, seed)
    config = DebateConfig.model_validate(
        {
            "turns": turns,
            "judge": {"enabled": False},
            "debaters": [{"name": name} for name in ("Ada", "Bo", "Cy", "Di", "Ed", "Flo")],
            "memory": {"summarizer": method},
        }
    )
    graph: Any = build_graph(InMemorySaver(), environment=Environment(complete=model.complete))
    thread = {"configurable": {"thread_id": "d1f7a1f4-1fd8-4a4c-9a27-6f1a9f0c5d10"}}
    graph.invoke({"topic": "What does the gauge read?"}, thread, context=config)
    return {
        int(n) for call in model.calls[-6:] for text in _memory_texts(call) for n, _ in _FACT.findall(text)
    }


def _memory_texts(call: ModelCall) -> Iterator[str]:
    """Yield the summary and the turn suffix of a prompt, without the messages of the window."""
    for message in (*call.messages[2:3], call.messages[-1]):
        if "name" not in message:
            yield message["content"]


def facts_kept_by_rewriting(turns: int = 200, keep: float = 0.9, seed: int = 1, every: int = 10) -> set[int]:
    """Return the facts that remain in a summary that is rewritten from itself every few turns."""
    model, known = ForgetfulSummarizer(keep, seed), set[int]()
    for start in range(1, turns + 1, every):
        known |= set(range(start, start + every))
        known = {number for number in known if model._keeps(f"{number}:{start}")}
    return known


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="Oldest facts still known at the end.")
    parser.add_argument("--turns", type=int, default=200, help="turns of each debate")
    parser.add_argument("--keep", type=float, default=0.9, help="probability that a summary keeps a fact")
    parser.add_argument("--quick", action="store_true", help="run one summarizer with one seed")
    options = parser.parse_args(arguments)
    seeds = (1,) if options.quick else (1, 2, 3)
    oldest = set(range(1, OLDEST + 1))
    print(
        f"drift: of the {OLDEST} oldest facts, known after {options.turns} turns; a summary keeps each with "
        f"p = {options.keep} (target ≥ {TARGET})"
    )
    for method in METHODS[:1] if options.quick else METHODS:
        kept = [len(facts_kept(method, options.turns, options.keep, seed) & oldest) for seed in seeds]
        print(f"  {method:<26} {', '.join(map(str, kept))}")
    rewritten = [len(facts_kept_by_rewriting(options.turns, options.keep, seed) & oldest) for seed in seeds]
    print(f"  {'rewritten every 10 turns':<26} {', '.join(map(str, rewritten))}")


if __name__ == "__main__":
    main()

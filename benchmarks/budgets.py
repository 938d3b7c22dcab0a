"""Measure how much of the token budget prompts use, and how many messages they leave out.

    python -m benchmarks.budgets [--quick] [--json]

The debates are the recorded samples and debates of every protocol with generated messages. A row has the
calls of one protocol and phase: their mean tokens, the share of the phase's budget, and the share of the
debate's earlier messages (by tokens) that the prompt shows or quotes. `unused` is the mean number of unused
tokens in the prompts that leave an earlier message out. The second table has the tokens and the price of each
recorded debate.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.prefix import CACHED_PRICE, UNCACHED_PRICE, cached_shares
from benchmarks.varied_messages import VariedMessages
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.models.model_call import complete
from moot.models.offline import recording_config, recordings
from moot.models.registry import Models
from moot.prompts.request import schema_tokens
from moot.runtime.environment import Environment
from moot.state.entries import Entry, seq_of, traits_of
from moot.text.tokens import counter

INPUT_USD, OUTPUT_USD = 3.0, 15.0
"""Price in US$ of a million tokens, of the size that providers ask for a capable model."""
TOPIC = "Should a city of a million people make its public transport free of charge within five years?"
THREE = [{"name": "Ada", "stance": "for"}, {"name": "Bo", "stance": "against"}, {"name": "Cy"}]
GENERATED: dict[str, dict[str, Any]] = {
    "round-robin": {"protocol": "round-robin", "turns": 150, "debaters": THREE},
    "moderated": {"protocol": "moderated", "turns": 60, "debaters": THREE},
    "council": {"protocol": "council", "rounds": 3},
    "dialogue": {"protocol": "dialogue", "debaters": THREE, "dialogue": {"minirounds": 2}},
    "single": {"protocol": "single"},
    "vote": {"protocol": "vote", "decide": "judge"},
}
"""Settings of the generated debates by name. They run on a model with short varied messages."""
QUICK = {"turns": 12}


@dataclass
class Run:
    """All model calls of one debate, with their replies and its transcript."""

    calls: list[tuple[ModelCall, Reply]] = field(default_factory=list)
    transcript: list[Entry] = field(default_factory=list)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Make a model call, and record it with its reply."""
        reply = await complete(call, models, config=config)
        self.calls.append((call, reply))
        return reply


def run(settings: dict[str, Any], topic: str) -> Run:
    """Run a debate in memory, and return its calls."""
    made = Run()
    environment = Environment(complete=made.complete, clock=lambda: "2026-01-01T00:00:00.000+00:00")
    graph: Any = build_graph(
        InMemorySaver(), environment=environment, models={"varied-messages": LongMessages()}
    )
    thread: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
    graph.invoke({"topic": topic}, thread, context=DebateConfig.model_validate(settings))
    made.transcript = graph.get_state(thread).values["full_transcript"]
    return made


class LongMessages(VariedMessages):
    """Model whose messages have about 200 tokens, as a capable model's have."""

    def respond(self, messages: list[Any], **kwargs: Any) -> Any:
        """Return four generated messages as one, or JSON if a schema is options."""
        seed = kwargs.pop("seed", None) or 0
        replies = [super(LongMessages, self).respond(messages, seed=4 * seed + n, **kwargs) for n in range(4)]
        if not kwargs.get("json_schema"):
            replies[0].content = " ".join(str(reply.content) for reply in replies)
        return replies[0]


@dataclass(frozen=True)
class PromptUse:
    """Use of the budget by one prompt."""

    tokens: int
    budget: int
    earlier: int
    """Tokens of the debaters' messages before the call."""
    shown: int
    """Tokens of these messages that the prompt shows, or retrieves."""


def uses(made: Run) -> Iterator[tuple[str, PromptUse]]:
    """Yield the purpose or phase of each call, and the use of its budget."""
    count, at = counter(), 0
    for call, _ in made.calls:
        prompt = call.prompt
        if prompt is None:
            continue
        if call.stream_as:
            at = max(at, seq_of(call.stream_as.entry_id) or 0)
        end = len(made.transcript) if call.purpose == "judge" else at
        first = next((e["seq"] for e in made.transcript[:end][::-1] if e["phase"] != call.hints["phase"]), -1)
        end = end if call.purpose != "turn" or call.call_index == 0 else max(first + 1, 0)
        earlier = [entry for entry in made.transcript[:end] if traits_of(entry).argues]
        visible_ids = {*prompt.shown_ids, *prompt.retrieved}
        schema = schema_tokens(call.schema, count) if call.schema else 0
        name = call.hints["phase"] if call.purpose == "turn" else call.purpose
        yield (
            name,
            PromptUse(
                prompt.total_tokens + schema,
                prompt.budget + schema,
                sum(entry["tokens"] for entry in earlier),
                sum(entry["tokens"] for entry in earlier if entry["id"] in visible_ids),
            ),
        )


def rows(made: Run) -> dict[str, dict[str, float]]:
    """Return the figures of each phase of a debate."""
    found = defaultdict[str, list[PromptUse]](list)
    for name, use in uses(made):
        found[name].append(use)
    table = {}
    for name, each in found.items():
        lacking = [use.budget - use.tokens for use in each if use.shown < use.earlier]
        earlier = sum(use.earlier for use in each)
        table[name] = {
            "calls": len(each),
            "tokens": fmean(use.tokens for use in each),
            "budget": fmean(use.tokens / use.budget for use in each),
            "shown": sum(use.shown for use in each) / earlier if earlier else 1.0,
            "unused": fmean(lacking) if lacking else 0.0,
        }
    return table


def costs(made: Run) -> dict[str, float]:
    """Return the tokens and the price of a debate, with and without a provider's prefix cache."""
    count = counter()
    bodies = [json.dumps({"messages": call.messages}).encode() for call, _ in made.calls]
    shares = [each.cached / each.tokens for each in cached_shares(bodies)]
    sizes = [
        call.prompt_tokens + (schema_tokens(call.schema, count) if call.schema else 0)
        for call, _ in made.calls
    ]
    replies = sum(count(reply.text or json.dumps(reply.data, ensure_ascii=False)) for _, reply in made.calls)
    cached = sum(share * size for share, size in zip(shares, sizes, strict=True))
    paid = CACHED_PRICE * cached + UNCACHED_PRICE * (sum(sizes) - cached)
    return {
        "calls": len(made.calls),
        "input": sum(sizes),
        "cached": cached / sum(sizes),
        "output": replies,
        "usd": (INPUT_USD * sum(sizes) + OUTPUT_USD * replies) / 1e6,
        "usd_cached": (INPUT_USD * paid + OUTPUT_USD * replies) / 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print both tables."""
    parser = argparse.ArgumentParser(description="Use of the prompts' budgets, by protocol and phase.")
    parser.add_argument("--quick", action="store_true", help="run short generated debates")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    recorded = {name: recording_config(name) for name in recordings()}
    runs = {name: run(settings, settings["topic"]) for name, settings in recorded.items()}
    for name, settings in GENERATED.items():
        short = QUICK if options.quick and "turns" in settings else {}
        runs[f"{name}, generated"] = run({**settings, **short, "model": "varied-messages"}, TOPIC)
    tables = {name: rows(made) for name, made in runs.items()}
    prices = {name: costs(runs[name]) for name in recorded}
    if options.json:
        print(json.dumps({"prompts": tables, "prices": prices}))
        return
    print(f"  {'debate':<24} {'phase':<16} calls  tokens  of budget  messages shown  unused")
    for name, table in tables.items():
        for phase, row in table.items():
            print(
                f"  {name:<24} {phase:<16} {row['calls']:5.0f} {row['tokens']:7,.0f} {row['budget']:9.0%} "
                f"{row['shown']:15.0%} {row['unused']:7,.0f}"
            )
    print(f"\n  {'recorded debate':<24} calls    input  cached  output     US$  with a prefix cache")
    for name, cost in prices.items():
        print(
            f"  {name:<24} {cost['calls']:5.0f} {cost['input']:8,.0f} {cost['cached']:7.0%} "
            f"{cost['output']:7,.0f} {cost['usd']:7.3f} {cost['usd_cached']:7.3f}"
        )


if __name__ == "__main__":
    main()

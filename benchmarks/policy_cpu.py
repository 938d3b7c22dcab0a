"""Measure Moot's own processor time per turn, early and late in a debate.

    python -m benchmarks.policy_cpu [--early 100] [--late 10000] [--turns 120] [--quick]

The model takes no time. The benchmark measures the bodies of the nodes of a turn and the routes between them.
The nodes are `plan`, `turn` (prompts and receipts), and any others that are due. The time includes summaries
and the indexing for retrieval.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from moot.calls.effects import Ask, Emit, InboxContents, ReadInbox, run_body_with
from moot.calls.model_calls import Reply
from moot.config import DebateConfig
from moot.config.boundary import Permissions
from moot.graph.debate import NODES, graph
from moot.graph.routing import successor
from moot.nodes.open import open_debate
from moot.runtime.context import NodeContext, node_context
from moot.runtime.environment import Environment
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.reducers import add_totals, append, fold_window, merge

RATIO_TARGET = 1.3
SPEAKERS = ("ada", "bo", "cy", "di")
REDUCERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "full_transcript": append,
    "receipts": append,
    "summary_versions": append,
    "reflections": append,
    "errors": append,
    "messages": fold_window,
    "claim_events": append,
    "protocol_state": merge,
    "crux_rooms": merge,
    "board_progress": merge,
    "usage": add_totals,
}
_SUBJECTS = (
    "trams",
    "buses",
    "ferries",
    "tolls",
    "wages",
    "schools",
    "harbours",
    "bridges",
    "parks",
    "taxes",
)
_VERBS = ("cost", "save", "need", "lose", "gain", "outlast", "replace", "delay")

TARGETS = {
    node: list((branch.ends or {}).values())
    for node, branches in graph.builder.branches.items()
    for branch in branches.values()
}
"""Nodes that may follow each node."""


def message_text(rng: random.Random) -> str:
    """Return a message of about 110 words."""
    sentences = [
        f"I hold that {rng.choice(_SUBJECTS)} {rng.choice(_VERBS)} {rng.randint(2, 99)} % more than "
        f"{rng.choice(_SUBJECTS)} in district {rng.randint(1, 400)}."
        for _ in range(7)
    ]
    return " ".join([*sentences, "I concede that the winter was mild.", "What would change your mind?"])


@dataclass
class Debate:
    """Debate whose nodes run without LangGraph, so that only their own work is timed."""

    state: ConversationState
    environment: Environment
    permissions: Permissions
    rng: random.Random
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @classmethod
    def with_messages(cls, messages: int, config: DebateConfig) -> Debate:
        """Return a debate with this number of messages."""
        rng, environment = random.Random(1), Environment()
        permissions = Permissions.of_operator(config)
        transcript = [{"speaker": SPEAKERS[n % 4], "content": message_text(rng)} for n in range(messages)]
        initial = cast(
            ConversationState, {"topic": "Who should pay for transport?", "full_transcript": transcript}
        )
        debate = cls(initial, environment, permissions, rng)
        opened = run_body_with(open_debate(debate.context), debate._answer)
        entries: list[Entry] = opened["full_transcript"].value
        debate.state = cast(ConversationState, {**opened, "full_transcript": entries})
        debate.state["messages"] = cast(Any, fold_window([], [opened["messages"]]))
        debate.state["turn_count"] = messages
        debate.run("extract")
        debate.run_successors("extract")
        return debate

    @property
    def context(self) -> NodeContext:
        """Context of a node that runs on the present state."""
        return node_context(self.environment, self.state, self.permissions, debate="cpu")

    def turn(self) -> None:
        """Run one turn."""
        for name in ("plan", "turn"):
            self.run(name)
        self.run_successors("turn")

    def run_successors(self, name: str) -> None:
        """Run the nodes after one, until `plan` begins the next step."""
        while name in TARGETS and name != "plan":
            started = time.process_time()
            name = successor(name, self.context, TARGETS[name])
            self.seconds["routes"] += time.process_time() - started
            if name != "plan":
                self.run(name)

    def run(self, name: str) -> None:
        """Run one node and apply its update, as LangGraph would."""
        started = time.process_time()
        update = run_body_with(NODES[name](self.context), self._answer)
        self.seconds[name] += time.process_time() - started
        folded = {
            key: REDUCERS[key](self.state.get(key) or _empty_channel(key), [value])
            if key in REDUCERS
            else value
            for key, value in update.items()
        }
        self.state = cast(ConversationState, {**self.state, **folded})

    def _answer(self, effect: Any) -> Any:
        if isinstance(effect, (Emit, Ask)):
            return None
        if isinstance(effect, ReadInbox):
            return InboxContents()
        return [Reply(text=message_text(self.rng), model="m") for _ in effect]


def _empty_channel(key: str) -> Any:
    return [] if REDUCERS[key] in (append, fold_window) else {}


@dataclass(frozen=True)
class Cost:
    """Milliseconds of processor time per turn, by node."""

    messages: int
    nodes: dict[str, float]

    @property
    def total(self) -> float:
        """Sum over all nodes."""
        return sum(self.nodes.values())


def measure(early: int, late: int, turns: int) -> tuple[Cost, Cost]:
    """Return the cost of a turn after `early` and after `late` messages.

    The indexes are built before the measurement. The two debates run alternately, so that changes in the
    speed of the machine affect both.
    """
    debates = [_debate(messages, turns) for messages in (early, late)]
    for count, stage in ((turns // 3, "warming up"), (turns, "measured")):
        if stage == "measured":
            for debate in debates:
                debate.seconds.clear()
        for _ in range(count):
            for debate in debates:
                debate.turn()
    first, second = (
        {name: 1_000 * spent / turns for name, spent in debate.seconds.items()} for debate in debates
    )
    return Cost(early, first), Cost(late, second)


def _debate(messages: int, turns: int) -> Debate:
    config = DebateConfig.model_validate(
        {
            "turns": messages + 10 * turns,
            "debaters": [{"name": name.title(), "id": name} for name in SPEAKERS],
        }
    )
    return Debate.with_messages(messages, config)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="Moot's own processor time per turn.")
    parser.add_argument("--early", type=int, default=100, help="messages of the short debate")
    parser.add_argument("--late", type=int, default=10_000, help="messages of the long debate")
    parser.add_argument("--turns", type=int, default=120, help="turns to measure")
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 messages, 40 turns")
    options = parser.parse_args(arguments)
    late, turns = (1_000, 40) if options.quick else (options.late, options.turns)
    costs = measure(options.early, late, turns)
    print(f"policy: processor time per turn, mean of {turns} turns, with summaries")
    for cost in costs:
        parts = ", ".join(f"{name} {spent:.2f}" for name, spent in cost.nodes.items())
        print(f"  at {cost.messages:>6,} messages {cost.total:6.2f} ms   ({parts})")
    print(f"  ratio {costs[1].total / costs[0].total:.2f}   (target ≤ {RATIO_TARGET})")


if __name__ == "__main__":
    main()

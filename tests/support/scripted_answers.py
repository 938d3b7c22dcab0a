"""Answers of known accuracy from the loopback server, and the results that must follow from them.

Whether an answer is right depends on the model, the item and the seed alone, so a test can compute every
figure of a report from the script.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.openai_answers import Act, Json, schema_of
from tests.support.schema_answers import filled

CHOICES = ("red", "blue", "green", "grey")
LETTERS = "ABCD"
CONFIDENCE = 80
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Script:
    """Accuracy of each model, and how far the models fail on the same items."""

    accuracy: Mapping[str, float] = field(default_factory=dict)
    """Accuracy by model; 0.7 for any other."""
    shared: float = 0.0
    """Share of the items on which chance is the item's, the same for all models and seeds."""

    def letter(self, model: str, item: int, seed: int) -> str:
        """Return the letter that a model answers."""
        right = LETTERS[item % 4]
        common = _chance(f"shared/{item}") < self.shared
        luck = _chance(f"item/{item}") if common else _chance(f"{model}/{item}/{seed}")
        return right if luck < self.accuracy.get(model, 0.7) else LETTERS[(item + 1) % 4]

    def is_right(self, model: str, item: int, seed: int) -> bool:
        """Return whether the model's answer is right."""
        return self.letter(model, item, seed) == LETTERS[item % 4]

    def vote(self, model: str, item: int, answers: int, seed: int = 1) -> str:
        """Return the most frequent of several answers; of equally frequent ones the first."""
        given = [self.letter(model, item, each) for each in range(seed, seed + answers)]
        return Counter(given).most_common(1)[0][0]

    def act(self, asked: Json, number: int) -> Act | None:
        """Answer a request."""
        text = json.dumps(asked["messages"])
        found = re.search(r"Item (\d+):", text)
        if found is None:
            return None
        letter = self.letter(asked["model"], int(found[1]), int(asked.get("seed") or 1))
        schema = schema_of(asked)
        if schema is None:
            stated = f"\nConfidence: {CONFIDENCE}" if "Confidence: " in text else ""
            return Act(text=f"I thought about it.\n\nAnswer: {letter}{stated}", usage=USAGE)
        decision = letter if "enum" in schema["properties"].get("decision", {}) else f"Answer: {letter}"
        reply = filled(
            schema, {"winner": "tie", "confidence": CONFIDENCE, "decision": decision, "answer": letter}
        )
        return Act(text=json.dumps(reply), usage=USAGE)


def _chance(key: str) -> float:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) / 2**64


def question_rows(number: int) -> list[Json]:
    """Return items with four choices, whose right answers go round."""
    return [
        {
            "id": f"q{item}",
            "question": f"Item {item}: which colour?",
            "choices": list(CHOICES),
            "answer": LETTERS[item % 4],
            "group": "even" if item % 2 == 0 else "odd",
        }
        for item in range(number)
    ]


def jsonl(rows: Sequence[Json]) -> str:
    """Return rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


DEBATE = """
protocol: round-robin
turns: 3
debaters: [{name: Ann, model: ann}, {name: Bo, model: bo}, {name: Cy, model: cy}]
judge: {model: judge}
blackboard: {extraction: none}
"""
"""Configuration of a debate of three models and a judge."""

default_plan = Script({"m": 0.75, "ann": 0.7, "bo": 0.6, "cy": 0.8, "judge": 0.85}, shared=0.3)


def plan(asked: Json, number: int) -> Act | None:
    """Answer by the default script: the plan of a server in a process of its own."""
    return default_plan.act(asked, number)

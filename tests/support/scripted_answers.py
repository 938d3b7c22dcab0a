"""Answers with known accuracy for the local server, and the results that follow from them.

Whether an answer is correct depends only on the model, the item and the seed. So a test can compute every
figure of a report from the script.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.openai_answers import Json, ServerReply, requested_schema
from tests.support.schema_answers import fill_schema

CHOICES = ("red", "blue", "green", "grey")
LETTERS = "ABCD"
CONFIDENCE = 80
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@dataclass(frozen=True)
class Script:
    """Accuracy of each model, and the share of items on which all models fail together."""

    accuracy: Mapping[str, float] = field(default_factory=dict)
    """Accuracy by model; 0.7 for any other."""
    shared: float = 0.0
    """Share of the items with the same random number for all models and seeds."""

    def letter(self, model: str, item: int, seed: int) -> str:
        """Return the answer of a model."""
        right = LETTERS[item % 4]
        common = _chance(f"shared/{item}") < self.shared
        luck = _chance(f"item/{item}") if common else _chance(f"{model}/{item}/{seed}")
        return right if luck < self.accuracy.get(model, 0.7) else LETTERS[(item + 1) % 4]

    def is_right(self, model: str, item: int, seed: int) -> bool:
        """Return True if the model's answer is correct."""
        return self.letter(model, item, seed) == LETTERS[item % 4]

    def vote(self, model: str, item: int, answers: int, seed: int = 1) -> str:
        """Return the most frequent of several answers. Of equally frequent ones the first wins."""
        letters = [self.letter(model, item, each) for each in range(seed, seed + answers)]
        return Counter(letters).most_common(1)[0][0]

    def reply(self, asked: Json, number: int) -> ServerReply | None:
        """Return the reply to a request about an item."""
        text = json.dumps(asked["messages"])
        match = re.search(r"Item (\d+):", text)
        if match is None:
            return None
        letter = self.letter(asked["model"], int(match[1]), int(asked.get("seed") or 1))
        schema = requested_schema(asked)
        if schema is None:
            stated = f"\nConfidence: {CONFIDENCE}" if "Confidence: " in text else ""
            return ServerReply(text=f"I thought about it.\n\nAnswer: {letter}{stated}", usage=USAGE)
        decision = letter if "enum" in schema["properties"].get("decision", {}) else f"Answer: {letter}"
        reply = fill_schema(
            schema, {"winner": "tie", "confidence": CONFIDENCE, "decision": decision, "answer": letter}
        )
        return ServerReply(text=json.dumps(reply), usage=USAGE)


def _chance(key: str) -> float:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) / 2**64


def question_rows(number: int) -> list[Json]:
    """Return items with four choices. The correct answers are A, B, C, D in turn."""
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


DEBATE_YAML = """
protocol: round-robin
turns: 3
debaters: [{name: Ann, model: ann}, {name: Bo, model: bo}, {name: Cy, model: cy}]
judge: {model: judge}
blackboard: {extraction: none}
"""
"""Configuration of a debate with three models and a judge."""

DEFAULT_SCRIPT = Script({"m": 0.75, "ann": 0.7, "bo": 0.6, "cy": 0.8, "judge": 0.85}, shared=0.3)


def plan(asked: Json, number: int) -> ServerReply | None:
    """Return the reply of the default script. A server in its own process uses this as its plan."""
    return DEFAULT_SCRIPT.reply(asked, number)

"""Random instances of a JSON Schema, as a model might return them."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

from tests.support.openai_answers import Json, ServerReply, requested_schema

WORDS = (
    "yes",
    "no",
    "cost",
    "Ann",
    "40 %",
    "”",
    "[m000002]",
    "#",
    "**plan**",
    "fails",
    ",",
    "Ben",
    ".",
    "1,000",
    "?",
)


class RandomAnswers:
    """Plan of the local server that answers each structured call with a random instance of its schema."""

    def __init__(self, seed: int) -> None:
        self.random_value = Random(seed)

    def __call__(self, asked: Json, number: int) -> ServerReply | None:
        """Return the reply to a structured call. Other calls get the default reply."""
        schema = requested_schema(asked)
        return (
            None
            if schema is None
            else ServerReply(text=json.dumps(random_instance(schema, self.random_value)))
        )


def random_instance(schema: Json, dice: Random, root: Json | None = None) -> Any:
    """Return a random value that is valid against a schema of the kind that Moot sends."""
    root = schema if root is None else root
    if "$ref" in schema:
        *_, name = schema["$ref"].split("/")
        return random_instance(root["$defs"][name], dice, root)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return random_instance(dice.choice(options), dice, root)
    kind = schema["type"]
    if kind == "object":
        required = schema.get("required", ())
        return {
            key: random_instance(part, dice, root)
            for key, part in schema["properties"].items()
            if key in required or dice.random() < 0.5
        }
    if kind == "array":
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", 4), 20)
        return [random_instance(schema["items"], dice, root) for _ in range(dice.randint(least, most))]
    return _scalar(schema, dice)


def _scalar(schema: Json, dice: Random) -> Any:
    match schema["type"]:
        case "null":
            return None
        case "boolean":
            return dice.random() < 0.5
        case "string" if "pattern" in schema:
            return f"m{dice.randrange(10**6):06d}"
        case "string":
            return " ".join(dice.choices(WORDS, k=dice.choice((0, 1, 4, 30))))
    low, high = schema.get("minimum", -1e6), schema.get("maximum", 1e6)
    value = dice.choice((low, high, dice.uniform(low, high)))
    return math.floor(value) if schema["type"] == "integer" else value

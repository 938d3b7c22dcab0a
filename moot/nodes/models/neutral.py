"""Neutral answers: any JSON Schema that pydantic makes is filled, and nothing is judged.

Texts say that they are placeholders, numbers stand in the middle of their range, choices are the first one,
what may be left out is. What a caller knows better is told in `Hints.fields`.
"""

import math
from collections.abc import Mapping, Sequence
from random import Random

from moot.state.entries import JsonObject
from moot.state.verdict import PLACEHOLDER

FORMATS = {
    "date-time": "2025-01-01T00:00:00Z",
    "date": "2025-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}
TEXT = f"{PLACEHOLDER.capitalize()}."

Schema = JsonObject


def fill(schema: Schema, fields: Mapping[str, object], text: str = TEXT) -> object:
    """Return a value that is valid against `schema`.

    Args:
        schema: a JSON Schema as pydantic makes it.
        fields: what properties hold, by name, wherever they stand; of an object a part, which is filled up,
            and of a list its length, too.
        text: what stands for texts.
    """
    return _Filler(schema, fields, text).value(schema)


class _Filler:
    def __init__(self, root: Schema, fields: Mapping[str, object], text: str) -> None:
        self.root, self.fields, self.text = root, fields, text

    def value(self, node: Schema, number: int = 0) -> object:
        """Return a value; one of another `number` differs where the schema has room for that."""
        node = self._resolve(node)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][number % len(node["enum"])]
        options = node.get("anyOf") or node.get("oneOf")
        if options:
            # Nothing before something, and what may contain itself last.
            ranked = sorted(options, key=lambda each: (each.get("type") != "null", "$ref" in each))
            return self.value(ranked[number % len(ranked)] if number else ranked[0], number)
        match node.get("type"):
            case "null":
                return None
            case "boolean":
                return bool(number % 2)
            case "object":
                return self._object(node, {})
            case "array":
                fixed = [self.value(part) for part in node.get("prefixItems", ())]
                missing = range(len(fixed), node.get("minItems", 0))
                return [*fixed, *(self.value(node.get("items", {}), at) for at in missing)]
            case "integer" | "number":
                return _number(node, number)
        return self._string(node, number)

    def filled_up(self, node: Schema, given: object) -> object:
        """Return what the caller told, its objects filled up."""
        node = self._resolve(node)
        if isinstance(given, Mapping):
            return self._object(node, given)
        if isinstance(given, int) and node.get("type") == "array":
            return [self.value(node.get("items", {}), number) for number in range(given)]
        if isinstance(given, Sequence) and not isinstance(given, str):
            return [self.filled_up(node.get("items", {}), each) for each in given]
        return given

    def _resolve(self, node: Schema) -> Schema:
        while "$ref" in node or "allOf" in node:
            merged = {key: value for key, value in node.items() if key not in ("$ref", "allOf")}
            if "$ref" in node:
                part = self.root
                for key in filter(None, node["$ref"].lstrip("#/").split("/")):
                    part = part[key.replace("~1", "/").replace("~0", "~")]
                merged = {**part, **merged}
            for part in node.get("allOf", ()):
                merged = {**part, **merged}
            node = merged
        return node

    def _object(self, node: Schema, own: Mapping[str, object]) -> JsonObject:
        properties, known = node.get("properties", {}), {**self.fields, **own}
        filled = {
            name: self.filled_up(part, known[name]) if name in known else self.value(part)
            for name, part in properties.items()
            if name in known or name in node.get("required", ())
        }
        if not properties:
            keys = self._resolve(node.get("propertyNames", {}))
            patterns = node.get("patternProperties", {})
            values = next(iter(patterns.values()), node.get("additionalProperties", {}))
            names = [self.value({"pattern": pattern}) for pattern in patterns]
            for number in range(node.get("minProperties", 0)):
                name = names[number] if number < len(names) else self.value(keys, number)
                filled[f"key {number + 1}" if name == self.text else str(name)] = self.value(
                    values if isinstance(values, dict) else {}
                )
        return filled

    def _string(self, node: Schema, number: int) -> str:
        if "pattern" in node:
            from rstr import Rstr

            return Rstr(Random(number)).xeger(node["pattern"])  # noqa: S311  # no secret
        if node.get("format") in FORMATS:
            return FORMATS[node["format"]]
        text = self.text if not number else f"{number + 1}: {self.text}"
        while len(text) < node.get("minLength", 0):
            text = f"{text} {self.text}"
        return text[: node.get("maxLength", len(text))]


def _number(node: Schema, number: int) -> float:
    """Return the middle of a range, or the bound where there is one, as a multiple of what it must be."""
    step = node.get("multipleOf") or (1 if node["type"] == "integer" else 0)
    nudge = step or 1
    low = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    high = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    if math.isinf(low) and math.isinf(high):
        value = 0.0
    elif math.isinf(low):
        value = high - nudge
    elif math.isinf(high):
        value = low + nudge
    else:
        value = (low + high) / 2
    value += number * nudge if math.isinf(high) or value + number * nudge < high else -number * nudge
    if step:
        value = math.floor(value / step) * step
        value += step if value < low or value == node.get("exclusiveMinimum") else 0
    return int(value) if node["type"] == "integer" else value

"""Fills any JSON Schema that pydantic makes, with values that fit the debate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moot.nodes.models.offline.fields import TIE, WHO, Facts
from moot.nodes.models.offline.reading import Reading
from moot.nodes.models.offline.strings import FORMATS, matching

MAX_DEPTH = 7
"""Nesting past which only what is required is filled."""
MANY = 3
"""Items of a list that nothing decides the length of, at most."""

_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:–|-|to|and|\.\.)\s*(-?\d+(?:\.\d+)?)")
_DEFAULT_RANGES = (("confidence", (0.0, 1.0)), ("score", (1.0, 10.0)), ("importance", (1.0, 10.0)))
_UNTOLD = frozenset({"text", "content", "value", "item", "description"})
_FILLER = " and so on"

Schema = Mapping[str, Any]


@dataclass
class _Place:
    """Where in the answer a value stands."""

    name: str = ""
    who: str = ""
    """The debater that the surrounding object is about."""
    label: str = ""
    """The criterion that it is about."""
    depth: int = 0
    taken: list[str] = field(default_factory=list)
    """Debaters that this object names already."""

    def inner(self, name: str) -> _Place:
        """Return the place of a field or an item; a field that says nothing goes by its parent's name."""
        told = f"{self.name}_{name}" if name in _UNTOLD else name
        return replace(self, name=told, depth=self.depth + 1)


def fill(schema: Schema, reading: Reading) -> Any:
    """Return a value that is valid against `schema`.

    Fields named like debaters hold debaters, citations hold ids of messages that the prompt shows, scores
    follow from what a debater said and the winner from the scores; texts are taken from the prompt's words.
    """
    return _Filler(schema, Facts(reading)).value(schema, _Place())


class _Filler:
    def __init__(self, root: Schema, facts: Facts) -> None:
        self.root, self.facts = root, facts

    def value(self, node: Schema, place: _Place) -> Any:
        node = self._resolved(node)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self._choice(list(node["enum"]), place)
        options = node.get("anyOf") or node.get("oneOf")
        if options:
            return self._option(list(options), place)
        kind = node.get("type")
        if isinstance(kind, list):
            return self._option([{**node, "type": one} for one in kind], place)
        if kind == "null":
            return None
        if kind == "boolean":
            return self.facts.dice(place.name, place.who) % 3 == 0
        makers: dict[str, Callable[[Schema, _Place], Any]] = {
            "object": self._object,
            "array": self._array,
            "integer": self._number,
            "number": self._number,
        }
        return makers.get(str(kind), self._string)(node, place)

    def _resolved(self, node: Schema) -> Schema:
        while "$ref" in node or "allOf" in node:
            merged: dict[str, Any] = {k: v for k, v in node.items() if k not in ("$ref", "allOf")}
            parts = [self._at(node["$ref"])] if "$ref" in node else []
            for part in (*parts, *map(self._resolved, node.get("allOf", ()))):
                both = {**part.get("properties", {}), **merged.get("properties", {})}
                needed = [*part.get("required", ()), *merged.get("required", ())]
                merged = {**part, **merged}
                if both:
                    merged["properties"], merged["required"] = both, needed
            node = merged
        return node

    def _at(self, reference: str) -> Schema:
        found: Any = self.root
        for key in reference.lstrip("#/").split("/") if reference != "#" else ():
            found = found[key.replace("~1", "/").replace("~0", "~")]
        return found  # type: ignore[no-any-return]  # a part of a schema is a schema

    def _choice(self, values: list[Any], place: _Place) -> Any:
        if WHO.search(place.name):
            person = self.facts.person(place.name, place.who, place.taken)
            fitting = [value for value in values if str(value).casefold() == person.casefold()]
            values = fitting or [value for value in values if value in self.facts.people] or values
        return values[self.facts.dice(place.name, place.who) % len(values)]

    def _option(self, options: list[Schema], place: _Place) -> Any:
        empty = any(option.get("type") == "null" for option in options)
        if empty and (place.depth > MAX_DEPTH or ("winner" in place.name and self.facts.winner() == TIE)):
            return None
        some = [option for option in options if option.get("type") != "null"]
        if place.depth > MAX_DEPTH:
            some = [option for option in some if "$ref" not in option] or some
        if not some:
            return None
        return self.value(some[self.facts.dice(place.name, "option") % len(some)], place)

    def _object(self, node: Schema, place: _Place) -> dict[str, Any]:
        properties = node.get("properties", {})
        required = set(node.get("required", ()))
        place = replace(place, taken=[])
        filled: dict[str, Any] = {}
        for name, part in properties.items():
            if place.depth > MAX_DEPTH and name not in required:
                continue
            filled[name] = self.value(part, place.inner(name))
            self._note(name, filled[name], place)
        if not properties:
            filled.update(self._entries(node, place))
        return filled

    def _note(self, name: str, value: Any, place: _Place) -> None:
        if isinstance(value, str) and WHO.search(name) and value in self.facts.people:
            place.taken.append(value)
            if "winner" not in name and not place.who:
                place.who = value

    def _entries(self, node: Schema, place: _Place) -> dict[str, Any]:
        """A mapping: by debater, unless its keys are prescribed."""
        patterns = node.get("patternProperties", {})
        values = next(iter(patterns.values()), node.get("additionalProperties", {}))
        if values is False or (place.depth > MAX_DEPTH and not node.get("minProperties")):
            return {}
        allowed = self._resolved(node.get("propertyNames", {})).get("enum")
        keys = list(allowed or ([matching(key) for key in patterns] or self.facts.people))
        while len(keys) < node.get("minProperties", 0):
            keys.append(f"{keys[0] if keys else 'key'}-{len(keys)}")
        keys = keys[: node.get("maxProperties", len(keys))]
        schema: Schema = values if isinstance(values, Mapping) else {}
        return {
            key: self.value(
                schema, replace(place.inner(place.name), who=key if key in self.facts.people else place.who)
            )
            for key in keys
        }

    def _array(self, node: Schema, place: _Place) -> list[Any]:
        known = self.facts.reading.hints.get("fields") or {}
        if place.name in known:
            return list(known[place.name])
        least, most = node.get("minItems", 0), node.get("maxItems", 64)
        fixed = [self.value(part, place.inner(place.name)) for part in node.get("prefixItems", ())]
        items = node.get("items", {})
        if items is False or ("prefixItems" in node and "items" not in node):
            return fixed
        values = [*fixed, *self._items(items, place, least, most)][:most]
        return self._distinct(values, items, place, least) if node.get("uniqueItems") else values

    def _items(self, items: Schema, place: _Place, least: int, most: int) -> list[Any]:
        schema = self._resolved(items)
        if place.depth > MAX_DEPTH:
            return [self.value(items, place.inner(place.name)) for _ in range(least)]
        if schema.get("type") == "string" and not schema.keys() & {"enum", "pattern", "format"}:
            return self._strings(schema, place, least, most)
        places = self._places(schema, place)
        if places is None:
            count = 1 + self.facts.dice(place.name, "count") % MANY
            places = [place] * count
        while len(places) < least:
            places = [*places, *places]
        return [self.value(items, one.inner(place.name)) for one in places[: max(least, min(most, 64))]]

    def _places(self, schema: Schema, place: _Place) -> list[_Place] | None:
        """One object for each debater, and each criterion where it has one; `None` where nothing decides."""
        names = list(schema.get("properties", {}))
        if place.who or not any(name in ("debater", "speaker", "candidate", "participant") for name in names):
            return None
        labels = (self.facts.criteria or ("overall",)) if "criterion" in names else ("",)
        return [replace(place, who=who, label=label) for who in self.facts.people for label in labels]

    def _strings(self, schema: Schema, place: _Place, least: int, most: int) -> list[str]:
        count = max(least, min(most, 1 + self.facts.dice(place.name, "count") % MANY))
        if self.facts.cites(place.name):
            found = self.facts.citations(place.who, count)
        elif WHO.search(place.name):
            found = [person for person in self.facts.people if person != place.who][:most]
        else:
            found = []
        fitting = [text for text in found if _fits(text, schema)]
        if (self.facts.cites(place.name) or fitting) and len(fitting) >= least:
            return fitting[:most]
        texts = [str(self._string(schema, place.inner(place.name))) for _ in range(count)]
        return [*dict.fromkeys(texts)] if len(set(texts)) >= least else texts

    def _distinct(self, values: list[Any], items: Schema, place: _Place, least: int) -> list[Any]:
        distinct: list[Any] = []
        for value in values:
            if value not in distinct:
                distinct.append(value)
        pool = list(self._resolved(items).get("enum", ()))
        for attempt in range(40):
            if len(distinct) >= least:
                break
            value = pool[attempt % len(pool)] if pool else self.value(items, place.inner(place.name))
            if isinstance(value, str) and value in distinct and not pool:
                value = f"{value} {attempt}"
            if value not in distinct:
                distinct.append(value)
        return distinct

    def _number(self, node: Schema, place: _Place) -> float | int:
        low, high = _bounds(node, place.name)
        share = 0.35 + 0.6 * self._share(place)
        step = node.get("multipleOf") or (1 if node["type"] == "integer" else None)
        exact = low + (high - low) * share
        if step:
            steps = min(max(round(exact / step), math.ceil(low / step)), math.floor(high / step))
            return int(steps * step) if node["type"] == "integer" else steps * step
        rounded = round(exact, 1 if high - low >= 5 else 2)
        return rounded if low < rounded < high else exact

    def _share(self, place: _Place) -> float:
        if place.who:
            return self.facts.strength(place.who, f"{place.label}{place.name}")
        return self.facts.dice(place.name) % 1000 / 1000

    def _string(self, node: Schema, place: _Place) -> str:
        if place.name == "criterion" and place.label:
            text = place.label
        elif WHO.search(place.name):
            text = self.facts.person(place.name, place.who, place.taken)
        elif self.facts.cites(place.name):
            text = next(iter(self.facts.citations(place.who, 1)), "")
        else:
            text = self.facts.text(place.name, place.who)
        return _fitted(text, node)


def _bounds(node: Schema, name: str) -> tuple[float, float]:
    described = _RANGE.search(node.get("description", ""))
    low, high = (float(described[1]), float(described[2])) if described else (math.nan, math.nan)
    if not low < high:
        low, high = next((bounds for word, bounds in _DEFAULT_RANGES if word in name), (0.0, 10.0))
    return _clamped(node, low, high)


def _clamped(node: Schema, low: float, high: float) -> tuple[float, float]:
    whole = 1.0 if node["type"] == "integer" else 0.0
    least = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf) + whole)
    most = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf) - whole)
    span = high - low
    if math.isfinite(least):
        low = least if not math.isfinite(most) or low < least or low > most else max(low, least)
    if math.isfinite(most):
        high = most
        low = low if low < high and low >= least else max(least, high - span)
    elif high <= low:
        high = low + span
    return max(low, least), min(high, most)


def _fits(text: str, node: Schema) -> bool:
    long_enough = node.get("minLength", 0) <= len(text) <= node.get("maxLength", math.inf)
    return long_enough and ("pattern" not in node or re.search(node["pattern"], text) is not None)


def _fitted(text: str, node: Schema) -> str:
    if "pattern" in node and not _fits(text, node):
        return matching(node["pattern"])
    if node.get("format") in FORMATS:
        return FORMATS[node["format"]]
    least, most = node.get("minLength", 0), node.get("maxLength")
    if len(text) < least:
        text = (text + _FILLER * (1 + (least - len(text)) // len(_FILLER)))[: max(least, len(text))]
    return text if most is None or len(text) <= most else text[: max(0, most - 1)] + "…" * (most > 0)

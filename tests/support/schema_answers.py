"""Structured replies for fake models: the smallest valid instance with chosen fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from moot.calls.model_calls import ModelCall
from moot.models.offline import smallest_instance


def fill_schema(schema: dict[str, Any], fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the smallest instance of an object's schema, with the given fields that the schema has.

    The required scores are of different debaters and criteria, because a repeated score does not count.
    """
    smallest: Any = smallest_instance(schema)
    if smallest.get("scores"):
        row = _resolved(schema, schema["properties"]["scores"]["items"])["properties"]
        cells = product(*(_resolved(schema, row[key])["enum"] for key in ("debater", "criterion")))
        rows = zip(smallest["scores"], cells, strict=False)
        smallest["scores"] = [{**score, "debater": side, "criterion": key} for score, (side, key) in rows]
    return {**smallest, **{name: fields[name] for name in schema.get("properties", {}) if name in fields}}


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return part


def criteria_of(call: ModelCall) -> list[str]:
    """Return the ids of the criteria in a judge's schema."""
    assert call.schema is not None
    return list(dict.fromkeys(_criteria(call.schema.model_json_schema())))


def _criteria(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (node.get("criterion") or {}).get("enum", ())
        for each in node.values():
            yield from _criteria(each)
    elif isinstance(node, list):
        for each in node:
            yield from _criteria(each)

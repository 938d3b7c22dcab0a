"""Structured answers: how a schema is said strictly, and how an answer is read back or asked for again."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from moot.nodes.calls import WireMessage
from moot.state.config.config_mistakes import mistakes_in
from moot.state.entries import JsonObject, clean_text

Method = Literal["json_schema", "function_calling", "json_mode", "prompt"]

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)```", re.DOTALL)
MAX_CANDIDATES = 40
"""Places in a prose answer where JSON is looked for."""
ECHO_CHARS = 2_000
ERROR_CHARS = 1_000

_UNSUPPORTED = ("default", "discriminator", "minLength", "maxLength", "title", "examples", "uniqueItems")


def with_correction(messages: tuple[WireMessage, ...], said: str, error: str) -> tuple[WireMessage, ...]:
    """Append the refused answer and what is wrong with it."""
    return (
        *messages,
        {"role": "assistant", "content": said[:ECHO_CHARS] or "(nothing)"},
        {
            "role": "user",
            "content": f"That answer cannot be used:\n{error[:ERROR_CHARS]}\n"
            "Answer again with one JSON object that matches the schema, and nothing else.",
        },
    )


@dataclass(frozen=True)
class Parsed:
    """A structured answer, or why there is none."""

    data: JsonObject | None = None
    error: str = ""


def read_answer(schema: type[BaseModel], said: str, arguments: JsonObject | None = None) -> Parsed:
    """Validate an answer: a tool's arguments, else the first JSON object in the text that fits the schema."""
    error = "there is no JSON object in it"
    candidates = [dict(arguments)] if arguments is not None else _objects(said)
    for candidate in candidates:
        try:
            return Parsed(data=schema.model_validate(clean_json(candidate)).model_dump(mode="json"))
        except ValidationError as invalid:
            error = "\n".join(f"- {each}" for each in mistakes_in(invalid, "the object")[:8])
        except RecursionError:
            error = "it is nested too deeply"
    return Parsed(error=error)


def clean_json(value: Any) -> Any:
    """Return a JSON value with every string cleaned: escapes can spell what text may not hold."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    return value


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """Return the schema in the form that OpenAI's strict mode takes, `None` where it cannot be said so.

    Strict mode wants every property required and none beside; free-form objects, tuples and `Any` do not fit.
    """
    try:
        strict = _strict(schema)
    except _NotStrict:
        return None
    return strict if strict.get("type") == "object" else None


class _NotStrict(Exception):
    """A part of a schema that strict mode cannot say."""


def _strict(node: JsonObject) -> JsonObject:
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if not node.keys() & {"type", "anyOf", "oneOf", "allOf", "enum", "const"} or "prefixItems" in node:
        raise _NotStrict
    kept: JsonObject = {key: value for key, value in node.items() if key not in _UNSUPPORTED}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    for key in ("anyOf", "allOf"):
        if key in kept:
            kept[key] = [_strict(option) for option in kept[key]]
    if node.get("type") == "array":
        kept["items"] = _strict(node.get("items", {}))
    if node.get("type") == "object":
        properties = node.get("properties")
        if properties is None or node.get("additionalProperties", False) is not False:
            raise _NotStrict
        kept["properties"] = {name: _strict(part) for name, part in properties.items()}
        kept["required"] = list(properties)
        kept["additionalProperties"] = False
    if "$defs" in kept:
        kept["$defs"] = {name: _strict(part) for name, part in kept["$defs"].items()}
    return kept


def _objects(said: str) -> Iterator[JsonObject]:
    """Yield the JSON objects that a text is, holds in fences, or holds anywhere."""
    for text in (said, *_FENCE.findall(said)):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
    decoder, start = json.JSONDecoder(), said.find("{")
    for _ in range(MAX_CANDIDATES):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(said, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = said.find("{", end)

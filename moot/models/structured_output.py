"""Structured output: strict JSON schemas, validation of replies, and the request to correct a reply."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from moot.calls.effects import WireMessage
from moot.state.config.section import errors_in
from moot.state.entries import JsonObject, clean_text
from moot.text.plain_text import break_template_tokens

Method = Literal["json_schema", "function_calling", "json_mode", "prompt"]

_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)```", re.DOTALL)
MAX_CANDIDATES = 40
"""Maximum number of `{` characters at which the parser tries to read a JSON object."""
ECHO_CHARS = 2_000
"""Maximum number of characters quoted from an invalid reply in a request for correction."""
ERROR_CHARS = 1_000
"""Maximum number of characters quoted from a validation error in a request for correction."""


def with_correction(messages: tuple[WireMessage, ...], text: str, error: str) -> tuple[WireMessage, ...]:
    """Append an invalid reply and its validation error to a prompt, so that the model corrects it."""
    return (
        *messages,
        {"role": "assistant", "content": break_template_tokens(text[:ECHO_CHARS]) or "(nothing)"},
        {
            "role": "user",
            "content": f"That answer cannot be used:\n{break_template_tokens(error[:ERROR_CHARS])}\n"
            "Answer again with one JSON object that matches the schema, and nothing else.",
        },
    )


@dataclass(frozen=True)
class ParsedReply:
    """Result of parsing a structured reply, either data or an error message."""

    data: JsonObject | None = None
    error: str = ""


def parse_reply(schema: type[BaseModel], text: str, arguments: JsonObject | None = None) -> ParsedReply:
    """Parse a structured reply and validate the data against the schema.

    Args:
        schema: model of the expected object.
        text: text of the reply. The first JSON object in it that fits the schema is used.
        arguments: arguments of a tool call, used instead of the text.
    """
    error = "there is no JSON object in it"
    candidates = [dict(arguments)] if arguments is not None else _objects(text)
    for candidate in candidates:
        try:
            return ParsedReply(data=schema.model_validate(clean_json(candidate)).model_dump(mode="json"))
        except ValidationError as invalid:
            error = "\n".join(f"- {each}" for each in errors_in(invalid, "the object")[:8])
        except RecursionError:
            error = "it is nested too deeply"
    return ParsedReply(error=error)


def clean_json(value: Any) -> Any:
    """Return a JSON value with all its strings cleaned by `clean_text`.

    JSON escapes can produce characters that stored text must not contain.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    return value


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the JSON objects in a text, trying the whole text, then code fences, then any position."""
    for part in (text, *_FENCE.findall(text)):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(MAX_CANDIDATES):
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)

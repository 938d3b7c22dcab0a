"""Built-in offline model, which returns placeholder texts without a network or a key."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.resources import files
from random import Random
from typing import Any, cast

import yaml
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from moot.calls.effects import Hints
from moot.models.local import LocalModel
from moot.state.config import OFFLINE
from moot.state.config.model_settings import RECORDED
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, ModelError
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
"""Placeholder text for free-text fields. It is truncated or repeated to fit the schema's length limits."""


def smallest_instance(schema: JsonObject, text: str = TEXT) -> object:
    """Return the smallest JSON value that is valid for a JSON Schema.

    Optional properties are omitted. Lists have their minimum number of items. Numbers have their lowest
    allowed value. An enumeration has its first value.

    Args:
        schema: a JSON Schema as pydantic generates it.
        text: value of free texts.
    """
    return _Generator(schema, text).value(schema)


class _Generator:
    def __init__(self, root: JsonObject, text: str) -> None:
        self.root, self.text = root, text

    def value(self, node: JsonObject, number: int = 0) -> object:
        """Return a minimal example value that is valid for one node of a JSON Schema.

        A different `number` gives a different value if the schema allows it.
        """
        node = self._resolve(node)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return node["enum"][number % len(node["enum"])]
        options = node.get("anyOf") or node.get("oneOf")
        if options:
            # Null comes first, and references come last, since a reference may be recursive.
            ranked = sorted(options, key=lambda each: (each.get("type") != "null", "$ref" in each))
            return self.value(ranked[number % len(ranked)], number)
        match node.get("type"):
            case "null":
                return None
            case "boolean":
                return bool(number % 2)
            case "object":
                return self._object(node)
            case "array":
                fixed = [self.value(part) for part in node.get("prefixItems", ())]
                missing = range(len(fixed), node.get("minItems", 0))
                return [*fixed, *(self.value(node.get("items", {}), at) for at in missing)]
            case "integer" | "number":
                return _number(node, number)
        return self._string(node, number)

    def _resolve(self, node: JsonObject) -> JsonObject:
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

    def _object(self, node: JsonObject) -> JsonObject:
        properties = node.get("properties", {})
        if properties:
            return {
                name: self.value(properties[name]) for name in properties if name in node.get("required", ())
            }
        keys = self._resolve(node.get("propertyNames", {}))
        patterns = node.get("patternProperties", {})
        values = next(iter(patterns.values()), node.get("additionalProperties", {}))
        names = [self.value({"pattern": pattern}) for pattern in patterns]
        filled: JsonObject = {}
        for number in range(node.get("minProperties", 0)):
            name = names[number] if number < len(names) else self.value(keys, number)
            key = f"key {number + 1}" if name == self.text else str(name)
            filled[key] = self.value(values if isinstance(values, dict) else {})
        return filled

    def _string(self, node: JsonObject, number: int) -> str:
        if "pattern" in node:
            from rstr import Rstr

            return Rstr(Random(number)).xeger(node["pattern"])  # noqa: S311  # no secret
        if node.get("format") in FORMATS:
            return FORMATS[node["format"]]
        text = self.text if not number else f"{number + 1}: {self.text}"
        while len(text) < node.get("minLength", 0):
            text = f"{text} {self.text}"
        return text[: node.get("maxLength", len(text))]


def _number(node: JsonObject, number: int) -> float:
    """Return a number that satisfies the limits of a numeric schema.

    It is `number` steps away from the minimum, the maximum, or 0.
    """
    whole = node["type"] == "integer"
    step = node.get("multipleOf") or (1 if whole else 0)
    low = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    high = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    # Without a step, half the interval avoids exclusive bounds.
    room = (high - low) / 2 if math.isfinite(high - low) else 1
    nudge = step or min(1, room)
    value = low if math.isfinite(low) else (high if math.isfinite(high) else 0)
    if step:
        value = (math.ceil if math.isfinite(low) else math.floor)(value / step) * step
    if value == node.get("exclusiveMinimum"):
        value += nudge
    elif value == node.get("exclusiveMaximum"):
        value -= nudge
    away = number * nudge if math.isfinite(low) or not math.isfinite(high) else -number * nudge
    if low < value + away < high:
        value += away
    return int(value) if whole else value


CHARS_PER_TOKEN = 4
"""Number of characters that the offline model counts as one token of usage. An exact count of a long prompt
would take most of the run time."""
TOOL_ARGUMENTS: dict[str, JsonObject] = {
    "search": {"query": "placeholder"},
    "search_debate": {"query": "placeholder"},
    "list_files": {},
    "calculator": {"expression": "12 * 0.25"},
}
"""Arguments for each tool that the offline model can call, keyed by tool name."""


class OfflineModel(LocalModel):
    """Chat model that replies with placeholder text, so that Moot can be tried without a provider.

    A text call gets a short fixed text that names the phase and the speaker. A structured call gets the
    smallest valid instance of its schema. A speaker with tools calls one of them first. The reply depends
    only on the call's hints, schema and tools, not on the text of the prompt.
    """

    @property
    def _llm_type(self) -> str:
        return OFFLINE

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return a placeholder reply to a prompt as text, a tool call or JSON."""
        schema, hints = kwargs.get("json_schema"), cast(Hints, kwargs.get("hints") or {})
        called = None if schema else _tool_call(messages, kwargs.get("tools") or ())
        if schema is not None:
            answer = json.dumps(smallest_instance(schema), ensure_ascii=False)
        elif called is not None:
            answer = ""
        else:
            answer = _shorten(placeholder_text(hints), kwargs.get("max_tokens"))
        sent = kwargs.get("prompt_tokens")
        sent = sent or sum(len(message.content) for message in messages) // CHARS_PER_TOKEN
        received = max(1, len(answer or str(called)) // CHARS_PER_TOKEN)
        usage = UsageMetadata(input_tokens=sent, output_tokens=received, total_tokens=sent + received)
        return AIMessage(answer, tool_calls=[called] if called else [], usage_metadata=usage)


def placeholder_text(hints: Hints) -> str:
    """Return placeholder text that names a message's speaker, debate phase, round and targets."""
    what = hints.get("phase", "answer").replace("-", " ")
    if speaker := hints.get("speaker"):
        what = f"{what} of {speaker}"
    if targets := hints.get("targets"):
        what = f"{what} to {', '.join(targets)}"
    if round_no := hints.get("round"):
        what = f"{what} in round {round_no}"
    wanted = "an argument" if hints.get("purpose", "turn") == "turn" else "a real one"
    return f"[offline model] Placeholder for the {what}. Set a model to get {wanted}."


def _tool_call(messages: Sequence[BaseMessage], tools: Sequence[JsonObject]) -> Any:
    """Return a call to the first known tool, or `None` if the model should reply with text."""
    if any(isinstance(message, ToolMessage) for message in messages):
        return None
    offered = (tool["function"]["name"] for tool in tools)
    name = next((name for name in offered if name in TOOL_ARGUMENTS), None)
    return name and {"id": "call_1", "name": name, "args": TOOL_ARGUMENTS[name], "type": "tool_call"}


def _shorten(text: str, max_tokens: int | None) -> str:
    """Truncate text at a word boundary to about `max_tokens` tokens.

    One token counts as three characters.
    """
    if max_tokens is None or len(text) <= 3 * max_tokens:
        return text
    cut = text[: max(3 * max_tokens, 1)]
    return cut.rsplit(" ", 1)[0]


_PLACE = ("purpose", "phase", "speaker", "round")
_FOLDER = files("moot.models") / "recordings"


def recordings() -> list[str]:
    """Return the names of the recorded sample debates in alphabetical order."""
    return sorted(each.name for each in _FOLDER.iterdir() if each.is_dir())


def recording_config(name: str) -> JsonObject:
    """Return the configuration for replaying a recorded debate. Recorded replies take the place of a model.

    Raises:
        ConfigError: there is no recording with this name.
    """
    settings: JsonObject = yaml.safe_load(_text(name, "debate.yaml"))
    return {**settings, "model": RECORDED + name}


def check_recording(name: str) -> None:
    """Raise an error if no sample debate has this name.

    Raises:
        ConfigError: there is no sample debate with this name.
    """
    if name not in recordings():
        raise ConfigError(f"there is no sample debate {name!r}: choose one of {', '.join(recordings())}")


def _text(name: str, file: str) -> str:
    check_recording(name)
    return (_FOLDER / name / file).read_text(encoding="utf-8")


class RecordedModel(LocalModel):
    """Chat model that replays the replies of a recorded debate.

    Raises:
        ModelError: the recording has no reply for the call.
    """

    recording: str
    """Name of the recorded debate to replay."""
    pace_s: float = 0.0
    """Number of seconds to pause after each word of a streamed reply. The default is 0."""

    _replies: list[JsonObject] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any, /) -> None:
        """Load the recording of the debate.

        Reading files is allowed here, because model clients are built in a worker thread.
        """
        self._replies = yaml.safe_load(_text(self.recording, "replies.yaml"))

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the first recorded reply whose conditions match the current call.

        A condition names, for example, the speaker or the debate phase.
        """
        hints: Mapping[str, Any] = kwargs["hints"]
        for reply in self._replies:
            if all(hints.get(key) == value for key, value in reply["when"].items()):
                text = reply.get("says")
                return AIMessage(json.dumps(reply["answers"], ensure_ascii=False) if text is None else text)
        place = ", ".join(str(hints[key]) for key in _PLACE if hints.get(key))
        raise ModelError(
            f"the sample debate {self.recording!r} has no reply for this call ({place}): to continue the "
            "debate, choose a model with --model",
            retryable=False,
        )

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, stop, **kwargs):
            if self.pace_s and chunk.text:
                await asyncio.sleep(self.pace_s)
            yield chunk

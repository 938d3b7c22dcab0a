"""Chat models that need no provider: offline, recorded, scripted, and command-line programs.

`LocalModel` is their base class. `ScriptedModel` returns prepared replies in examples, notebooks and tests.
The offline model returns placeholder texts without a network or a key. `CommandModel` runs a program for each
call. `RecordedModel` replays a recorded debate.
"""

import asyncio
import contextlib
import json
import math
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, cast

import yaml
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field, PrivateAttr

from moot.calls.concurrency import shield
from moot.calls.model_calls import Hints
from moot.config import OFFLINE, model_settings
from moot.models.failures import MESSAGE_CHARS, Failure
from moot.models.pattern_text import text_matching
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, ModelError, advise
from moot.state.settings import redact
from moot.state.verdict import PLACEHOLDER

_WORDS = re.compile(" ?[^ ]+| ")
"""Pattern that splits a reply into words for streaming. Each match is a word and the space before it, and all
matches together form the text."""


class LocalModel(BaseChatModel):
    """Base class of chat models that run in this process and need no provider.

    `complete` passes these keyword arguments: `hints` of the call, `json_schema` (`None` for text), `tools`,
    `seed`, `max_tokens` and `prompt_tokens`.
    """

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the model's reply to a prompt. Every subclass defines this method."""
        raise NotImplementedError

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages, **kwargs))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(self.respond(messages, **kwargs))

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self.respond(messages, **kwargs)):
            yield chunk


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    for piece in _WORDS.findall(str(message.content)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            additional_kwargs=message.additional_kwargs,
            tool_calls=message.tool_calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


ScriptReply = str | JsonObject | AIMessage | Exception
"""Reply that a `ScriptedModel` returns, or exception that it raises."""


@dataclass(frozen=True)
class ScriptedCall:
    """Record of one call to a `ScriptedModel`."""

    messages: list[BaseMessage]
    parameters: JsonObject = field(default_factory=dict)
    """Keyword arguments of the call, for example `hints`, `json_schema`, `seed` and `max_tokens`."""


Script = Iterable[ScriptReply] | Callable[[ScriptedCall], ScriptReply]


class ScriptedModel(LocalModel):
    """Chat model for tests that returns prepared replies in order and records its calls.

    The script is a list or an iterator of replies, one for each call, or a function from a call to its reply.
    The model streams its replies word by word.

    Raises:
        ModelError: the script has no reply left.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: Any
    """Prepared replies, as a list, an iterator, or a function that maps a call to its reply."""
    calls: list[ScriptedCall] = Field(default_factory=list)
    """Calls that this model has received, oldest first."""

    _replies: Iterator[ScriptReply] | None = PrivateAttr(default=None)

    def __init__(self, script: Script, **fields: Any) -> None:
        super().__init__(script=script, calls=[], **fields)
        self._replies = None if callable(script) else iter(script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the next scripted reply, or raise it if it is an error."""
        call = ScriptedCall(messages, kwargs)
        self.calls.append(call)
        try:
            reply: ScriptReply = self.script(call) if self._replies is None else next(self._replies)
        except StopIteration:
            raise ModelError(
                f"the script has only {len(self.calls) - 1} replies, but the model was called again: "
                "add replies to the script"
            ) from None
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, dict):
            reply = json.dumps(reply, ensure_ascii=False)
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


MAX_BYTES = 4_000_000
"""Maximum number of bytes that a command may write to each of stdout and stderr."""
_HEADINGS = {"system": "", "human": "", "ai": "# Your earlier message\n\n"}


def check_command(name: str, command: Sequence[str]) -> None:
    """Raise a `ConfigError` if the program in a model's `command` is not found or cannot be executed."""
    if shutil.which(command[0]) is None:
        raise ConfigError(
            f"models.{name}.command: the program {command[0]!r} was not found: install it, or give "
            "its full path"
        )


def prompt_text(messages: Sequence[BaseMessage]) -> str:
    """Join a prompt's messages into one text for a command's stdin."""
    return "\n\n".join(f"{_HEADINGS.get(each.type, '')}{each.text}" for each in messages) + "\n"


class CommandModel(BaseChatModel):
    """Chat model that runs a command-line program for each call."""

    command: tuple[str, ...]
    """Command line of the program: its name or path, then its arguments."""

    @property
    def _llm_type(self) -> str:
        return "command"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **__: object
    ) -> ChatResult:
        return asyncio.run(self._agenerate(messages))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **__: object
    ) -> ChatResult:
        """Run the command with the prompt on stdin, and return its stdout as the reply."""
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="moot-")
        try:
            text = await self._run(prompt_text(messages), folder)
        finally:
            await shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        message = AIMessage(text.strip(), response_metadata={"finish_reason": "stop"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _run(self, prompt: str, folder: str) -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, start_new_session=True
            )
        except OSError as error:
            raise Failure(f"the command {self.command[0]!r} cannot be started: {error.strerror}") from error
        stdin, pipes = process.stdin, [each for each in (process.stdout, process.stderr) if each]
        assert stdin is not None  # noqa: S101  # all are pipes
        tasks = [asyncio.create_task(_read(pipe)) for pipe in pipes]
        tasks.append(asyncio.create_task(_feed(stdin, prompt)))
        try:
            stdout, stderr, _ = await asyncio.gather(*tasks)
            code = await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await shield(_reap(process, tasks, pipes))
        if code:
            message = redact(stderr.decode("utf-8", "replace")).strip()[-MESSAGE_CHARS:]
            raise Failure(
                f"the command {self.command[0]!r} ended with exit code {code}: {message}", retryable=True
            )
        return stdout.decode("utf-8", "replace")


async def _reap(
    process: asyncio.subprocess.Process,
    tasks: Sequence[asyncio.Task[bytes]],
    pipes: Sequence[asyncio.StreamReader],
) -> None:
    """Stop the tasks that use a killed process's pipes, and wait for the process to end.

    The rest of the output is read, because asyncio reports no end while a pipe holds unread data.
    """
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for pipe in pipes:
        while await pipe.read(65_536):
            pass
    await process.wait()


async def _feed(stdin: asyncio.StreamWriter, text: str) -> bytes:
    with contextlib.suppress(ConnectionError):  # a command need not read the whole prompt
        stdin.write(text.encode("utf-8", "replace"))
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()
    return b""


async def _read(stream: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(65_536):
        parts.append(part)
        if (size := size + len(part)) > MAX_BYTES:
            raise Failure(f"the command wrote more than {MAX_BYTES} bytes: make it write only the reply")
    return b"".join(parts)


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
    """
    return _Generator(schema, text).value(schema)


class _Generator:
    def __init__(self, root: JsonObject, text: str) -> None:
        self.root, self.text = root, text

    def value(self, node: JsonObject, number: int = 0) -> object:
        """Return a minimal valid value for a node. The `number` of a list's item varies it if possible."""
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
                prefix = [self.value(part) for part in node.get("prefixItems", ())]
                missing = range(len(prefix), node.get("minItems", 0))
                return [*prefix, *(self.value(node.get("items", {}), index) for index in missing)]
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
        instance: JsonObject = {}
        for number in range(node.get("minProperties", 0)):
            name = names[number] if number < len(names) else self.value(keys, number)
            key = f"key {number + 1}" if name == self.text else str(name)
            instance[key] = self.value(values if isinstance(values, dict) else {})
        return instance

    def _string(self, node: JsonObject, number: int) -> str:
        if "pattern" in node:
            return text_matching(node["pattern"], number)
        if node.get("format") in FORMATS:
            return FORMATS[node["format"]]
        text = self.text if not number else f"{number + 1}: {self.text}"
        while len(text) < node.get("minLength", 0):
            text = f"{text} {self.text}"
        return text[: node.get("maxLength", len(text))]


def _number(node: JsonObject, number: int) -> float:
    """Return the minimum, else the maximum, else 0, moved by `number` steps if the schema allows it."""
    is_integer = node["type"] == "integer"
    step = node.get("multipleOf") or (1 if is_integer else 0)
    low = max(node.get("minimum", -math.inf), node.get("exclusiveMinimum", -math.inf))
    high = min(node.get("maximum", math.inf), node.get("exclusiveMaximum", math.inf))
    # Without a step, half the interval avoids exclusive bounds.
    half_range = (high - low) / 2 if math.isfinite(high - low) else 1
    nudge = step or min(1, half_range)
    value = low if math.isfinite(low) else (high if math.isfinite(high) else 0)
    if step:
        value = (math.ceil if math.isfinite(low) else math.floor)(value / step) * step
    if value == node.get("exclusiveMinimum"):
        value += nudge
    elif value == node.get("exclusiveMaximum"):
        value -= nudge
    offset = number * nudge if math.isfinite(low) or not math.isfinite(high) else -number * nudge
    if low < value + offset < high:
        value += offset
    return int(value) if is_integer else value


CHARS_PER_TOKEN = 4
"""Number of characters that the offline model counts as one token. An exact count of a long prompt would take
most of the run time."""
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
        """Return a placeholder reply, which is text, a tool call or JSON depending on the request."""
        schema, hints = kwargs.get("json_schema"), cast(Hints, kwargs.get("hints") or {})
        tool_call = None if schema else _tool_call(messages, kwargs.get("tools") or ())
        if schema is not None:
            answer = json.dumps(smallest_instance(schema), ensure_ascii=False)
        elif tool_call is not None:
            answer = ""
        else:
            answer = _shorten(placeholder_text(hints), kwargs.get("max_tokens"))
        input_tokens = kwargs.get("prompt_tokens")
        input_tokens = input_tokens or sum(len(message.content) for message in messages) // CHARS_PER_TOKEN
        output_tokens = max(1, len(answer or str(tool_call)) // CHARS_PER_TOKEN)
        usage = UsageMetadata(
            input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=input_tokens + output_tokens
        )
        return AIMessage(answer, tool_calls=[tool_call] if tool_call else [], usage_metadata=usage)


def placeholder_text(hints: Hints) -> str:
    """Return a placeholder that names the speaker, the debate phase, the round and the targets."""
    description = hints.get("phase", "answer").replace("-", " ")
    if speaker := hints.get("speaker"):
        description = f"{description} of {speaker}"
    if targets := hints.get("targets"):
        description = f"{description} to {', '.join(targets)}"
    if round_no := hints.get("round"):
        description = f"{description} in round {round_no}"
    replacement = "an argument" if hints.get("purpose", "turn") == "turn" else "a real one"
    return f"[offline model] Placeholder for the {description}. Set a model to get {replacement}."


def _tool_call(messages: Sequence[BaseMessage], tools: Sequence[JsonObject]) -> Any:
    """Return a call to the first tool that the offline model knows, or `None` to reply with text."""
    if any(isinstance(message, ToolMessage) for message in messages):
        return None
    tool_names = (tool["function"]["name"] for tool in tools)
    name = next((name for name in tool_names if name in TOOL_ARGUMENTS), None)
    return name and {"id": "call_1", "name": name, "args": TOOL_ARGUMENTS[name], "type": "tool_call"}


def _shorten(text: str, max_tokens: int | None) -> str:
    """Truncate text at a word boundary to about `max_tokens` tokens of three characters."""
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
    """Return the configuration for replaying a recorded debate. An unknown name is a `ConfigError`."""
    settings: JsonObject = yaml.safe_load(_text(name, "debate.yaml"))
    return {**settings, "model": model_settings.RECORDED + name}


def check_recording(name: str) -> None:
    """Raise a `ConfigError` if no sample debate has this name."""
    if name not in recordings():
        raise ConfigError(f"there is no sample debate {name!r}: choose one of {', '.join(recordings())}")


def _text(name: str, file: str) -> str:
    check_recording(name)
    return (_FOLDER / name / file).read_text(encoding="utf-8")


class RecordedModel(LocalModel):
    """Chat model that replays a recorded debate. A call without a recorded reply is a `ModelError`."""

    recording: str
    """Name of the recorded debate to replay."""
    pace_s: float = 0.0
    """Number of seconds to pause after each word of a streamed reply. The default is 0."""

    _replies: list[JsonObject] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any, /) -> None:
        """Load the replies. A worker thread builds clients, so files may be read here."""
        self._replies = yaml.safe_load(_text(self.recording, "replies.yaml"))

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the first recorded reply whose conditions, such as speaker and phase, match the call."""
        hints: Mapping[str, Any] = kwargs["hints"]
        for reply in self._replies:
            if all(hints.get(key) == value for key, value in reply["when"].items()):
                text = reply.get("says")
                return AIMessage(json.dumps(reply["answers"], ensure_ascii=False) if text is None else text)
        place = ", ".join(str(hints[key]) for key in _PLACE if hints.get(key))
        raise ModelError(
            f"the sample debate {self.recording!r} has no recorded reply for this call ({place}): to "
            f"continue the debate, choose a model with {advise('--model', '`Debate.reconfigure`')}",
            retryable=False,
        )

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, stop, **kwargs):
            if self.pace_s and chunk.text:
                await asyncio.sleep(self.pace_s)
            yield chunk

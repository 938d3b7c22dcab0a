"""How a call is put to a chat model: in OpenAI's way, in any LangChain model's own, or in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from pydantic import BaseModel

from moot.nodes.calls import ModelCall, WireMessage
from moot.nodes.models.failures import Failure
from moot.nodes.models.local import LocalModel
from moot.nodes.models.schemas import Method, strict_schema
from moot.state.at_sight import at_sight
from moot.state.config.model_settings import ModelSettings
from moot.state.entries import JsonObject

_NOT_SLUG = re.compile(r"[^a-zA-Z0-9_-]+")
NAME_CHARS = 64

_ROOM = ("max_tokens", "max_output_tokens", "num_predict", "max_completion_tokens", "max_new_tokens")
_SEED = ("seed", "random_seed")
"""What LangChain's chat models call one and the same parameter; the first that a model has is set."""

_UNABLE = (NotImplementedError, TypeError, ValueError)
"""What LangChain's models raise that have no way to be bound to a schema, or not this one."""


class SpeaksOpenAI:
    """Marks a chat model that takes OpenAI's parameters as they are and repeats its usage as it streams."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a call, before it is put to a chat model."""

    call: ModelCall
    messages: tuple[WireMessage, ...]
    room: int
    """Tokens for the answer."""
    settings: ModelSettings
    method: Method | None = None
    """How a structured answer is asked for, `None` for text."""


@dataclass(frozen=True)
class ChatRequest:
    """One attempt of a call, put to a chat model."""

    chat: BaseChatModel
    messages: tuple[WireMessage, ...]
    fields: JsonObject
    """What is passed beside the messages."""
    shows_names: bool = True
    """Whether the model is shown messages' names."""


def request_of(chat: BaseChatModel, attempt: Attempt) -> ChatRequest:
    """Put an attempt to a chat model in the way that it takes.

    Raises:
        Failure: it cannot be: tools are offered to a model that takes none.
    """
    call, settings = attempt.call, attempt.settings
    if attempt.method in ("json_mode", "prompt") and not isinstance(chat, LocalModel):
        attempt = _with_schema_in_words(attempt)
    if not isinstance(chat, LocalModel | SpeaksOpenAI):
        return _langchain_request(chat, attempt)
    fields: JsonObject = {"max_tokens": attempt.room}
    if call.seed is not None and settings.seed:
        fields["seed"] = call.seed
    if call.tools and call.schema is None:
        fields["tools"] = list(call.tools)
    if isinstance(chat, LocalModel):
        fields["hints"] = {"purpose": call.purpose, **call.hints}
        fields["json_schema"] = call.schema.model_json_schema() if call.schema else None
        fields["prompt_tokens"] = call.prompt_tokens
        return ChatRequest(chat, attempt.messages, fields)
    if call.temperature is not None and settings.temperature:
        fields["temperature"] = call.temperature
    if call.schema is not None and attempt.method is not None:
        fields |= request_fields(call.schema, attempt.method)
    return ChatRequest(chat, attempt.messages, fields)


def weaker_method(chat: BaseChatModel, method: Method) -> Method | None:
    """Return what is tried where a model's endpoint refuses a method, `None` for no other."""
    if method == "prompt":
        return None
    if isinstance(chat, SpeaksOpenAI):
        return "prompt" if method == "json_mode" else "json_mode"
    return "function_calling" if method == "json_schema" else "prompt"


def can_stream(chat: BaseChatModel, attempt: Attempt) -> bool:
    """Return whether a model's answer can be had word by word."""
    kind, base = type(chat), BaseChatModel
    able = kind._astream is not base._astream or kind._stream is not base._stream
    refused = chat.disable_streaming is True or (chat.disable_streaming and bool(attempt.call.tools))
    return attempt.settings.stream and able and not refused


def _with_schema_in_words(attempt: Attempt) -> Attempt:
    assert attempt.call.schema is not None  # noqa: S101  # a method is of a structured answer
    return replace(attempt, messages=with_schema(attempt.messages, attempt.call.schema))


def _langchain_request(chat: BaseChatModel, attempt: Attempt) -> ChatRequest:
    """Ask any LangChain model: by the fields that its class has, and its own ways of binding.

    What the model was made with stands, but for the room, which is the view's budget.
    """
    call, settings = attempt.call, attempt.settings
    bound: Mapping[str, Any] = {}
    if call.schema is not None and attempt.method != "prompt":
        try:
            bound = _bindings(chat, attempt)
        except _UNABLE:
            attempt = _with_schema_in_words(attempt)
    elif call.tools:
        try:
            bound = _bindings(chat, attempt)
        except NotImplementedError:
            raise Failure("it takes no tools: leave `tools` out for whoever speaks with it") from None
    profile = chat.profile or {}
    warm = settings.temperature and profile.get("temperature") is not False
    update = {
        **_open_field(chat, ("temperature",), call.temperature if warm else None),
        **_open_field(chat, _SEED, call.seed if settings.seed else None),
    }
    if room := _field_of(chat, _ROOM):
        update[room] = min(attempt.room, profile.get("max_output_tokens") or attempt.room)
    return ChatRequest(chat.model_copy(update=update), attempt.messages, dict(bound), shows_names=False)


def _field_of(chat: BaseChatModel, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in type(chat).model_fields), None)


def _open_field(chat: BaseChatModel, names: Sequence[str], value: float | None) -> JsonObject:
    """Return a value for the field of one of these names that was left open, `{}` without such a field."""
    name = _field_of(chat, names)
    return {name: value} if name and value is not None and name not in chat.model_fields_set else {}


def _bindings(chat: BaseChatModel, attempt: Attempt) -> Mapping[str, Any]:
    """Return what LangChain would pass to a model beside the messages, for its tools or for a schema.

    A schema is bound by the method that was configured, else by the provider's own choice.

    Raises:
        ValueError: LangChain does not say what it would pass.
    """
    schema = attempt.call.schema
    if schema is None:
        runnable: Runnable[Any, Any] = chat.bind_tools(list(attempt.call.tools))
    elif attempt.method == "function_calling":
        runnable = chat.bind_tools([schema], tool_choice=schema.__name__)
    elif "structured_output" in attempt.settings.model_fields_set:
        runnable = chat.with_structured_output(schema, method=attempt.method)
    else:
        runnable = chat.with_structured_output(schema)
    first = runnable.first if isinstance(runnable, RunnableSequence) else runnable
    if not isinstance(first, RunnableBinding):
        raise ValueError(f"no binding but a {type(first).__name__}")
    return first.kwargs


def request_fields(schema: type[BaseModel], method: Method) -> JsonObject:
    """Return what the request carries beside the messages, for one method."""
    name, full = wire_name(schema.__name__), schema.model_json_schema()
    if method == "json_schema":
        strict = strict_schema(full)
        body = {"name": name, "schema": strict or full, "strict": strict is not None}
        return {"response_format": {"type": "json_schema", "json_schema": body}}
    if method == "function_calling":
        function = {"name": name, "description": "Give the answer.", "parameters": full}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {"response_format": {"type": "json_object"}} if method == "json_mode" else {}


def with_schema(messages: tuple[WireMessage, ...], schema: type[BaseModel]) -> tuple[WireMessage, ...]:
    """Describe the schema at the end of the last message, for methods that do not carry it otherwise."""
    described = (
        "Answer with one JSON object and nothing else. It must match this JSON Schema:\n"
        + json.dumps(schema.model_json_schema(), ensure_ascii=False)
    )
    if not messages or messages[-1]["role"] not in ("user", "system"):
        return (*messages, {"role": "user", "content": described})
    last: WireMessage = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{described}"}
    return (*messages[:-1], last)


def wire_name(name: str) -> str:
    """Return a speaker's name as providers accept it; `""` where nothing of it can be kept."""
    return _NOT_SLUG.sub("-", name).strip("-")[:NAME_CHARS]


def to_langchain(
    messages: Iterable[WireMessage],
    *,
    merge_roles: bool = False,
    system_role: bool = True,
    names: bool = True,
) -> list[BaseMessage]:
    """Convert a prompt.

    Args:
        messages: the prompt; never changed.
        merge_roles: join neighbours of one role, for templates that refuse them.
        system_role: whether the model takes system messages; without, they open it as a user's.
        names: whether the model is shown messages' names; without, a speaker's stands before the words.
    """
    wire = list(messages)
    if not system_role:
        rules = "\n\n".join(item["content"] for item in wire if item["role"] == "system")
        wire = [item for item in wire if item["role"] != "system"]
        if rules:
            wire.insert(0, {"role": "user", "content": rules})
    if merge_roles:
        wire = _merge_roles(wire)
    if not names:
        wire = [{**item, "content": _labelled(item), "name": ""} for item in wire]
    return [_window_message(item) if "name" in item else _message(item) for item in wire]


@at_sight(4096)
def _window_message(item: WireMessage) -> BaseMessage:
    """Return the message of a window's entry, which stays the same from turn to turn."""
    return _message(item)


def _message(item: WireMessage) -> BaseMessage:
    named = {**item, "name": wire_name(item.get("name", "")) or None}
    return convert_to_messages([named])[0]


def _merge_roles(wire: Iterable[WireMessage]) -> list[WireMessage]:
    merged: list[WireMessage] = []
    for item in wire:
        last = merged[-1] if merged else item
        plain = not any("tool_calls" in each or each["role"] == "tool" for each in (last, item))
        if merged and plain and last["role"] == item["role"]:
            merged[-1] = {"role": item["role"], "content": f"{_labelled(last)}\n\n{_labelled(item)}"}
        else:
            merged.append(item)
    return merged


def _labelled(item: WireMessage) -> str:
    # A merged message has no single name, so each speaker's stands before the words.
    return f"{item['name']}: {item['content']}" if item.get("name") else item["content"]

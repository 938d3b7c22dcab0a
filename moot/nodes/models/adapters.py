"""How a call is put to a chat model: in OpenAI's way, in any LangChain model's own, or in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence

from moot.nodes.calls import ModelCall, WireMessage
from moot.nodes.models.failures import Failure
from moot.nodes.models.local import LocalModel
from moot.nodes.models.schemas import WEAKER, Method, request_fields, with_schema
from moot.state.config.model_settings import ModelSettings
from moot.state.entries import JsonObject

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
        attempt = _described(attempt)
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
    if method == "json_schema" and not isinstance(chat, SpeaksOpenAI):
        return "function_calling"
    return WEAKER.get(method) if isinstance(chat, SpeaksOpenAI) or method == "prompt" else "prompt"


def can_stream(chat: BaseChatModel, attempt: Attempt) -> bool:
    """Return whether a model's answer can be had word by word."""
    kind, base = type(chat), BaseChatModel
    able = kind._astream is not base._astream or kind._stream is not base._stream
    refused = chat.disable_streaming is True or (chat.disable_streaming and bool(attempt.call.tools))
    return attempt.settings.stream and able and not refused


def _described(attempt: Attempt) -> Attempt:
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
            bound = _bound(chat, attempt)
        except _UNABLE:
            attempt = _described(attempt)
    elif call.tools:
        try:
            bound = _bound(chat, attempt)
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


def _bound(chat: BaseChatModel, attempt: Attempt) -> Mapping[str, Any]:
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

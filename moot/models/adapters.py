"""Conversion of a model call to the parameters of a chat model, with structured output.

Three kinds of chat models are supported: OpenAI-compatible ones, any other LangChain model, and local ones.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from langchain_core.caches import BaseCache
from langchain_core.globals import get_llm_cache
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.outputs import ChatGeneration, ChatResult, Generation
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from pydantic import BaseModel

from moot.calls.model_calls import ModelCall, WireMessage
from moot.config.model_settings import ModelSettings
from moot.models.failures import Failure
from moot.models.offline import LocalModel
from moot.prompts.request import schema_instruction, sent_schema, strict_schema
from moot.state.entries import JsonObject, memoize_by_identity
from moot.state.langgraph_internals import streams_tokens
from moot.text.plain_text import break_template_tokens

Method = Literal["json_schema", "function_calling", "json_mode", "prompt"]

ECHO_CHARS = 2_000
"""Maximum number of characters quoted from an invalid reply. The quotation is part of a request to correct
the reply."""
ERROR_CHARS = 1_000
"""Maximum number of characters quoted from a validation error. The quotation is part of a request to correct
the reply."""


def with_correction(messages: tuple[WireMessage, ...], text: str, error: str) -> tuple[WireMessage, ...]:
    """Return a prompt that asks the model to correct an invalid reply."""
    return (
        *messages,
        {"role": "assistant", "content": break_template_tokens(text[:ECHO_CHARS]) or "(nothing)"},
        {
            "role": "user",
            "content": f"That answer cannot be used:\n{break_template_tokens(error[:ERROR_CHARS])}\n"
            "Answer again with one JSON object that matches the schema, and nothing else.",
        },
    )


def with_tool_refusal(messages: tuple[WireMessage, ...], text: str) -> tuple[WireMessage, ...]:
    """Return a prompt that asks for a message after the model called a tool that it was not offered."""
    quoted = break_template_tokens(text[:ECHO_CHARS]) or "(a tool call)"
    refusal = "You cannot call this tool. Write your message as plain text, without a tool call."
    return (*messages, {"role": "assistant", "content": quoted}, {"role": "user", "content": refusal})


_NOT_SLUG = re.compile(r"[^a-zA-Z0-9_-]+")
NAME_CHARS = 64
"""Maximum number of characters in the `name` of a message."""

_MAX_TOKENS_FIELDS = (
    "max_tokens",
    "max_output_tokens",
    "num_predict",
    "max_completion_tokens",
    "max_new_tokens",
)
_SEED_FIELDS = ("seed", "random_seed")
"""Names of the fields that LangChain's chat models use for the random seed. The first name that a model has
is set."""

_BINDING_ERRORS = (NotImplementedError, TypeError, ValueError)
"""Exceptions that LangChain models raise if they do not support a schema."""


class OpenAICompatible:
    """Marker class for chat models with an OpenAI-compatible API.

    They accept OpenAI's parameters and report the tokens used so far while streaming.
    """


@dataclass(frozen=True)
class Attempt:
    """Parameters of one attempt at a model call, not yet converted for a specific chat model."""

    call: ModelCall
    messages: tuple[WireMessage, ...]
    max_tokens: int
    """Maximum number of tokens in the reply."""
    settings: ModelSettings
    context: int | None = None
    """Size of the context that Ollama reserves for the model. `None`: Ollama's default."""
    method: Method | None = None
    """Method used to request structured output from the model. `None` requests a plain text reply."""


@dataclass(frozen=True)
class ChatRequest:
    """Parameters of one request to a chat model."""

    chat: BaseChatModel
    messages: tuple[WireMessage, ...]
    fields: JsonObject
    """Keyword arguments passed to the chat model in addition to the messages."""
    shows_names: bool = True
    """True if the provider passes the `name` of a message to the model. The default is True."""


def request_of(chat: BaseChatModel, attempt: Attempt) -> ChatRequest:
    """Convert an attempt to a request for a chat model. Tools that it cannot take raise a `Failure`."""
    call, settings = attempt.call, attempt.settings
    if attempt.method in ("json_mode", "prompt") and not isinstance(chat, LocalModel):
        attempt = _with_schema_in_words(attempt)
    if not isinstance(chat, LocalModel | OpenAICompatible):
        return _langchain_request(chat, attempt)
    fields: JsonObject = {"max_tokens": attempt.max_tokens}
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
    if settings.parameters:
        fields["extra_body"] = dict(settings.parameters)
    return ChatRequest(chat, attempt.messages, fields)


def weaker_method(chat: BaseChatModel, method: Method) -> Method | None:
    """Return the structured output method to try after `method`, or `None` if none is left."""
    if method == "prompt":
        return None
    if isinstance(chat, OpenAICompatible):
        return "prompt" if method == "json_mode" else "json_mode"
    return "function_calling" if method == "json_schema" else "prompt"


def cache_of(chat: BaseChatModel) -> BaseCache | None:
    """Return the LangChain cache used by a chat model, or `None` if the model has no cache."""
    if isinstance(chat.cache, BaseCache):
        return chat.cache
    return get_llm_cache() if chat.cache is not False and not isinstance(chat, LocalModel) else None


def cached_reply(generations: Sequence[Generation] | None) -> AIMessage | None:
    """Return the message that a LangChain cache lookup found, or `None` if it found none."""
    generation = generations[0] if generations else None
    message = generation.message if isinstance(generation, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None


def can_stream(chat: BaseChatModel, attempt: Attempt) -> bool:
    """Return True if the chat model can stream its reply in the given attempt."""
    is_disabled = chat.disable_streaming is True or (chat.disable_streaming and bool(attempt.call.tools))
    return attempt.settings.stream and streams_tokens(chat) and not is_disabled


def _with_schema_in_words(attempt: Attempt) -> Attempt:
    assert attempt.call.schema is not None  # noqa: S101  # only a structured call has a method
    return replace(attempt, messages=with_schema(attempt.messages, attempt.call.schema))


def _langchain_request(chat: BaseChatModel, attempt: Attempt) -> ChatRequest:
    """Return a request to a LangChain model for one attempt at a model call.

    The request uses the fields of the model's class and its `bind` methods. Values set by the user on the
    model are kept, except the token limit, which the prompt budget determines.
    """
    call, settings = attempt.call, attempt.settings
    bindings: Mapping[str, Any] = {}
    if call.schema is not None and attempt.method != "prompt":
        try:
            bound = _bindings(chat, attempt)
            if isinstance(bound, Runnable):
                return ChatRequest(StructuredModel(runnable=bound), attempt.messages, {}, shows_names=False)
            bindings = bound
        except _BINDING_ERRORS:
            attempt = _with_schema_in_words(attempt)
    elif call.tools:
        try:
            bindings = cast(JsonObject, _bindings(chat, attempt))
        except NotImplementedError:
            raise Failure(
                "the model does not support tools: remove `tools` from the debaters that use this model"
            ) from None
    profile = chat.profile or {}
    has_temperature = settings.temperature and profile.get("temperature") is not False
    update = {
        **_open_field(chat, ("temperature",), call.temperature if has_temperature else None),
        **_open_field(chat, _SEED_FIELDS, call.seed if settings.seed else None),
        **_open_field(chat, ("num_ctx",), attempt.context),
    }
    if max_tokens_field := _field_of(chat, _MAX_TOKENS_FIELDS):
        update[max_tokens_field] = min(
            attempt.max_tokens, profile.get("max_output_tokens") or attempt.max_tokens
        )
    known = {key: value for key, value in settings.parameters.items() if key in type(chat).model_fields}
    others = {key: value for key, value in settings.parameters.items() if key not in known}
    copy = chat.model_copy(update={**update, **known})
    return ChatRequest(copy, attempt.messages, {**others, **bindings}, shows_names=False)


def _field_of(chat: BaseChatModel, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in type(chat).model_fields), None)


def _open_field(chat: BaseChatModel, names: Sequence[str], value: float | None) -> JsonObject:
    """Return an update of the first of these fields that the model has and the user has not set, or `{}`."""
    name = _field_of(chat, names)
    return {name: value} if name and value is not None and name not in chat.model_fields_set else {}


class StructuredModel(BaseChatModel):
    """Chat model that calls the runnable which a model's `with_structured_output` returned.

    The runnable returns the parsed object, or a message.
    """

    runnable: Runnable[list[BaseMessage], object]

    @property
    def _llm_type(self) -> str:
        return "structured-output"

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        return _structured_result(self.runnable.invoke(messages))

    async def _agenerate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        return _structured_result(await self.runnable.ainvoke(messages))


def _structured_result(value: object) -> ChatResult:
    if isinstance(value, BaseModel) and not isinstance(value, BaseMessage):
        value = value.model_dump(mode="json")
    if not isinstance(value, AIMessage):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        value = AIMessage(text)
    return ChatResult(generations=[ChatGeneration(message=value)])


def _bindings(chat: BaseChatModel, attempt: Attempt) -> Mapping[str, Any] | Runnable[Any, Any]:
    """Return the keyword arguments that bind tools or a schema to a LangChain model.

    A schema is bound by the configured method, or by the provider's default method. A model of one's own may
    return any runnable for a schema. Then return this runnable.
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
    return first.kwargs if isinstance(first, RunnableBinding) else runnable


def request_fields(schema: type[BaseModel], method: Method) -> JsonObject:
    """Return the request fields that ask for structured output, in OpenAI's format."""
    name, json_schema = wire_name(schema.__name__), sent_schema(schema)
    if method == "json_schema":
        body = {"name": name, "schema": json_schema, "strict": strict_schema(json_schema) is not None}
        return {"response_format": {"type": "json_schema", "json_schema": body}}
    if method == "function_calling":
        function = {"name": name, "description": "Give the answer.", "parameters": json_schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {"response_format": {"type": "json_object"}} if method == "json_mode" else {}


def with_schema(messages: tuple[WireMessage, ...], schema: type[BaseModel]) -> tuple[WireMessage, ...]:
    """Add the instruction to reply with JSON of this schema, for methods without a parameter for it."""
    instruction = schema_instruction(schema)
    if not messages or messages[-1]["role"] not in ("user", "system"):
        return (*messages, {"role": "user", "content": instruction})
    last: WireMessage = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{instruction}"}
    return (*messages[:-1], last)


def wire_name(name: str) -> str:
    """Return a name with at most `NAME_CHARS` characters, with hyphens for those that providers refuse."""
    return _NOT_SLUG.sub("-", name).strip("-")[:NAME_CHARS]


def to_langchain(
    messages: Iterable[WireMessage],
    *,
    merge_roles: bool = False,
    system_role: bool = True,
    names: bool = True,
) -> list[BaseMessage]:
    """Convert the messages in a prompt to LangChain messages.

    Args:
        messages: the prompt. It is not changed.
        merge_roles: True to join consecutive messages of one role, for chat templates that refuse them.
        system_role: True if the model takes system messages. Otherwise they become the first user message.
        names: True if the model sees the `name` of messages. Otherwise the name is written before the text.
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


@memoize_by_identity(4096)
def _window_message(item: WireMessage) -> BaseMessage:
    """Convert one message of the `messages` channel. Cached, because later prompts send it again."""
    return _message(item)


def _message(item: WireMessage) -> BaseMessage:
    named_item = {**item, "name": wire_name(item.get("name", "")) or None}
    return convert_to_messages([named_item])[0]


def _merge_roles(wire: Iterable[WireMessage]) -> list[WireMessage]:
    merged: list[WireMessage] = []
    for item in wire:
        last = merged[-1] if merged else item
        is_plain = not any("tool_calls" in each or each["role"] == "tool" for each in (last, item))
        if merged and is_plain and last["role"] == item["role"]:
            merged[-1] = {"role": item["role"], "content": f"{_labelled(last)}\n\n{_labelled(item)}"}
        else:
            merged.append(item)
    return merged


def _labelled(item: WireMessage) -> str:
    # A merged message has no single name, so each speaker's name is written before its text.
    return f"{item['name']}: {item['content']}" if item.get("name") else item["content"]

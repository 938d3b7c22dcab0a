"""OpenAI's chat completions, as OpenAI and the many servers that imitate it speak them. Imported lazily."""

from __future__ import annotations

import json
from typing import Any

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from moot.nodes.models.adapters import SpeaksOpenAI
from moot.nodes.models.failures import web_page
from moot.nodes.models.thinking import reasoning_field
from moot.nodes.models.usage import readable_usage
from moot.state.config.model_settings import ModelSettings, bare_name
from moot.state.entries import JsonObject

MAX_CONNECTIONS = 64
"""Connections of one client; a batch is limited by its driver long before."""
_AS_THEY_ARE = ("messages", "tools", "response_format")
END_OF_STREAM = b"\n\ndata: [DONE]\n\n"
CONNECT_S = 15.0
"""Longest wait for a connection, seconds."""


class CompatibleChat(SpeaksOpenAI, ChatOpenAI):
    """`ChatOpenAI` that also hears reasoning fields, and names the answer's limit as the server does."""

    limit_field: str = "max_completion_tokens"
    """Name of the request's field for the answer's limit."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> JsonObject:
        payload: JsonObject = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "max_completion_tokens" in payload:
            payload[self.limit_field] = payload.pop("max_completion_tokens")
        # In `extra_body`, which the SDK merges into the body as it is. With a `response_format` of its own it
        # takes another path, which raises on a cut answer; and it would walk messages and tools once for each
        # form that one can have, for milliseconds a request, to change nothing.
        as_they_are = {key: payload.pop(key) for key in _AS_THEY_ARE if payload.get(key)}
        payload["extra_body"] = {**(payload.get("extra_body") or {}), **as_they_are}
        payload["messages"] = []
        return payload

    def _convert_chunk_to_generation_chunk(
        self, chunk: JsonObject, default_chunk_class: type, base_generation_info: JsonObject | None
    ) -> ChatGenerationChunk | None:
        if chunk.get("usage") is not None:
            chunk = {**chunk, "usage": readable_usage(chunk["usage"])}
        converted = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        choices = chunk.get("choices") or []
        if converted is not None and choices:
            _keep_beside(converted.message.additional_kwargs, choices[0].get("delta") or {})
        return converted

    def _create_chat_result(
        self, response: JsonObject | openai.BaseModel, generation_info: JsonObject | None = None
    ) -> ChatResult:
        raw = response if isinstance(response, dict) else response.model_dump(warnings=False)
        if raw.get("usage") is not None:
            raw = {**raw, "usage": readable_usage(raw["usage"])}
        result = super()._create_chat_result(raw, generation_info)
        for generation, choice in zip(result.generations, raw["choices"], strict=True):
            if isinstance(generation.message, AIMessage):
                _keep_beside(generation.message.additional_kwargs, choice["message"])
        return result


def _keep_beside(kept: JsonObject, fields: JsonObject) -> None:
    if reasoning := reasoning_field(fields):
        kept["reasoning_content"] = reasoning
    if isinstance(fields.get("refusal"), str):
        kept["refusal"] = fields["refusal"]


def make_chat(name: str, settings: ModelSettings, *, key: str, base_url: str | None) -> CompatibleChat:
    """Build a client of one model; it belongs to the event loop that first uses it."""
    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS, keepalive_expiry=30.0
    )
    timeout = openai.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s))
    return CompatibleChat(
        model=bare_name(name),
        api_key=SecretStr(key),
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        stream_chunk_timeout=None,
        stream_usage=True,
        use_responses_api=False,
        limit_field=settings.max_tokens_field,
        http_async_client=openai.DefaultAsyncHttpxClient(
            limits=limits, timeout=timeout, event_hooks={"response": [_take]}
        ),
    )


async def _take(response: Any) -> None:
    """Tell a web page from an answer, and take a whole answer from a server that was asked for a stream.

    Raises:
        Failure: it is a web page.
    """
    kind = response.headers.get("content-type", "")
    if "text/html" in kind:
        await response.aread()
        raise web_page(response.status_code, response.text)
    if "application/json" in kind and response.is_success and b'"stream":true' in response.request.content:
        await response.aread()
        chunk = response.json()
        for choice in chunk.get("choices") or []:
            delta = choice["delta"] = choice.pop("message", None) or {}
            for index, call in enumerate(delta.get("tool_calls") or []):
                call.setdefault("index", index)
        response._content = b"data: " + json.dumps(chunk).encode() + END_OF_STREAM

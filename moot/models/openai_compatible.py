"""Client of OpenAI's chat completions API, for OpenAI and compatible servers. Imported on first use."""

import json
import re
from collections.abc import AsyncIterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import openai
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from moot.config.model_settings import ModelSettings, bare_name
from moot.models.adapters import OpenAICompatible
from moot.models.attempt import STREAM_ENDED_EARLY, reasoning_field
from moot.models.failures import Failure, html_failure
from moot.models.usage import readable_usage
from moot.state.entries import JsonObject
from moot.state.langgraph_internals import ChatOpenAIHooks, replace_body

if TYPE_CHECKING:
    from httpx import AsyncByteStream
else:  # the SDK uses `httpx` or `httpx2`, by its version
    _http = import_module(type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0])
    AsyncByteStream = _http.AsyncByteStream

MAX_CONNECTIONS = 64
"""Maximum number of connections per model client. In practice, `limits.concurrency` is lower."""
_VERBATIM_FIELDS = ("messages", "tools", "response_format")
END_OF_STREAM = b"\n\ndata: [DONE]\n\n"
CONNECT_S = 15.0
"""Timeout in seconds for opening a connection to an endpoint."""
MAX_BODY_BYTES = 8_000_000
"""Maximum number of bytes in a non-streaming response or in one streamed event."""
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_EARLY_END = json.dumps(
    {
        "id": "",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "",
        "choices": [],
        STREAM_ENDED_EARLY: True,
    }
).encode()


class CompatibleChat(ChatOpenAIHooks, OpenAICompatible, ChatOpenAI):
    """`ChatOpenAI` client for OpenAI-compatible servers.

    It also reads the reasoning in replies, and it can send the older request field `max_tokens`.
    """

    max_tokens_field: str = "max_completion_tokens"
    """Name of the request field that sets the maximum number of reply tokens."""

    @override
    def change_request(self, payload: JsonObject) -> JsonObject:
        if "max_completion_tokens" in payload:
            payload[self.max_tokens_field] = payload.pop("max_completion_tokens")
        # The SDK merges `extra_body` into the body without changes. With `response_format` as an argument, it
        # would raise an error on a truncated reply. With `messages` and `tools` as arguments, it would spend
        # milliseconds per request on converting types that need no conversion.
        verbatim = {key: payload.pop(key) for key in _VERBATIM_FIELDS if payload.get(key)}
        payload["extra_body"] = {**(payload.get("extra_body") or {}), **verbatim}
        payload["messages"] = []
        return payload

    @override
    def convert_chunk(self, raw: JsonObject) -> ChatGenerationChunk | None:
        if not raw.get(STREAM_ENDED_EARLY):
            return None
        message = AIMessageChunk(content="", response_metadata={STREAM_ENDED_EARLY: True})
        return ChatGenerationChunk(message=message)

    @override
    def change_reply(self, raw: JsonObject) -> JsonObject:
        return raw if raw.get("usage") is None else {**raw, "usage": readable_usage(raw["usage"])}

    @override
    def change_message(self, message: BaseMessage, raw: JsonObject) -> None:
        if isinstance(message, AIMessage):
            _keep_reasoning(message.additional_kwargs, raw)


def _keep_reasoning(target: JsonObject, fields: JsonObject) -> None:
    if reasoning := reasoning_field(fields):
        target["reasoning_content"] = reasoning
    if isinstance(fields.get("refusal"), str):
        target["refusal"] = fields["refusal"]


def make_chat(name: str, settings: ModelSettings, *, key: str, base_url: str | None) -> CompatibleChat:
    """Create the client for one model at an OpenAI-compatible endpoint.

    The client belongs to the event loop that first uses it.
    """
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
        max_tokens_field=settings.max_tokens_field,
        http_async_client=openai.DefaultAsyncHttpxClient(
            limits=limits,
            timeout=timeout,
            headers={"accept-encoding": "identity"},  # no compression, so that `_CheckedBody` sees the text
            event_hooks={"response": [_check_response]},
        ),
    )


async def _check_response(response: Any) -> None:
    """Check the content type of a model's response.

    A JSON response is converted to a stream if the request asked for a stream.

    Raises:
        Failure: the response is a web page, or it is larger than `MAX_BODY_BYTES`.
    """
    kind = response.headers.get("content-type", "")
    response.stream = _CheckedBody(response.stream, events="text/event-stream" in kind)
    if "text/html" in kind:
        await response.aread()
        raise html_failure(response.status_code, response.text)
    if "application/json" in kind and response.is_success and b'"stream":true' in response.request.content:
        await response.aread()
        chunk = response.json()
        for choice in chunk.get("choices") or []:
            delta = choice["delta"] = choice.pop("message", None) or {}
            for index, call in enumerate(delta.get("tool_calls") or []):
                call.setdefault("index", index)
        replace_body(response, b"data: " + json.dumps(chunk).encode() + END_OF_STREAM)


class _CheckedBody(AsyncByteStream):
    """HTTP response body that raises an error when it exceeds the size limit.

    The end of an event stream is checked too.

    The SDK treats a closed connection as the end of a stream. An extra event marks an end without `[DONE]`.
    """

    def __init__(self, body: AsyncByteStream, *, events: bool) -> None:
        self._body, self._events = body, events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, size, done = bytearray(), 0, False
        async for data in self._body:
            if self._events:
                pending += data
                end = pending.rfind(b"\n", len(pending) - len(data)) + 1
                lines = bytes(pending[:end])
                del pending[:end]
                size = len(pending)
                done = done or _DONE.search(lines) is not None
            else:
                lines, size = data, size + len(data)
            if size > MAX_BODY_BYTES:
                raise Failure(f"the endpoint's response is larger than {MAX_BODY_BYTES:,} bytes")
            if lines:
                yield lines
        if self._events and not done and not _DONE.match(pending):
            # Drop an incomplete last line.
            yield b"\n\ndata: " + _EARLY_END + b"\n\n"

    async def aclose(self) -> None:
        await self._body.aclose()

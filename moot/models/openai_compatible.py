"""Client of OpenAI's chat completions API, for OpenAI and compatible servers. Imported on first use."""

import json
import re
import zlib
from collections.abc import AsyncIterator
from typing import Any

import openai
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from moot.calls.model_calls import INCOMPLETE
from moot.config.model_settings import ModelSettings, bare_name
from moot.models.adapters import OpenAICompatible
from moot.models.attempt import STREAM_ENDED_EARLY, reasoning_field
from moot.models.error_body import read_error
from moot.models.failures import Failure, failure_of, html_failure
from moot.models.http import httpx
from moot.models.usage import readable_usage
from moot.state.entries import JsonObject
from moot.state.langgraph_internals import ChatOpenAIHooks, replace_body
from moot.state.settings import redact_urls

MAX_CONNECTIONS = 64
"""Maximum number of connections per model client. In practice, `limits.concurrency` is lower."""
_VERBATIM_FIELDS = ("messages", "tools", "response_format")
END_OF_STREAM = b"\n\ndata: [DONE]\n\n"
CONNECT_S = 15.0
"""Timeout in seconds for opening a connection to an endpoint."""
MAX_BODY_BYTES = 8_000_000
"""Maximum number of bytes in a response, after it is decompressed. A whole event stream counts, too: it has
room for about 30,000 tokens. A longer stream is cut and marked as cut."""
_ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""`wbits` of `zlib` for each compression that is read, although requests ask for none."""
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_CHUNK = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": ""}
_EARLY_END = json.dumps({**_CHUNK, "choices": [], STREAM_ENDED_EARLY: True}).encode()
_CUT_OFF = json.dumps(
    {**_CHUNK, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": INCOMPLETE}]}
).encode()


class CompatibleChat(ChatOpenAIHooks, OpenAICompatible, ChatOpenAI):
    """Client for OpenAI-compatible servers, which reads reasoning and can send the field `max_tokens`."""

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
        usage = {} if raw.get("usage") is None else {"usage": readable_usage(raw["usage"])}
        return {**raw, **usage, "choices": [_readable_choice(each) for each in raw.get("choices") or []]}

    @override
    def change_message(self, message: BaseMessage, raw: JsonObject) -> None:
        if isinstance(message, AIMessage):
            _keep_reasoning(message.additional_kwargs, raw)


def _readable_choice(choice: JsonObject) -> JsonObject:
    """Return a choice in OpenAI's form.

    Some servers send whole messages as chunks, texts without a message, one part that is not in a list, or
    arguments that are no string.
    """
    message = (
        choice.get("delta") or choice.get("message") or {"role": "assistant", "content": choice.get("text")}
    )
    content = message.get("content")
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        if isinstance((call.get("function") or {}).get("arguments"), dict)
        else call
        for call in message.get("tool_calls") or []
    ]
    message = {**message, "content": [content] if isinstance(content, dict) else content}
    message |= {"tool_calls": calls} if calls else {}
    return {**choice, "delta": message, "message": message}


def _keep_reasoning(target: JsonObject, fields: JsonObject) -> None:
    if reasoning := reasoning_field(fields):
        target["reasoning_content"] = reasoning
    if isinstance(fields.get("refusal"), str):
        target["refusal"] = fields["refusal"]


def make_chat(name: str, settings: ModelSettings, *, key: str, base_url: str | None) -> CompatibleChat:
    """Create the client for one model. It belongs to the event loop that first uses it."""
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
            follow_redirects=False,  # a redirect would send the prompt to an address that nobody configured
            headers={"accept-encoding": "identity"},  # no compression, so that `_CheckedBody` sees the text
            event_hooks={"response": [_check_response]},
        ),
    )


async def _check_response(response: Any) -> None:
    """Refuse redirects, web pages and values other than JSON objects. Convert JSON to a requested stream."""
    kind, status = response.headers.get("content-type", ""), response.status_code
    if 300 <= status < 400:
        target = redact_urls(response.headers.get("location", "another address"))
        raise Failure(
            f"HTTP {status}: the endpoint redirects to {target}, which Moot does not follow",
            advice=REDIRECTED,
        )
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "") and encoding not in _ENCODINGS:
        raise Failure(
            f"the endpoint compressed its response with {encoding[:20]!r}, although it was asked not to"
        )
    response.stream = _CheckedBody(
        response.stream, events="text/event-stream" in kind, wbits=_ENCODINGS.get(encoding)
    )
    if "text/html" in kind:
        await response.aread()
        raise html_failure(response.status_code, response.text)
    if response.is_success and "text/event-stream" not in kind:
        await response.aread()
        chunk = _completion_in(response)
        if chunk and b'"stream":true' in response.request.content:
            for choice in chunk["choices"]:
                for index, call in enumerate((choice.get("message") or {}).get("tool_calls") or []):
                    call.setdefault("index", index)
            replace_body(response, b"data: " + json.dumps(chunk).encode() + END_OF_STREAM)


REDIRECTED = "set {endpoint} to the address to which {url} redirects, if you trust it"


def _completion_in(response: httpx.Response) -> JsonObject:
    """Return the completion in a successful response, or `{}` for an event stream with another content type.

    Raises:
        Failure: the response holds something else. An error with status 200 is read like any other error.
    """
    text, status = response.text.strip(), response.status_code
    if text.startswith(("data:", "event:", "id:", ":", "retry:")):
        return {}
    try:
        value = json.loads(text) if text else None
    except ValueError:
        value = None
    if isinstance(value, dict) and value.get("choices"):
        return value
    if isinstance(value, dict) and read_error(value).text:
        error = openai.APIError("", response.request, body=value)  # type: ignore[arg-type]  # see `moot.models.http`
        raise failure_of(error, timeout_s=0)
    content = f"{text[:40]!r}" if text else "an empty response"
    raise Failure(f"HTTP {status}: the server sent {content} instead of a chat completion", retryable=True)


class _CheckedBody(httpx.AsyncByteStream):
    """HTTP response body that is decompressed, and ends at the size limit.

    A stream is cut there after its first event, any other body raises an error. The end of an event stream
    is checked too.

    The SDK treats a closed connection as the end of a stream. An extra event marks an end without `[DONE]`.
    """

    def __init__(self, body: httpx.AsyncByteStream, *, events: bool, wbits: int | None = None) -> None:
        self._body, self._events, self._wbits = body, events, wbits

    async def _decompressed(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces of at most 64 KB, or as it arrives if it is not compressed."""
        if self._wbits is None:
            async for data in self._body:
                yield data
            return
        decoder = zlib.decompressobj(self._wbits)
        async for data in self._body:
            while data:
                try:
                    piece = decoder.decompress(data, 65_536)
                except zlib.error as error:
                    raise Failure(
                        f"the endpoint's compressed response is broken: {error}", retryable=True
                    ) from None
                data = decoder.unconsumed_tail
                yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, size, done, begun = bytearray(), 0, False, False
        async for data in self._decompressed():
            size += len(data)
            if size > MAX_BODY_BYTES and begun and not done:
                yield b"\n\ndata: " + _CUT_OFF + END_OF_STREAM
                return
            if size > MAX_BODY_BYTES:
                raise Failure(f"the endpoint's response is larger than {MAX_BODY_BYTES:,} bytes")
            lines = data
            if self._events:
                pending += data
                end = pending.rfind(b"\n", len(pending) - len(data)) + 1
                lines = bytes(pending[:end])
                del pending[:end]
                begun, done = begun or bool(lines), done or _DONE.search(lines) is not None
            if lines:
                yield lines
        if self._events and not done and not _DONE.match(pending):
            # Drop an incomplete last line.
            yield b"\n\ndata: " + _EARLY_END + b"\n\n"

    async def aclose(self) -> None:
        await self._body.aclose()

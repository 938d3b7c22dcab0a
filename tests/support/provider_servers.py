"""Local HTTP servers with the protocols of Anthropic, Ollama and Google. They can fail on request.

Like the real servers they refuse unknown fields, names of messages, conversations that begin with an
assistant, and tool results without calls. A reply depends only on the request.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.support.loopback import LoopbackServer
from tests.support.openai_answers import JUDGE_FIELDS, Json
from tests.support.schema_answers import fill_schema


@dataclass(frozen=True)
class ProviderReply:
    """Reply to one request. The default is a successful reply."""

    status: int = 200
    message: str = "out of order"
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    thinking: str = ""
    tools: Sequence[tuple[str, Json]] = ()
    """Name and input of each tool call."""
    stop: str = ""
    gap: float = 0.0
    """Seconds before each piece of a stream."""
    breaks: bool = False
    """True if the stream ends with an error event after its first word."""


class ProviderServer(LoopbackServer):
    """A server, as a context manager. It serves from its own threads."""

    path: ClassVar[str]
    stream_type: ClassVar[str]
    described: Mapping[str, Json] = {}  # read only
    """Descriptions of the server's model, by path. Requests for them are not recorded."""

    def __init__(self, replies: Sequence[ProviderReply] = ()) -> None:
        self.replies, self.requests = list(replies), list[Json]()
        self.headers: list[dict[str, str]] = []
        http = _Http(("127.0.0.1", 0), _Handler)
        http.owner = self
        super().__init__(http)

    def serves(self, path: str) -> bool:
        """Return True if the path belongs to the protocol."""
        return path == self.path

    def next_reply(self, asked: Json, headers: dict[str, str]) -> ProviderReply:
        """Record a request and return its reply."""
        with self._lock:
            self.requests.append(asked)
            self.headers.append(headers)
            number = len(self.requests) - 1
        if problem := self.problem(asked):
            return ProviderReply(400, problem)
        return self.replies[number] if number < len(self.replies) else ProviderReply()

    def problem(self, asked: Json) -> str:
        """Return the error of the real server for a request, `""` if it is valid."""
        raise NotImplementedError

    def error(self, reply: ProviderReply) -> Json:
        """Return the body of an error."""
        raise NotImplementedError

    def streams(self, asked: Json, path: str) -> bool:
        """Return True if the request asks for a stream."""
        raise NotImplementedError

    def full_body(self, asked: Json, reply: ProviderReply) -> Json:
        """Return the body of a reply without streaming."""
        raise NotImplementedError

    def pieces(self, asked: Json, reply: ProviderReply) -> Iterator[str]:
        """Yield the pieces of a streamed reply."""
        raise NotImplementedError


def default_text(asked: Json) -> str:
    """Return a sentence with a hash of the request's messages."""
    messages = asked.get("messages") or asked["contents"]
    hashed = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:8]
    return f"Point {hashed}: I hold that 40 % of cases fail."


class AnthropicServer(ProviderServer):
    """Anthropic's Messages API."""

    path = "/v1/messages"
    stream_type = "text/event-stream"
    _FIELDS: ClassVar[set[str]] = {
        *("model", "max_tokens", "messages", "system", "temperature", "top_k", "top_p", "stop_sequences"),
        *("stream", "tools", "tool_choice", "thinking", "output_config", "metadata"),
    }

    def problem(self, asked: Json) -> str:
        if unknown := asked.keys() - self._FIELDS:
            return f"{sorted(unknown)}: Extra inputs are not permitted"
        if not isinstance(asked.get("max_tokens"), int) or not asked.get("messages"):
            return "max_tokens and messages: Field required"
        if asked["messages"][0]["role"] != "user":
            return "messages: first message must use the user role"
        called: set[str] = set()
        for message in asked["messages"]:
            if message.keys() != {"role", "content"} or message["role"] not in ("user", "assistant"):
                return f"messages: {sorted(message)} of {message.get('role')}: not permitted"
            if not message["content"]:
                return "messages: text content blocks must be non-empty"
            blocks = message["content"] if isinstance(message["content"], list) else []
            answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if answered != called:
                return "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
            called = {block["id"] for block in blocks if block["type"] == "tool_use"}
        return ""

    def error(self, reply: ProviderReply) -> Json:
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        kind = kinds.get(reply.status, "invalid_request_error" if reply.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.message}}

    def streams(self, asked: Json, path: str) -> bool:
        return bool(asked.get("stream"))

    def _blocks(self, asked: Json, reply: ProviderReply) -> list[Json]:
        blocks: list[Json] = []
        if reply.thinking:
            blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "sig"})
        calls, text, forced = list(reply.tools), reply.text, asked.get("tool_choice") or {}
        if text is None and not calls and forced.get("type") == "tool":
            schema = next(tool["input_schema"] for tool in asked["tools"] if tool["name"] == forced["name"])
            calls = [(forced["name"], fill_schema(schema, JUDGE_FIELDS))]
        if text is None and "format" in (asked.get("output_config") or {}):
            text = json.dumps(fill_schema(asked["output_config"]["format"]["schema"], JUDGE_FIELDS))
        if text is not None or not calls:
            blocks.append({"type": "text", "text": default_text(asked) if text is None else text})
        for number, (name, arguments) in enumerate(calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments})
        return blocks

    def _stop(self, reply: ProviderReply, blocks: Sequence[Json]) -> str:
        return reply.stop or ("tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn")

    def _usage(self, asked: Json) -> Json:
        return {
            "input_tokens": 900 + len(asked["messages"]),
            "output_tokens": 12,
            "cache_read_input_tokens": 100,
        }

    def full_body(self, asked: Json, reply: ProviderReply) -> Json:
        blocks = self._blocks(asked, reply)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": blocks,
            "stop_reason": self._stop(reply, blocks),
            "stop_sequence": None,
            "usage": self._usage(asked),
        }

    def pieces(self, asked: Json, reply: ProviderReply) -> Iterator[str]:
        for event in self._events(asked, reply):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"

    def _events(self, asked: Json, reply: ProviderReply) -> Iterator[Json]:
        blocks, usage = self._blocks(asked, reply), self._usage(asked)
        start = {**self.full_body(asked, reply), "content": [], "stop_reason": None}
        yield {"type": "message_start", "message": {**start, "usage": {**usage, "output_tokens": 1}}}
        yield {"type": "ping"}
        for index, block in enumerate(blocks):
            yield {"type": "content_block_start", "index": index, "content_block": _empty_block(block)}
            for delta in _deltas(block):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
                if reply.breaks:
                    error = {"type": "overloaded_error", "message": "Overloaded"}
                    yield {"type": "error", "error": error}
                    return
            yield {"type": "content_block_stop", "index": index}
        end = {"stop_reason": self._stop(reply, blocks), "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": usage}
        yield {"type": "message_stop"}


def _empty_block(block: Json) -> Json:
    blank: Json = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: blank.get(key, value) for key, value in block.items()}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        for number, word in enumerate(block["text"].split(" ")):
            yield {"type": "text_delta", "text": word if not number else f" {word}"}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": "sig"}
    else:
        text = json.dumps(block["input"])
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            yield {"type": "input_json_delta", "partial_json": part}


class OllamaServer(ProviderServer):
    """Ollama's `/api/chat`."""

    path = "/api/chat"
    stream_type = "application/x-ndjson"

    def __init__(self, replies: Sequence[ProviderReply] = (), *, context: int = 131_072) -> None:
        super().__init__(replies)
        self.described = {"/api/show": {"model_info": {"llama.context_length": context}}}

    def problem(self, asked: Json) -> str:
        known = {"model", "messages", "tools", "stream", "format", "options", "keep_alive", "think"}
        if unknown := asked.keys() - known - {"logprobs", "top_logprobs"}:
            return f"unknown fields {sorted(unknown)}"
        roles = {message["role"] for message in asked["messages"]}
        return "" if roles <= {"system", "user", "assistant", "tool"} else f"unknown roles {roles}"

    def error(self, reply: ProviderReply) -> Json:
        return {"error": reply.message}

    def streams(self, asked: Json, path: str) -> bool:
        return asked.get("stream") is not False

    def full_body(self, asked: Json, reply: ProviderReply) -> Json:
        text = reply.text
        if text is None:
            schema = asked.get("format")
            text = (
                json.dumps(fill_schema(schema, JUDGE_FIELDS))
                if isinstance(schema, dict)
                else default_text(asked)
            )
        calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in reply.tools]
        message: Json = {"role": "assistant", "content": "" if calls else text}
        return self._frame(asked, {**message, "tool_calls": calls} if calls else message) | {
            "done": True,
            "done_reason": reply.stop or "stop",
            "total_duration": 1,
            "prompt_eval_count": 700 + len(asked["messages"]),
            "eval_count": 9,
        }

    def pieces(self, asked: Json, reply: ProviderReply) -> Iterator[str]:
        whole = self.full_body(asked, reply)
        message = whole.pop("message")
        for number, word in enumerate(message["content"].split(" ")):
            part = {"role": "assistant", "content": word if not number else f" {word}"}
            yield json.dumps({**self._frame(asked, part), "done": False}) + "\n"
            if reply.breaks:
                yield json.dumps({"error": "llama runner process has terminated"}) + "\n"
                return
        yield json.dumps({**whole, "message": {**message, "content": ""}}) + "\n"

    def _frame(self, asked: Json, message: Json) -> Json:
        return {"model": asked["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}


class GoogleServer(ProviderServer):
    """Google's `generateContent` and `streamGenerateContent`, over REST."""

    path = r"/v1beta/models/[\w.-]+:(generateContent|streamGenerateContent\?alt=sse)"
    stream_type = "text/event-stream"
    _FIELDS: ClassVar[set[str]] = {
        *("contents", "systemInstruction", "generationConfig", "tools", "toolConfig", "safetySettings"),
    }
    _CONFIG: ClassVar[set[str]] = {
        *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed"),
        *("responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "thinkingConfig"),
    }

    def serves(self, path: str) -> bool:
        return bool(re.fullmatch(self.path, path))

    def problem(self, asked: Json) -> str:
        unknown = {*(asked.keys() - self._FIELDS), *(asked.get("generationConfig", {}).keys() - self._CONFIG)}
        if unknown:
            return f"Invalid JSON payload received. Unknown names {sorted(unknown)}"
        called: list[str] = []
        for content in asked["contents"]:
            if content["role"] not in ("user", "model") or not content["parts"]:
                return "Please use a valid role: user, model."
            replied = [p["functionResponse"]["name"] for p in content["parts"] if "functionResponse" in p]
            if called and replied != called:
                return "the number of function response parts is not that of the function call parts"
            called = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        return ""

    def error(self, reply: ProviderReply) -> Json:
        return {"error": {"code": reply.status, "message": reply.message, "status": "RESOURCE_EXHAUSTED"}}

    def streams(self, asked: Json, path: str) -> bool:
        return "stream" in path

    def full_body(self, asked: Json, reply: ProviderReply) -> Json:
        config, calls, text = asked.get("generationConfig", {}), list(reply.tools), reply.text
        calling = asked.get("toolConfig", {}).get("functionCallingConfig", {})
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        if text is None and not calls and calling.get("mode") == "ANY":
            (offered,) = asked["tools"][0]["functionDeclarations"]
            wanted = offered.get("parametersJsonSchema") or _json_schema(offered["parameters"])
            calls = [(offered["name"], fill_schema(wanted, JUDGE_FIELDS))]
        if text is None and schema:
            text = json.dumps(fill_schema(_json_schema(schema), JUDGE_FIELDS))
        parts: list[Json] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
        parts += [] if calls else [{"text": default_text(asked) if text is None else text}]
        parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls]
        return self._frame(parts, reply.stop or "STOP") | {
            "usageMetadata": {
                "promptTokenCount": 700 + len(asked["contents"]),
                "candidatesTokenCount": 9,
                "totalTokenCount": 709 + len(asked["contents"]),
            }
        }

    def pieces(self, asked: Json, reply: ProviderReply) -> Iterator[str]:
        whole = self.full_body(asked, reply)
        *first, last = whole["candidates"][0]["content"]["parts"]
        words = [{"text": word} for word in re.findall(r"\s*\S+", last.get("text", ""))] or [last]
        for number, part in enumerate([*first, *words]):
            yield f"data: {json.dumps(self._frame([part]))}\r\n\r\n"
            if reply.breaks and number >= len(first):
                error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
                yield f"data: {json.dumps({'error': error})}\r\n\r\n"
                return
        whole["candidates"][0]["content"]["parts"] = [{"text": ""}]
        yield f"data: {json.dumps(whole)}\r\n\r\n"

    def _frame(self, parts: Sequence[Json], stop: str = "") -> Json:
        finish = {"finishReason": stop} if stop else {}
        candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **finish}
        return {"candidates": [candidate], "modelVersion": "gemini-test"}


def _json_schema(schema: Json) -> Json:
    """Convert a schema of Google, with types in capital letters, to a JSON Schema."""
    words = re.sub(r'"type": "[A-Z]+"', lambda match: match[0].lower(), json.dumps(schema))
    return dict(json.loads(words))


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: ProviderServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""

    def do_POST(self) -> None:
        owner = self.server.owner
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path in owner.described:
            self._begin(200, "application/json", {})
            self._send(json.dumps(owner.described[self.path]))
            self.wfile.write(b"0\r\n\r\n")
            return
        headers = {key.lower(): value for key, value in self.headers.items()}
        reply = owner.next_reply(asked, {**headers, ":path": self.path})
        if not owner.serves(self.path):
            reply = ProviderReply(404, f"no {self.path}")
        if reply.status != 200:
            self._begin(reply.status, "application/json", reply.headers)
            self._send(json.dumps(owner.error(reply)))
        elif owner.streams(asked, self.path):
            self._begin(200, owner.stream_type, reply.headers)
            for piece in owner.pieces(asked, reply):
                time.sleep(reply.gap)
                self._send(piece)
        else:
            self._begin(200, "application/json", reply.headers)
            self._send(json.dumps(owner.full_body(asked, reply)))
        self.wfile.write(b"0\r\n\r\n")

    def _begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-type": kind, "transfer-encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

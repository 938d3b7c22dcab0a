"""Replies of the local OpenAI server: bodies and events of chat completions and embeddings."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class ServerReply:
    """Reply to one request. The default is a successful completion."""

    status: int = 200
    message: str = "out of order"
    """Message of the error, if `status` is an error."""
    code: str | None = None
    """Code of the error, such as `insufficient_quota`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float | None = None
    """Seconds before the reply begins. `None` means the latency of the server."""
    text: str | None = None
    """Text of the reply, with `<think>` if wanted. `None` means a text made from the request."""
    pieces: Sequence[str] | None = None
    """Text of the reply in pieces of the stream. Without a stream the pieces are joined."""
    gap: float = 0.0
    """Seconds before each piece of the stream."""
    reasoning: str | None = None
    """Reasoning of the reply, in the field `reasoning_field`."""
    reasoning_field: str = "reasoning_content"
    finish_reason: str = "stop"
    tool_calls: Sequence[tuple[str, Json | str]] = ()
    """Name and arguments of each tool call."""
    refusal: str | None = None
    usage: Json | None = None
    """Reported usage. `None` means a usage computed from the request."""
    report_usage: bool = True
    reset_after: int | None = None
    """Number of events after which the connection is reset. 0 resets it before the reply."""
    error_event: Json | None = None
    """Error event that replaces the second half of the stream."""
    raw_events: Iterable[str] | None = None
    """Data of each event of the stream, sent unchanged instead of valid events."""
    unfinished: str = ""
    """Beginning of an event that is sent after `raw_events` and never finished."""
    whole: bool = False
    """True if the reply is not streamed although the request asks for a stream."""
    body: str | None = None
    """Body that is sent unchanged with status 200, like a server that breaks the protocol."""


def request_digest(asked: Json) -> str:
    """Return a short hash of the fields on which the reply depends."""
    fields = [asked.get(key) for key in ("model", "messages", "tools", "response_format")]
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:10]


def answer_text(asked: Json) -> str:
    """Return the default reply: JSON if the request has a schema, else a sentence with its hash."""
    schema = requested_schema(asked)
    if schema is not None:
        return json.dumps(_schema_instance(schema))
    hashed = request_digest(asked)
    return (
        f"Point {hashed}: after {len(asked['messages'])} messages I hold that the case rests on {hashed[:4]}."
    )


def completion_body(asked: Json, reply: ServerReply) -> Json:
    """Return the body of a chat completion."""
    message: Json = {"role": "assistant", "content": _text(asked, reply), "refusal": reply.refusal}
    if reply.reasoning is not None:
        message[reply.reasoning_field] = reply.reasoning
    if calls := _tool_calls(asked, reply):
        message["tool_calls"], message["content"] = calls, None
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
    body = _frame(asked, "chat.completion", [choice])
    return {**body, "usage": _usage(asked, reply)} if reply.report_usage else body


def reply_text(body: Json) -> str:
    """Return the text of a chat completion, or the arguments of its tool calls."""
    message = body["choices"][0]["message"]
    calls = [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    return json.dumps(calls) if calls else str(message["content"])


def stream_events(asked: Json, reply: ServerReply) -> Iterator[Json]:
    """Yield the events of a streamed chat completion."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if reply.reasoning is not None:
        deltas.append({reply.reasoning_field: reply.reasoning})
    if reply.refusal is not None:
        deltas.append({"refusal": reply.refusal})
    if calls := _tool_calls(asked, reply):
        deltas.append({"tool_calls": calls})
    else:
        deltas.extend({"content": piece} for piece in reply.pieces or _pieces(_text(asked, reply)))
    if reply.error_event is not None:
        deltas = deltas[: (len(deltas) + 1) // 2]
    for delta in deltas:
        yield _chunk(asked, delta)
    if reply.error_event is not None:
        yield {"error": reply.error_event}
        return
    yield _chunk(asked, {}, reply.finish_reason)
    if reply.report_usage and (asked.get("stream_options") or {}).get("include_usage"):
        yield {**_frame(asked, "chat.completion.chunk", []), "usage": _usage(asked, reply)}


def embeddings_body(asked: Json) -> Json:
    """Return an embedding of each input, computed from its hash."""
    texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
    size = asked.get("dimensions") or 16
    data = []
    for index, text in enumerate(texts):
        seed = hashlib.shake_256(json.dumps(text).encode()).digest(size)
        vector: Any = [byte / 127.5 - 1 for byte in seed]
        if asked.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    tokens = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": data, "model": asked.get("model", ""), "usage": tokens}


def _text(asked: Json, reply: ServerReply) -> str:
    if reply.pieces is not None:
        return "".join(reply.pieces)
    return answer_text(asked) if reply.text is None else reply.text


def _pieces(text: str) -> list[str]:
    return [word if index == 0 else f" {word}" for index, word in enumerate(text.split(" "))]


def _chunk(asked: Json, delta: Json, finish_reason: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return _frame(asked, "chat.completion.chunk", [choice])


def _frame(asked: Json, kind: str, choices: list[Json]) -> Json:
    model = asked.get("model", "")
    return {
        "id": f"chatcmpl-{request_digest(asked)}",
        "object": kind,
        "created": 0,
        "model": model,
        "choices": choices,
    }


def _usage(asked: Json, reply: ServerReply) -> Json:
    if reply.usage is not None:
        return reply.usage
    prompt_size, reply_size = len(json.dumps(asked["messages"])) // 4, len(_text(asked, reply).split()) + 1
    return {
        "prompt_tokens": prompt_size,
        "completion_tokens": reply_size,
        "total_tokens": prompt_size + reply_size,
    }


def _tool_calls(asked: Json, reply: ServerReply) -> list[Json]:
    calls = list(reply.tool_calls)
    forced = asked.get("tool_choice")
    if not calls and reply.text is None and isinstance(forced, dict):
        calls = [(forced["function"]["name"], _schema_instance(asked["tools"][0]["function"]["parameters"]))]
    return [
        {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for index, (name, arguments) in enumerate(calls)
    ]


def requested_schema(asked: Json) -> Json | None:
    """Return the JSON Schema of a request, `None` if it asks for text."""
    response_format = asked.get("response_format") or {}
    if "json_schema" in response_format:
        schema: Json = response_format["json_schema"]["schema"]
        return schema
    described = str(asked["messages"][-1].get("content") or "").partition("JSON Schema:\n")[2]
    return json.JSONDecoder().raw_decode(described)[0] if described else None


JUDGE_FIELDS = {"winner": "tie", "confidence": 60}
"""Fields of a judge's reply. A default text would not be a valid winner."""


def ask_question(request: Json, number: int) -> ServerReply:
    """Return a question to a person if the schema allows it, a different one each time."""
    can_ask = '"questions"' in json.dumps(request.get("response_format", {}))
    return (
        ServerReply(text=json.dumps({"questions": [f"Which of {number + 2} years?"]}))
        if can_ask
        else ServerReply()
    )


def _schema_instance(schema: Json) -> Any:
    from tests.support.schema_answers import fill_schema

    return fill_schema(schema, JUDGE_FIELDS)

"""Bodies and events of OpenAI's chat completions and embeddings for the loopback server."""

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
class Act:
    """What the server does with one request; the default is a good answer."""

    status: int = 200
    message: str = "out of order"
    """The error's message, where `status` is one."""
    code: str | None = None
    """The error's code, such as `insufficient_quota`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float | None = None
    """Seconds before the answer begins; `None` means the server's."""
    text: str | None = None
    """The answer; `None` means one made of the request. `<think>` goes here."""
    pieces: Sequence[str] | None = None
    """The answer as it is streamed, piece by piece; joined where it is not streamed."""
    gap: float = 0.0
    """Seconds before each piece of the stream."""
    reasoning: str | None = None
    """Sent in `reasoning_field`, beside the content."""
    reasoning_field: str = "reasoning_content"
    finish_reason: str = "stop"
    tool_calls: Sequence[tuple[str, Json | str]] = ()
    """Name and arguments of each tool that is called."""
    refusal: str | None = None
    usage: Json | None = None
    """The usage reported; `None` means one made of the request."""
    report_usage: bool = True
    reset_after: int | None = None
    """Reset the connection after so many pieces of the stream; 0 resets before any answer."""
    error_event: Json | None = None
    """Sent in the stream instead of its second half."""
    sent: Iterable[str] | None = None
    """Sent in the stream as they are, one event each, instead of what the protocol wants."""
    unfinished: str = ""
    """Beginning of an event that is sent after `sent`, without its end."""
    whole: bool = False
    """Answered whole although a stream was asked for."""
    body: str | None = None
    """Sent as it is, with status 200: a server that does not keep to the protocol."""


def digest(asked: Json) -> str:
    """Short hash of what decides an answer."""
    said = [asked.get(key) for key in ("model", "messages", "tools", "response_format")]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:10]


def answer_text(asked: Json) -> str:
    """Return the answer to a request: JSON for its schema, else a few words with a hash of the request."""
    schema = schema_of(asked)
    if schema is not None:
        return json.dumps(_filled(schema))
    seen = digest(asked)
    return f"Point {seen}: after {len(asked['messages'])} messages I hold that the case rests on {seen[:4]}."


def completion(asked: Json, act: Act) -> Json:
    """Build a whole chat completion."""
    message: Json = {"role": "assistant", "content": _text(asked, act), "refusal": act.refusal}
    if act.reasoning is not None:
        message[act.reasoning_field] = act.reasoning
    if calls := _tool_calls(asked, act):
        message["tool_calls"], message["content"] = calls, None
    choice = {"index": 0, "message": message, "finish_reason": act.finish_reason, "logprobs": None}
    body = _frame(asked, "chat.completion", [choice])
    return {**body, "usage": _usage(asked, act)} if act.report_usage else body


def reply_text(body: Json) -> str:
    """Return what a whole chat completion says: its text, or the arguments of its tool calls."""
    message = body["choices"][0]["message"]
    calls = [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    return json.dumps(calls) if calls else str(message["content"])


def events(asked: Json, act: Act) -> Iterator[Json]:
    """Build the events of a streamed chat completion."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if act.reasoning is not None:
        deltas.append({act.reasoning_field: act.reasoning})
    if calls := _tool_calls(asked, act):
        deltas.append({"tool_calls": calls})
    else:
        deltas.extend({"content": piece} for piece in act.pieces or _pieces(_text(asked, act)))
    if act.error_event is not None:
        deltas = deltas[: (len(deltas) + 1) // 2]
    for delta in deltas:
        yield _event(asked, delta)
    if act.error_event is not None:
        yield {"error": act.error_event}
        return
    yield _event(asked, {}, act.finish_reason)
    if act.report_usage and (asked.get("stream_options") or {}).get("include_usage"):
        yield {**_frame(asked, "chat.completion.chunk", []), "usage": _usage(asked, act)}


def embeddings(asked: Json) -> Json:
    """Embed each input as a vector drawn from its hash."""
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


def _text(asked: Json, act: Act) -> str:
    if act.pieces is not None:
        return "".join(act.pieces)
    return answer_text(asked) if act.text is None else act.text


def _pieces(text: str) -> list[str]:
    return [word if index == 0 else f" {word}" for index, word in enumerate(text.split(" "))]


def _event(asked: Json, delta: Json, finish_reason: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return _frame(asked, "chat.completion.chunk", [choice])


def _frame(asked: Json, kind: str, choices: list[Json]) -> Json:
    model = asked.get("model", "")
    return {
        "id": f"chatcmpl-{digest(asked)}",
        "object": kind,
        "created": 0,
        "model": model,
        "choices": choices,
    }


def _usage(asked: Json, act: Act) -> Json:
    if act.usage is not None:
        return act.usage
    sent, said = len(json.dumps(asked["messages"])) // 4, len(_text(asked, act).split()) + 1
    return {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}


def _tool_calls(asked: Json, act: Act) -> list[Json]:
    calls = list(act.tool_calls)
    forced = asked.get("tool_choice")
    if not calls and act.text is None and isinstance(forced, dict):
        calls = [(forced["function"]["name"], _filled(asked["tools"][0]["function"]["parameters"]))]
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


def schema_of(asked: Json) -> Json | None:
    """Return the schema that a request asks for, `None` for text."""
    wanted = asked.get("response_format") or {}
    if "json_schema" in wanted:
        schema: Json = wanted["json_schema"]["schema"]
        return schema
    described = str(asked["messages"][-1].get("content") or "").partition("JSON Schema:\n")[2]
    return json.JSONDecoder().raw_decode(described)[0] if described else None


NAMED = {"winner": "tie", "confidence": 60}
"""What a judge of these answers: a neutral text would be the name of nobody."""


def asks_first(request: Json, number: int) -> Act:
    """Ask one question, another each time, where questions to a person are wanted; else a good answer."""
    wants = '"questions"' in json.dumps(request.get("response_format", {}))
    return Act(text=json.dumps({"questions": [f"Which of {number + 2} years?"]})) if wants else Act()


def _filled(schema: Json) -> Any:
    from tests.support.schema_answers import filled

    return filled(schema, NAMED)

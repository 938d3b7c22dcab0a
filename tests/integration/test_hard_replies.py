"""Broken, endless, oversized and unexpected replies of a server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from moot.calls.model_calls import INCOMPLETE, REPEATED
from moot.config.model_settings import ModelSettings
from tests.support.model_bench import CALL, TURN_CALL, ModelBench
from tests.support.openai_server import OpenAIServer, ServerReply

ANSWER = "Run the night ferry until spring."


@contextmanager
def raw_server(status: int, headers: dict[str, str], body: bytes) -> Iterator[Any]:
    """Serve one response, whatever is asked."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield SimpleNamespace(base_url=f"http://127.0.0.1:{server.server_address[1]}/v1", requests=requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()


JSON = {"content-type": "application/json"}
CHUNK = {"id": "1", "object": "chat.completion.chunk"}
WHOLE = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
EVENTS = b"data: " + json.dumps({**CHUNK, "choices": [WHOLE]}).encode() + b"\n\ndata: [DONE]\n\n"
FORMS: dict[str, tuple[str, bytes]] = {
    "JSON as plain text": ("text/plain", completion(ANSWER)),
    "events as JSON": ("application/json", EVENTS),
    "a whole message as an event": ("text/event-stream", EVENTS),
    "a text instead of a message": (
        "application/json",
        json.dumps({"choices": [{"index": 0, "text": ANSWER, "finish_reason": "stop"}]}).encode(),
    ),
    "one part without a list": (
        "application/json",
        completion(ANSWER).replace(
            json.dumps(ANSWER).encode(), json.dumps({"type": "text", "text": ANSWER}).encode()
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_reply_is_read_in_whatever_form_it_is_wrapped(form: str) -> None:
    kind, body = FORMS[form]
    with raw_server(200, {"content-type": kind}, body) as server:
        (reply,) = ModelBench(server, max_attempts=1).ask(TURN_CALL)
    assert (reply.error, reply.text) == ("", ANSWER)


def test_error_in_an_unknown_form_with_status_200_is_read() -> None:
    body = b'{"choices": null, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}'
    with raw_server(200, JSON, body) as server:
        (reply,) = ModelBench(server, max_attempts=1).ask(CALL)
    assert (reply.refused, "new_sensitive" in reply.error) == (True, True)


@pytest.mark.parametrize(
    "reason", ["error", "insufficient_system_resource", "abort", "network_error", "ERROR", "time_limit"]
)
def test_reply_that_the_server_broke_off_is_asked_for_again(reason: str) -> None:
    with OpenAIServer(
        [ServerReply(text="Run the", finish_reason=reason), ServerReply(text=ANSWER)]
    ) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.finish_reason, reply.attempts) == (ANSWER, "stop", 2)


def test_reply_that_is_always_broken_off_is_marked_as_cut() -> None:
    with OpenAIServer([ServerReply(text="Run the", finish_reason="error")] * 2) as server:
        (reply,) = ModelBench(server, max_attempts=2).ask(CALL)
    assert (reply.text, reply.finish_reason) == ("Run the", INCOMPLETE)


def test_loop_is_not_asked_for_again() -> None:
    looped = f"{ANSWER} {'We act now. ' * 60}"
    with OpenAIServer([ServerReply(text=looped, finish_reason="length")]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.finish_reason, reply.attempts) == (f"{ANSWER} We act now", REPEATED, 1)


class _Claim(BaseModel):
    claim: str


def test_loop_in_json_is_an_error_that_names_the_setting() -> None:
    looped = '{"claim": "' + "we act and " * 60
    with OpenAIServer([ServerReply(text=looped, finish_reason="length")]) as server:
        (reply,) = ModelBench(server).ask(replace(CALL, schema=_Claim))
    assert "models.test-model.parameters" in reply.error
    assert len(server.chats) == 1


@pytest.mark.parametrize("text", ["None", "\u200b", "null"])
def test_reply_without_visible_text_is_asked_for_again(text: str) -> None:
    with OpenAIServer([ServerReply(text=text), ServerReply(text=ANSWER)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.attempts) == (ANSWER, 2)


def test_model_is_told_once_that_it_has_no_tool() -> None:
    called = ServerReply(tool_calls=[("search", {"query": "ferry"})], finish_reason="tool_calls")
    with OpenAIServer([called, ServerReply(text=ANSWER)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.tool_calls) == (ANSWER, ())
    assert "cannot call this tool" in server.chats[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    "called",
    [
        ServerReply(tool_calls=[("search", {"query": "ferry"})], finish_reason="tool_calls"),
        ServerReply(text='<tool_call>{"name": "search", "arguments": {}}</tool_call>'),
    ],
)
def test_second_call_of_an_unknown_tool_becomes_text(called: ServerReply) -> None:
    with OpenAIServer([called, called]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert reply.text == "[calls the tool search, which it was not offered]"
    assert len(server.chats) == 2


def test_fence_that_a_model_copied_is_removed() -> None:
    prompt: Any = ({"role": "user", "content": "Ben: <<kelvon\nTrams are slow.\nkelvon>>"},)
    call = replace(CALL, messages=prompt)
    data = json.dumps({"claim": "<<kelvon\nTrams are slow.\nkelvon>>"})
    with OpenAIServer(
        [ServerReply(text=f"Ada: <<kelvon\n{ANSWER}\nkelvon>>"), ServerReply(text=data)]
    ) as server:
        text, structured = ModelBench(server).ask(call, replace(call, schema=_Claim))
    assert text.text == ANSWER
    assert structured.data == {"claim": "Trams are slow."}


def test_template_tokens_are_reported() -> None:
    with OpenAIServer([ServerReply(text=f"{ANSWER}<|im_end|>"), ServerReply(text=ANSWER)]) as server:
        first, second = ModelBench(server).ask(CALL, CALL)
    assert (first.text, first.misfit_template, second.misfit_template) == (ANSWER, True, False)


def test_streamed_reasoning_without_an_opening_tag_is_replaced_and_then_held_back() -> None:
    text = f"The ferry is weak. Attack it.</think>{ANSWER}"
    with OpenAIServer([ServerReply(text=text)] * 2) as server:
        bench = ModelBench(server)
        reply, chunks = bench.stream(TURN_CALL)
        held = bench.stream(TURN_CALL)[1]
    replaced = [index for index, chunk in enumerate(chunks) if chunk.response_metadata.get("retracts")]
    assert reply.text == ANSWER
    assert "".join(str(chunk.text) for chunk in chunks[replaced[0] :]) == ANSWER
    assert "".join(str(chunk.text) for chunk in held) == ANSWER


def test_further_parameters_are_sent() -> None:
    with OpenAIServer() as server:
        ModelBench(server, parameters={"frequency_penalty": 0.5, "repeat_penalty": 1.1}).ask(CALL)
    assert (server.chats[0]["frequency_penalty"], server.chats[0]["repeat_penalty"]) == (0.5, 1.1)


@pytest.mark.parametrize("name", ["n", "temperature", "max_tokens", "messages", "response_format", "stream"])
def test_parameter_that_moot_sends_itself_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' is not a further parameter"):
        ModelSettings(parameters={name: 1})


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"null"), (200, b"[]"), (200, b""), (204, b""), (200, b'"yes"'), (200, b"3")]
)
def test_response_that_is_no_object_gives_a_clear_error(status: int, body: bytes) -> None:
    with raw_server(status, JSON, body) as server:
        (reply,) = ModelBench(server, max_attempts=1).ask(CALL)
    assert f"HTTP {status}: the server sent" in reply.error


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    with raw_server(200, JSON, completion(ANSWER)) as other:
        headers = {"location": f"{other.base_url}/chat/completions"}
        with raw_server(status, headers, b"") as server:
            (reply,) = ModelBench(server).ask(CALL)
    assert f"HTTP {status}: the endpoint redirects to" in reply.error
    assert (len(server.requests), other.requests) == (1, [])


def test_compressed_response_is_read() -> None:
    with raw_server(200, {**JSON, "content-encoding": "gzip"}, gzip.compress(completion(ANSWER))) as server:
        assert ModelBench(server).ask(CALL)[0].text == ANSWER


def test_decompressed_size_is_limited() -> None:
    body = gzip.compress(completion("x" * 60_000_000), 1)
    with raw_server(200, {**JSON, "content-encoding": "gzip"}, body) as server:
        (reply,) = ModelBench(server, max_attempts=1).ask(CALL)
    assert "larger than 8,000,000 bytes" in reply.error


def _events(texts: Sequence[str]) -> bytes:
    frame = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    deltas = [{**frame, "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in deltas)


def test_stream_larger_than_the_limit_is_cut_and_marked() -> None:
    body = _events(
        [f"Sailing {number} was full, as {number * 7} were. " + " " * 3_000 for number in range(3_000)]
    )
    with raw_server(200, {"content-type": "text/event-stream"}, body) as server:
        reply, _ = ModelBench(server, max_attempts=1).stream(TURN_CALL)
    assert reply.finish_reason == INCOMPLETE
    assert reply.text.startswith("Sailing 0 was full")


@pytest.mark.parametrize("count", [10**8, 10**12, -1])
def test_usage_that_is_not_plausible_is_counted_anew(count: int) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 5, "total_tokens": 5}
    with OpenAIServer([ServerReply(text=ANSWER, usage=usage)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert reply.usage["prompt_tokens"] < 1_000
    assert reply.usage["recounted"] == 1


def test_usage_as_text_or_fraction_is_read() -> None:
    usage = {"prompt_tokens": "12", "completion_tokens": 7.0, "total_tokens": "19"}
    with OpenAIServer([ServerReply(text=ANSWER, usage=usage)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.usage["prompt_tokens"], reply.usage["completion_tokens"]) == (12, 7)

"""Model calls to a real server on loopback: requests, replies and failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from moot.models.model_call import complete
from moot.models.registry import Models
from moot.state.errors import ConfigError
from tests.support.model_bench import CALL, TURN_CALL, ModelBench
from tests.support.openai_server import OpenAIServer, ServerReply


def test_request_has_names_as_slugs_and_max_tokens() -> None:
    with OpenAIServer() as server:
        (reply,) = ModelBench(server).ask(replace(CALL, temperature=0.3, seed=5))
    (body,) = server.chats
    assert [(item["role"], item.get("name")) for item in body["messages"]] == [
        ("system", None),
        ("user", "Ada-Lovelace"),
        ("user", "ben"),
    ]
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (200, 0.3, 5)
    assert reply.ok
    assert reply.text.startswith("Point ")
    assert (reply.model, reply.provider, reply.finish_reason, reply.attempts) == (
        "test-model",
        "127.0.0.1",
        "stop",
        1,
    )


def test_every_reply_is_streamed_and_the_same_whether_it_is_shown_or_not() -> None:
    with OpenAIServer() as server:
        context = ModelBench(server)
        plain, streamed = context.ask(CALL)[0], context.stream(TURN_CALL)[0]
    assert [chat["stream"] for chat in server.chats] == [True, True]
    assert plain.text == streamed.text


def test_placeholder_key_is_sent_if_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer() as server:
        ModelBench(server).ask(CALL)
    assert server.requests[0].headers["authorization"] == "Bearer not-needed"


def test_api_key_is_read_from_the_configured_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_KEY", "secret-1")
    with OpenAIServer() as server:
        ModelBench(server, api_key_env="ROUTER_KEY").ask(CALL)
    assert server.requests[0].headers["authorization"] == "Bearer secret-1"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_temporary_failure_is_retried(status: int) -> None:
    with OpenAIServer([ServerReply(status=status), ServerReply(status=status)]) as server:
        context = ModelBench(server)
        (reply,) = context.ask(CALL)
    assert reply.ok
    assert reply.attempts == 3
    assert context.waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("header", "value", "waited"),
    [
        ("retry-after", "7", 7.5),
        ("retry-after-ms", "2500", 2.75),
        ("retry-after", format_datetime(datetime.now(UTC) + timedelta(seconds=3600 * 24 * 365 * 20)), None),
    ],
    ids=["seconds", "milliseconds", "a date in 20 years"],
)
def test_retry_after_is_honoured(header: str, value: str, waited: float | None) -> None:
    with OpenAIServer([ServerReply(status=429, headers={header: value})]) as server:
        context = ModelBench(server)
        (reply,) = context.ask(CALL)
    assert context.waits == ([waited] if waited else [])
    assert reply.ok is bool(waited)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "context_length_exceeded"),
        (401, None),
        (403, None),
        (404, "model_not_found"),
        (429, "insufficient_quota"),
    ],
)
def test_permanent_failure_goes_to_the_fallback_without_retry(status: int, code: str | None) -> None:
    with OpenAIServer({"test-model": [ServerReply(status=status, code=code)]}) as server:
        context = ModelBench(server)
        (reply,) = context.ask(replace(CALL, fallbacks=("spare-model",)))
    assert [body["model"] for body in server.chats] == ["test-model", "spare-model"]
    assert (reply.model, reply.attempts, context.waits) == ("spare-model", 2, [])


def test_error_names_the_failure_of_every_model() -> None:
    acts = {
        "test-model": [ServerReply(status=500, message="on fire")] * 3,
        "spare-model": [ServerReply(status=401, message="who?")],
    }
    with OpenAIServer(acts) as server:
        (reply,) = ModelBench(server, max_attempts=3).ask(replace(CALL, fallbacks=("spare-model",)))
    assert reply.error.startswith(
        "test-model: HTTP 500: on fire; spare-model: HTTP 401: who? (no key was sent"
    )
    assert (reply.status, reply.retryable, reply.attempts) == (401, True, 4)


def test_a_connection_reset_is_retried() -> None:
    with OpenAIServer([ServerReply(reset_after=0)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.ok, reply.attempts) == (True, 2)


def test_a_timeout_is_retried() -> None:
    with OpenAIServer([ServerReply(latency=30.0)] * 2) as server:
        (reply,) = ModelBench(server, timeout_s=0.5, max_attempts=2).ask(CALL)
    assert (reply.ok, reply.retryable, reply.attempts) == (False, True, 2)
    assert reply.error == "test-model: no answer within 0.5 s"


def test_an_unreachable_server_gives_a_reply_with_an_error() -> None:
    with OpenAIServer() as server:
        bench = ModelBench(server, max_attempts=2)
    (reply,) = bench.ask(CALL)
    assert reply.retryable
    assert "connection failed" in reply.error


@pytest.mark.parametrize("body", ['{"choices": null}', '{"choices": []}', "<html>busy</html>", "{}"])
def test_a_body_that_is_not_a_completion_is_retried(body: str) -> None:
    with OpenAIServer([ServerReply(body=body)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert reply.ok
    assert reply.attempts == 2


def test_error_in_a_response_with_status_200_is_read() -> None:
    body = '{"error": {"message": "upstream is full", "code": 429}}'
    with OpenAIServer([ServerReply(body=body)] * 2) as server:
        (reply,) = ModelBench(server, max_attempts=2).ask(CALL)
    assert (reply.status, reply.retryable) == (429, True)
    assert "upstream is full" in reply.error


def test_cancelled_call_raises_cancelled_error() -> None:
    async def cancelled(context: ModelBench) -> bool:
        task = asyncio.create_task(complete(CALL, context.models))
        await asyncio.to_thread(context.server.arrived.wait, 5)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        finally:
            await context.models.aclose()
        return False

    with OpenAIServer([ServerReply(latency=0.5)]) as server:
        assert asyncio.run(cancelled(ModelBench(server)))
    assert len(server.chats) == 1


def test_missing_key_raises_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match=r"moot setup.*OPENAI_API_KEY"):
        asyncio.run(complete(CALL, Models()))


# --- Reasoning, token limits and empty replies


@pytest.mark.parametrize("live", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "act",
    [
        ServerReply(text="<think>First, trams.</think>Trams win."),
        ServerReply(pieces=["<th", "ink>First, ", "trams.</", "think", ">\n\nTrams", " win."]),
        ServerReply(text="Trams win.", reasoning="First, trams."),
        ServerReply(text="Trams win.", reasoning="First, trams.", reasoning_field="reasoning"),
    ],
    ids=["tags", "split tags", "reasoning_content", "reasoning"],
)
def test_reasoning_is_separated_from_the_text(act: ServerReply, live: bool) -> None:
    with OpenAIServer([act]) as server:
        context = ModelBench(server)
        if live:
            reply, chunks = context.stream(TURN_CALL)
            assert "".join(chunk.text for chunk in chunks) == "Trams win."
        else:
            (reply,) = context.ask(CALL)
    assert (reply.text, reply.reasoning) == ("Trams win.", "First, trams.")


def test_a_reply_with_only_reasoning_is_retried() -> None:
    with OpenAIServer([ServerReply(text="<think>never closed"), ServerReply(text="Said.")]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.attempts) == ("Said.", 2)


def test_three_empty_replies_are_a_failure() -> None:
    with OpenAIServer([ServerReply(text="")] * 9) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert len(server.chats) == 3
    assert (reply.error, reply.retryable) == ("test-model: an empty answer (finish_reason stop)", True)


def test_a_truncated_reply_is_retried_with_twice_the_tokens() -> None:
    with OpenAIServer(
        [ServerReply(text="Trams are", finish_reason="length"), ServerReply(text="Trams are good.")]
    ) as server:
        (reply,) = ModelBench(server, reasoning_tokens=50).ask(CALL)
    assert [body["max_tokens"] for body in server.chats] == [250, 500]
    assert (reply.text, reply.finish_reason) == ("Trams are good.", "stop")


def test_a_reply_truncated_twice_is_returned_as_truncated() -> None:
    acts = [
        ServerReply(text="Trams are", finish_reason="length"),
        ServerReply(text="Trams are good, but", finish_reason="length"),
    ]
    with OpenAIServer(acts) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert len(server.chats) == 2
    assert (reply.text, reply.finish_reason) == ("Trams are good, but", "length")


def test_a_truncated_reply_is_kept_if_the_retry_fails() -> None:
    with OpenAIServer(
        [ServerReply(text="Trams are", finish_reason="length"), ServerReply(status=400)]
    ) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.ok, reply.text, reply.finish_reason) == (True, "Trams are", "length")


def test_doubled_max_tokens_stay_within_the_context_size() -> None:
    cut = ServerReply(text="Trams are", finish_reason="length")
    with OpenAIServer([cut, cut]) as server:
        ModelBench(server, context_size=500).ask(replace(CALL, prompt_tokens=220))
        ModelBench(server, context_size=400).ask(replace(CALL, prompt_tokens=220))
    assert [body["max_tokens"] for body in server.chats] == [200, 280, 180]


def test_reasoning_model_gets_max_completion_tokens_and_no_temperature() -> None:
    with OpenAIServer() as server:
        ModelBench(server).ask(replace(CALL, model="o3-mini", temperature=0.7))
    (body,) = server.chats
    assert "temperature" not in body
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 200 + 4096
    assert body["messages"][0]["role"] == "developer"


def test_characters_that_a_database_cannot_store_are_removed() -> None:
    with OpenAIServer([ServerReply(text="tr\x00am \ud83d lone")]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert "\x00" not in reply.text
    reply.text.encode()

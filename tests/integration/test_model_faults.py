"""Implausible, refused, slow, truncated and oversize replies of a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from moot.models.attempt import MAX_REPLY_CHARS
from tests.support.model_bench import CALL, TURN_CALL, ModelBench
from tests.support.openai_answers import stream_events
from tests.support.openai_server import OpenAIServer, ServerReply

IMPLAUSIBLE_USAGE: list[Any] = [
    {"prompt_tokens": 10**25, "completion_tokens": 5},
    {"prompt_tokens": 12, "completion_tokens": -4},
    {"prompt_tokens": "many", "completion_tokens": 5, "total_tokens": "more"},
    {"prompt_tokens": 1.5, "completion_tokens": [5]},
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # from the SDK, for the invalid usage
@pytest.mark.parametrize("report", IMPLAUSIBLE_USAGE)
@pytest.mark.parametrize("streamed", [False, True])
def test_implausible_usage_is_recounted_and_the_reply_is_kept(report: Any, streamed: bool) -> None:
    with OpenAIServer([ServerReply(usage=report, text="Trams it is.")]) as server:
        context = ModelBench(server, input_usd_per_million=1, output_usd_per_million=1)
        reply = context.stream(TURN_CALL)[0] if streamed else context.ask(CALL)[0]
    assert (reply.text, reply.attempts, reply.error) == ("Trams it is.", 1, "")
    assert 0 < reply.usage["prompt_tokens"] < 100
    assert 0 < reply.usage["completion_tokens"] < 20
    assert reply.usage["recounted"] == 1
    assert reply.usage["cost_usd"] > 0


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # from the SDK, for the invalid usage
def test_invalid_fields_beside_valid_usage_are_ignored() -> None:
    report = {
        "prompt_tokens": 40,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 10**30},
        "prompt_tokens_details": {"cached_tokens": "all"},
        "cost": "free",
    }
    with OpenAIServer([ServerReply(usage=report)]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert reply.usage == {"prompt_tokens": 40, "completion_tokens": 9}


@pytest.mark.parametrize(
    "act", [ServerReply(refusal="I cannot.", text=""), ServerReply(finish_reason="content_filter", text="")]
)
def test_a_refusal_is_final_and_not_retried(act: ServerReply) -> None:
    with OpenAIServer([act] * 9) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.refused, reply.is_final, reply.ok, len(server.chats)) == (True, True, False, 1)


def test_a_prompt_stopped_by_a_filter_is_a_refusal() -> None:
    with OpenAIServer([ServerReply(status=400, code="content_filter")] * 9) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.refused, len(server.chats)) == (True, 1)


def test_a_failed_fallback_after_a_refusal_is_not_a_refusal() -> None:
    with OpenAIServer(
        {"test-model": [ServerReply(refusal="No.", text="")], "spare-model": [ServerReply(status=401)]}
    ) as server:
        (reply,) = ModelBench(server).ask(replace(CALL, fallbacks=("spare-model",)))
    assert not reply.refused
    assert not reply.is_final


@pytest.mark.slow
def test_a_slow_stream_does_not_time_out() -> None:
    slow = ServerReply(pieces=[f"word{n} " for n in range(6)], gap=0.4)
    with OpenAIServer([slow]) as server:
        reply, _ = ModelBench(server, timeout_s=2).stream(TURN_CALL)
    assert reply.text == "word0 word1 word2 word3 word4 word5"
    assert reply.attempts == 1


@pytest.mark.slow
def test_streamed_reasoning_resets_the_timeout() -> None:
    with OpenAIServer(
        [ServerReply(pieces=["<think>", *("hm " * 9).split(" "), "</think>", "Yes."], gap=0.2)]
    ) as server:
        reply, _ = ModelBench(server, timeout_s=2).stream(TURN_CALL)
    assert (reply.text, reply.attempts) == ("Yes.", 1)


def test_an_endless_attempt_is_stopped_and_not_retried() -> None:
    with OpenAIServer([ServerReply(pieces=["on "] * 40, gap=0.05)] * 9) as server:
        reply, _ = ModelBench(server, timeout_s=30, total_timeout_s=0.4).stream(TURN_CALL)
    assert "total_timeout_s" in reply.error
    assert len(server.chats) == 1


REQUEST: dict[str, Any] = {"model": "m", "messages": []}
TRUNCATED_EVENTS = [json.dumps(event) for event in stream_events(REQUEST, ServerReply(text="Trams win."))][:2]
"""Events of a stream that ends after the first word."""


def test_a_stream_that_ends_early_is_retried() -> None:
    with OpenAIServer([ServerReply(raw_events=TRUNCATED_EVENTS), ServerReply(text="Trams win.")]) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.finish_reason, reply.attempts) == ("Trams win.", "stop", 2)


@pytest.mark.parametrize("rest", ["", '{"id": "x", "choi'], ids=["after an event", "within an event"])
def test_a_stream_that_ends_early_is_incomplete_if_all_retries_fail(rest: str) -> None:
    with OpenAIServer(
        [ServerReply(raw_events=TRUNCATED_EVENTS, unfinished=rest), *[ServerReply(status=500)] * 9]
    ) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.finish_reason, reply.error) == ("Trams", "incomplete", "")
    assert len(server.chats) == 5


@pytest.mark.parametrize("end", [[""], ["[DONE]"]], ids=["finish_reason", "DONE"])
def test_a_finish_reason_or_a_done_event_ends_a_stream(end: list[str]) -> None:
    whole = [json.dumps(event) for event in stream_events(REQUEST, ServerReply(text="Trams"))]
    sent = whole if end == [""] else [whole[0], whole[1], *end]
    with OpenAIServer([ServerReply(raw_events=sent)]) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.finish_reason, len(server.chats)) == ("Trams", "stop", 1)


def test_an_endless_reply_is_truncated_at_the_limit() -> None:
    piece = json.dumps({"choices": [{"index": 0, "delta": {"content": " ".join(map(str, range(6_000)))}}]})
    with OpenAIServer([ServerReply(raw_events=[piece] * 1_000)]) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert MAX_REPLY_CHARS - 1 <= len(reply.text) <= MAX_REPLY_CHARS
    assert (reply.finish_reason, len(server.chats)) == ("incomplete", 1)


def test_a_stream_of_too_many_chunks_is_truncated_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moot.models.attempt.MAX_REPLY_CHUNKS", 20)
    with OpenAIServer([ServerReply(pieces=["on "] * 100)]) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert (reply.text, reply.finish_reason, len(server.chats)) == (("on " * 20).strip(), "incomplete", 1)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_response_that_is_too_large_is_not_read(streamed: bool) -> None:
    text = "tram " * 6_000_000
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
    with OpenAIServer([ServerReply(raw_events=[event], text=text)] * 9) as server:
        bench = ModelBench(server)
        reply = bench.stream(TURN_CALL)[0] if streamed else bench.ask(CALL)[0]
    assert "larger than 8,000,000 bytes" in reply.error
    assert len(server.chats) == 1


def _thoughts(words: Iterable[object]) -> ServerReply:
    deltas = [{"index": 0, "delta": {"reasoning_content": f"{word} "}} for word in words]
    return ServerReply(raw_events=[json.dumps({"choices": [delta]}) for delta in deltas])


def test_looping_reasoning_is_not_asked_for_again() -> None:
    with OpenAIServer([_thoughts(["so"] * 20_000)] * 2) as server:
        reply, _ = ModelBench(server).stream(TURN_CALL)
    assert "the model repeated itself: set `models.test-model.parameters`" in reply.error
    assert len(server.chats) == 1


def test_a_stream_without_pauses_respects_the_total_timeout() -> None:
    with OpenAIServer([_thoughts(range(200_000))] * 2) as server:
        reply, _ = ModelBench(server, timeout_s=30, total_timeout_s=0.3).stream(TURN_CALL)
    assert "total_timeout_s" in reply.error
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("message", "excess"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 4296 tokens.", 220),
        ("the prompt exceeds the context window", 1500),
    ],
)
def test_a_request_that_exceeds_the_context_reports_the_excess(message: str, excess: int) -> None:
    act = ServerReply(status=400, code="context_length_exceeded", message=message)
    with OpenAIServer([act] * 9) as server:
        (long,) = ModelBench(server).ask(replace(CALL, prompt_tokens=3000, max_tokens=1000))
    assert (long.excess, len(server.chats)) == (excess, 1)

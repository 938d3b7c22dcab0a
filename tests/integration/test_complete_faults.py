"""Replies that are absurd, withheld, slow or refused for their length, against a real server on loopback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.model_bench import CALL, FLOOR, Bench
from tests.support.openai_server import Act, OpenAIServer

ABSURD: list[Any] = [
    {"prompt_tokens": 10**25, "completion_tokens": 5},
    {"prompt_tokens": 12, "completion_tokens": -4},
    {"prompt_tokens": "many", "completion_tokens": 5, "total_tokens": "more"},
    {"prompt_tokens": 1.5, "completion_tokens": [5]},
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the SDK's, of what it was sent
@pytest.mark.parametrize("report", ABSURD)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_report_that_cannot_be_is_counted_anew_and_the_reply_is_kept(report: Any, streamed: bool) -> None:
    with OpenAIServer([Act(usage=report, text="Trams it is.")]) as server:
        bench = Bench(server, input_usd_per_million=1, output_usd_per_million=1)
        reply = bench.stream(FLOOR)[0] if streamed else bench.ask(CALL)[0]
    assert (reply.text, reply.attempts, reply.error) == ("Trams it is.", 1, "")
    assert 0 < reply.usage["prompt_tokens"] < 100
    assert 0 < reply.usage["completion_tokens"] < 20
    assert reply.usage["recounted"] == 1
    assert reply.usage["cost_usd"] > 0


def test_a_report_without_sense_beside_its_numbers_is_read() -> None:
    report = {
        "prompt_tokens": 40,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 10**30},
        "prompt_tokens_details": {"cached_tokens": "all"},
        "cost": "free",
    }
    with OpenAIServer([Act(usage=report)]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert reply.usage == {"prompt_tokens": 40, "completion_tokens": 9}


@pytest.mark.parametrize(
    "act", [Act(refusal="I cannot.", text=""), Act(finish_reason="content_filter", text="")]
)
def test_a_refusal_is_asked_for_once_and_is_final(act: Act) -> None:
    with OpenAIServer([act] * 9) as server:
        (reply,) = Bench(server).ask(CALL)
    assert (reply.refused, reply.is_final, reply.ok, len(server.chats)) == (True, True, False, 1)


def test_a_prompt_that_a_filter_stops_is_a_refusal() -> None:
    with OpenAIServer([Act(status=400, code="content_filter")] * 9) as server:
        (reply,) = Bench(server).ask(CALL)
    assert (reply.refused, len(server.chats)) == (True, 1)


def test_a_failure_of_a_fallback_after_a_refusal_is_none() -> None:
    with OpenAIServer(
        {"test-model": [Act(refusal="No.", text="")], "spare-model": [Act(status=401)]}
    ) as server:
        (reply,) = Bench(server).ask(replace(CALL, fallbacks=("spare-model",)))
    assert not reply.refused
    assert not reply.is_final


def test_a_stream_that_goes_on_is_not_cut_however_slow_it_is() -> None:
    slow = Act(pieces=[f"word{n} " for n in range(6)], gap=0.4)
    with OpenAIServer([slow]) as server:
        reply, _ = Bench(server, timeout_s=2).stream(FLOOR)
    assert reply.text == "word0 word1 word2 word3 word4 word5"
    assert reply.attempts == 1


def test_a_stream_of_thoughts_is_no_silence() -> None:
    with OpenAIServer(
        [Act(pieces=["<think>", *("hm " * 9).split(" "), "</think>", "Yes."], gap=0.2)]
    ) as server:
        reply, _ = Bench(server, timeout_s=2).stream(FLOOR)
    assert (reply.text, reply.attempts) == ("Yes.", 1)


def test_an_attempt_without_end_is_cut_and_not_paid_again() -> None:
    with OpenAIServer([Act(pieces=["on "] * 40, gap=0.05)] * 9) as server:
        reply, _ = Bench(server, timeout_s=30, total_timeout_s=0.4).stream(FLOOR)
    assert "total_timeout_s" in reply.error
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("message", "excess"),
    [
        ("This model's maximum context length is 4096 tokens. However, you requested 4296 tokens.", 241),
        ("the prompt exceeds the context window", 750),
    ],
)
def test_a_request_that_is_too_long_says_by_how_much(message: str, excess: int) -> None:
    act = Act(status=400, code="context_length_exceeded", message=message)
    with OpenAIServer([act] * 9) as server:
        long, shortened = Bench(server).ask(
            replace(CALL, prompt_tokens=3000), replace(CALL, prompt_tokens=3000, shortened=excess)
        )
    assert (long.excess, shortened.excess) == (excess, 0)
    assert len(server.chats) == 2

"""What a failing endpoint's messages tell a person to do, against a real server on loopback."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from moot.nodes.models.failures import Backoff
from moot.nodes.models.registry import Models
from moot.state.config.model_settings import ModelSettings
from moot.state.errors import ConfigError
from tests.support.asking import asked
from tests.support.model_bench import CALL, FLOOR, Bench
from tests.support.moot_command import Moot
from tests.support.openai_server import Act, OpenAIServer

HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = "<html><head><title>Sign in to Example</title></head><body>…</body></html>"


def test_a_server_that_is_down_is_named_and_asked_after() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    models = Models({"m": ModelSettings(base_url=url, max_attempts=1)})
    reply = asked(replace(CALL, model="m"), models)
    assert f"nothing answers at {url}: is it running?" in reply.error


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("localhost:11434/v1", "write http://localhost:11434/v1"),
        ("api.example.com/v1", "write https://api.example.com/v1"),
    ],
)
def test_an_address_without_scheme_is_written_out(
    address: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ConfigError, match="has no scheme") as caught:
        Models().check(["some-model"])
    assert advice in str(caught.value)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_web_page_is_no_answer_and_says_which_address_is_wrong(streamed: bool) -> None:
    with OpenAIServer([Act(body=PAGE, headers=HTML)] * 9) as server:
        bench = Bench(server)
        reply = bench.stream(FLOOR)[0] if streamed else bench.ask(CALL)[0]
    assert "a web page (Sign in to Example) came instead of an answer" in reply.error
    assert f"the model's base_url, {server.base_url}, is no API's address" in reply.error
    assert len(server.chats) == 1


def test_a_gateways_page_is_tried_again() -> None:
    with OpenAIServer([Act(status=502, headers=HTML), Act(text="Trams.")]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert (reply.text, reply.attempts) == ("Trams.", 2)


def test_a_context_that_is_exceeded_names_the_settings() -> None:
    with OpenAIServer([Act(status=400, code="context_length_exceeded", message="too long")]) as server:
        (reply,) = Bench(server).ask(CALL)
    assert "models.test-model.context_size" in reply.error
    assert "memory.budget.total" in reply.error


@pytest.mark.parametrize("tool_calls", [(), [("search", {"query": "trams"})]])
def test_a_whole_answer_to_a_request_for_a_stream_is_taken(
    tool_calls: list[tuple[str, dict[str, str]]],
) -> None:
    act = Act(text="Trams are cheap.", reasoning="Hm.", tool_calls=tool_calls, whole=True)
    with OpenAIServer([act]) as server:
        reply, _ = Bench(server).stream(replace(FLOOR, tools=({"type": "function"},) if tool_calls else ()))
    assert (reply.error, reply.attempts, reply.reasoning) == ("", 1, "Hm.")
    assert reply.usage["completion_tokens"] > 0
    assert [each["args"] for each in reply.tool_calls] == [args for _, args in tool_calls]
    assert tool_calls or reply.text == "Trams are cheap."


def test_an_unknown_model_is_answered_with_what_the_server_offers() -> None:
    with OpenAIServer({"test-modle": [Act(status=404, message="no such model")]}) as server:
        models = Models({"test-modle": ModelSettings(base_url=server.base_url)})
        reply = asked(replace(CALL, model="test-modle"), models)
    assert "did you mean 'test-model'? The server offers test-model" in reply.error
    assert "moot resume ID --model NAME" in reply.error


@pytest.mark.parametrize(("retry_for", "answers"), [(0, False), (100, False), (5_000, True)])
def test_a_long_outage_is_waited_out_as_long_as_asked(retry_for: float, answers: bool) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    out = [Act(status=503)] * 7 + [Act(status=429, headers={"retry-after": "1200"})] + [Act(text="Back.")]
    with OpenAIServer(out) as server:
        settings = {"test-model": ModelSettings(base_url=server.base_url, max_attempts=2)}
        backoff = Backoff(sleep=sleep, dice=lambda: 0.0)
        reply = asked(CALL, Models(settings, backoff=backoff, retry_for=retry_for))
    assert reply.ok is answers
    assert (1200 in waits) is answers  # longer than is waited within one call's attempts


def test_a_wait_is_told_with_the_providers_own_time_and_a_wrong_name_is_one_flag_away(tmp_path: Path) -> None:
    plan = [Act(status=429, headers={"retry-after": "0.2"}), Act(status=404, message="no such model")]
    with OpenAIServer({"wrong": plan}) as server:
        moot = Moot(tmp_path)
        words = ("run", "Trams?", "--turns", "2", "--no-judge", "--id", "t", "--model", "wrong")
        failed = moot(*words, OPENAI_BASE_URL=server.base_url)
        done = moot("resume", "t", "--model", "test-model", "--quiet", OPENAI_BASE_URL=server.base_url)
        offered = moot("models", OPENAI_BASE_URL=server.base_url)
    assert "wrong: rate limited, retry 1 of 4 in 0.2 s" in failed.err
    assert failed.code == 3
    assert done.code == 0, done.err
    assert {chat["model"] for chat in server.chats[2:]} == {"test-model"}
    assert offered.out == "test-model\n"

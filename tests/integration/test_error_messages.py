"""Error messages of failing endpoints and their advice, with a real server on loopback."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from moot.config.model_settings import ModelSettings
from moot.models.failures import Backoff
from moot.models.registry import Models
from moot.state.errors import ConfigError
from tests.support.model_bench import CALL, TURN_CALL, ModelBench
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.single_call import call_once

HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = "<html><head><title>Sign in to Example</title></head><body>…</body></html>"


def test_an_error_names_the_address_of_an_unreachable_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    models = Models({"m": ModelSettings(base_url=url, max_attempts=1)})
    reply = call_once(replace(CALL, model="m"), models)
    assert f"nothing answers at {url}: is it running?" in reply.error


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("localhost:11434/v1", "write http://localhost:11434/v1"),
        ("api.example.com/v1", "write https://api.example.com/v1"),
    ],
)
def test_an_error_suggests_the_scheme_that_an_address_lacks(
    address: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ConfigError, match="has no URL scheme") as caught:
        Models().check(["some-model"])
    assert advice in str(caught.value)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_names_the_base_url_that_returns_a_web_page(streamed: bool) -> None:
    with OpenAIServer([ServerReply(body=PAGE, headers=HTML)] * 9) as server:
        context = ModelBench(server)
        reply = context.stream(TURN_CALL)[0] if streamed else context.ask(CALL)[0]
    assert "a web page (Sign in to Example) instead of an answer" in reply.error
    assert f"{server.base_url} is not an API's address: check the model's base_url" in reply.error
    assert len(server.chats) == 1


def test_a_gateways_error_page_is_retried() -> None:
    with OpenAIServer([ServerReply(status=502, headers=HTML), ServerReply(text="Trams.")]) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert (reply.text, reply.attempts) == ("Trams.", 2)


def test_a_context_length_error_names_the_settings_to_change() -> None:
    with OpenAIServer(
        [ServerReply(status=400, code="context_length_exceeded", message="too long")]
    ) as server:
        (reply,) = ModelBench(server).ask(CALL)
    assert "models.test-model.context_size" in reply.error
    assert "memory.budget.total" in reply.error


@pytest.mark.parametrize("tool_calls", [(), [("search", {"query": "trams"})]])
def test_an_unstreamed_reply_to_a_streaming_request_is_accepted(
    tool_calls: list[tuple[str, dict[str, str]]],
) -> None:
    act = ServerReply(text="Trams are cheap.", reasoning="Hm.", tool_calls=tool_calls, whole=True)
    with OpenAIServer([act]) as server:
        reply, _ = ModelBench(server).stream(
            replace(TURN_CALL, tools=({"type": "function"},) if tool_calls else ())
        )
    assert (reply.error, reply.attempts, reply.reasoning) == ("", 1, "Hm.")
    assert reply.usage["completion_tokens"] > 0
    assert [each["args"] for each in reply.tool_calls] == [args for _, args in tool_calls]
    assert tool_calls or reply.text == "Trams are cheap."


def test_an_unknown_model_error_lists_the_servers_models() -> None:
    with OpenAIServer({"test-modle": [ServerReply(status=404, message="no such model")]}) as server:
        models = Models({"test-modle": ModelSettings(base_url=server.base_url)})
        reply = call_once(replace(CALL, model="test-modle"), models)
    assert "did you mean 'test-model'? The server offers test-model" in reply.error
    assert "`Debate.reconfigure`" in reply.error


def test_an_error_suggests_the_correct_provider_name() -> None:
    name = "antropic:claude"
    with OpenAIServer({name: [ServerReply(status=404, message="no such model")]}) as server:
        models = Models({name: ModelSettings(base_url=server.base_url)})
        reply = call_once(replace(CALL, model=name), models)
    assert "did you mean 'anthropic:claude'? The server offers test-model" in reply.error


@pytest.mark.parametrize(("retry_for", "answers"), [(0, False), (100, False), (5_000, True)])
def test_an_outage_is_retried_for_the_configured_time(retry_for: float, answers: bool) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    out = (
        [ServerReply(status=503)] * 7
        + [ServerReply(status=429, headers={"retry-after": "1200"})]
        + [ServerReply(text="Back.")]
    )
    with OpenAIServer(out) as server:
        settings = {"test-model": ModelSettings(base_url=server.base_url, max_attempts=2)}
        backoff = Backoff(sleep=sleep, random_value=lambda: 0.0)
        reply = call_once(CALL, Models(settings, backoff=backoff, retry_for=retry_for))
    assert reply.ok is answers
    assert (1200 in waits) is answers  # longer than the waits between the attempts of one call


def test_a_retry_reports_its_wait_and_a_resume_can_change_the_model(tmp_path: Path) -> None:
    plan = [
        ServerReply(status=429, headers={"retry-after": "0.2"}),
        ServerReply(status=404, message="no such model"),
    ]
    (tmp_path / "c.yaml").write_text("openings: sequential\n")
    with OpenAIServer({"wrong": plan}) as server:
        moot = Moot(tmp_path)
        words = (
            "run",
            "Trams?",
            "--config",
            "c.yaml",
            "--turns",
            "2",
            "--no-judge",
            "--id",
            "t",
            "--model",
            "wrong",
        )
        failed = moot(*words, OPENAI_BASE_URL=server.base_url)
        done = moot("resume", "t", "--model", "test-model", "--quiet", OPENAI_BASE_URL=server.base_url)
        offered = moot("models", OPENAI_BASE_URL=server.base_url)
    assert "wrong: rate limited, retry 1 of 4 in 0.2 s" in failed.err
    assert failed.code == 3
    assert done.code == 0, done.err
    assert {chat["model"] for chat in server.chats[2:]} == {"test-model"}
    assert offered.out == "test-model\n"

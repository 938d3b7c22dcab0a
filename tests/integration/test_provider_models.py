"""Models of other providers: their LangChain packages against servers that speak each protocol."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.chat_models import base as langchain_models
from pydantic import BaseModel, Field

from moot import ConfigError, DebateConfig, open_debates
from moot.calls.model_calls import WireMessage
from moot.config.boundary import Permissions
from moot.config.model_settings import LANGCHAIN_PROVIDERS, OPENAI, ModelSettings
from moot.models.registry import Models, make_model
from moot.state.entries import EntryUsage
from moot.state.settings import redact
from tests.support.model_bench import CALL, TURN_CALL, ModelBench
from tests.support.openai_answers import Json
from tests.support.openai_server import OpenAIServer
from tests.support.provider_servers import (
    AnthropicServer,
    GoogleServer,
    OllamaServer,
    ProviderReply,
    ProviderServer,
)

pytestmark = pytest.mark.slow

CLAUDE, LLAMA, GEMINI = "anthropic:claude-test", "ollama:llama3:8b", "google_genai:gemini-test"
KINDS: dict[str, type[ProviderServer]] = {CLAUDE: AnthropicServer, LLAMA: OllamaServer, GEMINI: GoogleServer}
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}

each_provider = pytest.mark.parametrize("name", KINDS, ids=["anthropic", "ollama", "google"])


class Score(BaseModel):
    """The schema of a structured reply."""

    reasoning: str
    winner: str
    score: int = Field(ge=0, le=10)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-real-endpoint")
    monkeypatch.setenv("CLAUDE_PROXY_KEY", "sk-of-the-proxy-only")


def settings_of(name: str, server: ProviderServer, **more: Any) -> ModelSettings:
    key = {} if name == LLAMA else {"api_key_env": "CLAUDE_PROXY_KEY"}
    return ModelSettings(base_url=server.base_url, **key, **more)


def prompt_text(asked: Json) -> str:
    return str(asked.get("messages") or asked["contents"])


class ProviderBench(ModelBench):
    """A bench whose models call a provider's server."""

    def __init__(self, server: ProviderServer, name: str, **settings: Any) -> None:
        self.waits = []
        self.models = Models({name: settings_of(name, server, **settings)})
        self.models = replace(self.models, backoff=replace(self.models.backoff, sleep=self._sleep))


@each_provider
def test_a_call_sends_the_providers_parameters_and_speaker_names(
    name: str,
) -> None:
    with KINDS[name]() as server:
        (reply,) = ProviderBench(server, name).ask(replace(CALL, model=name, temperature=0.3, seed=5))
    (asked,) = server.requests
    parameters: dict[str, dict[str, object]] = {
        CLAUDE: {"max_tokens": 200, "temperature": 0.3},
        LLAMA: {"options": {"num_predict": 200, "temperature": 0.3, "seed": 5, "num_ctx": 2048}},
        GEMINI: {"maxOutputTokens": 200, "temperature": 0.3, "seed": 5},
    }
    assert parameters[name] == {key: asked.get("generationConfig", asked)[key] for key in parameters[name]}
    assert name.partition(":")[2] in f"{asked.get('model')} {server.headers[0][':path']}"
    assert "Ada Lovelace: Trams are cheap." in prompt_text(asked)
    assert (reply.ok, reply.model, reply.provider, reply.finish_reason) == (
        *(True, name),
        *(name.partition(":")[0], "stop"),
    )
    assert reply.usage["prompt_tokens"] > 700  # as the server reports it


@each_provider
def test_a_message_is_streamed_and_its_usage_counted_once(name: str) -> None:
    with KINDS[name]() as server:
        context = ProviderBench(server, name)
        (whole,) = context.ask(replace(CALL, model=name))
        reply, chunks = context.stream(replace(TURN_CALL, model=name))
    assert len([chunk for chunk in chunks if chunk.text]) > 5
    assert {(chunk.id, chunk.name) for chunk in chunks} == {("m000007", "ada")}
    assert "".join(chunk.text for chunk in chunks) == reply.text == whole.text
    assert reply.usage == whole.usage
    assert len(server.requests) == 2  # from two event loops


@each_provider
@pytest.mark.parametrize("refused", [0, 1, 2], ids=["native", "tool", "prompt"])
def test_schemas_fall_back_to_a_tool_and_then_to_the_prompt(name: str, refused: int) -> None:
    good = ProviderReply(text='Well: {"reasoning": "r", "winner": "ada", "score": 7}')
    turns = [ProviderReply(400, "not supported")] * refused + (
        [good] if refused == 2 or name == LLAMA else []
    )
    with KINDS[name](turns) as server:
        context = ProviderBench(server, name)
        (reply,) = context.ask(replace(CALL, model=name, schema=Score))
        context.ask(replace(CALL, model=name, schema=Score))
    assert Score.model_validate(reply.data)
    assert reply.tool_calls == ()
    last = server.requests[-1]  # the method that worked is used again
    ways = {
        CLAUDE: ["tool_choice", "tool_choice", ""],
        LLAMA: ["format", "tools", ""],
        GEMINI: ["responseJsonSchema", "toolConfig", ""],
    }
    way = ways[name][refused]
    assert (
        ({**last, **last.get("generationConfig", {})}).get(way)
        if way
        else "JSON Schema:" in prompt_text(last)
    )


@each_provider
def test_an_invalid_reply_is_retried_with_its_error(name: str) -> None:
    bad = {"reasoning": "r", "winner": "ada", "score": 70}
    turn = (
        ProviderReply(tools=[("Score", bad)])
        if name == CLAUDE
        else ProviderReply(text=str(bad).replace("'", '"'))
    )
    with KINDS[name]([turn]) as server:
        (reply,) = ProviderBench(server, name).ask(replace(CALL, model=name, schema=Score))
    assert reply.data is not None
    assert "less than or equal to 10" in prompt_text(server.requests[1])


@each_provider
def test_tools_are_called_and_their_results_returned(name: str) -> None:
    called: WireMessage = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
    }
    result: WireMessage = {"role": "tool", "content": "3", "tool_call_id": "1"}
    with KINDS[name]([ProviderReply(tools=[("add", {"a": 1, "b": 2})])] * 2) as server:
        context = ProviderBench(server, name)
        call = replace(CALL, model=name, tools=(TOOL,))
        reply, chunks = context.stream(replace(call, stream_as=TURN_CALL.stream_as))
        assert [(tool["name"], tool["args"]) for tool in reply.tool_calls] == [("add", {"a": 1, "b": 2})]
        (whole,) = context.ask(call)
        assert whole.tool_calls[0]["args"] == {"a": 1, "b": 2}
        (last,) = context.ask(replace(call, messages=(*CALL.messages, called, result)))
    assert last.text.startswith("Point ")
    assert "".join(chunk.text for chunk in chunks) == ""


@each_provider
def test_a_busy_server_and_a_broken_stream_are_retried(name: str) -> None:
    turns = [
        ProviderReply(429, headers={"retry-after": "7"}),
        ProviderReply(529),
        ProviderReply(text="Train wins.", breaks=True),
    ]
    with KINDS[name](turns) as server:
        context = ProviderBench(server, name)
        reply, chunks = context.stream(replace(TURN_CALL, model=name))
    assert (reply.ok, reply.attempts) == (True, 4)
    assert context.waits[0] >= (7 if name == CLAUDE else 0)
    assert "".join(chunk.text for chunk in chunks) == "Train"  # streamed text is not sent twice


def test_permanent_errors_say_what_to_do() -> None:
    turns = [
        ProviderReply(401, "invalid x-api-key"),
        ProviderReply(400, "prompt is too long: 9000 tokens > 8000 maximum"),
    ]
    with AnthropicServer(turns) as server:
        context = ProviderBench(server, CLAUDE)
        call = replace(CALL, model=CLAUDE, prompt_tokens=8000)
        refused, long = context.ask(call, call)
    # The reply of 200 tokens counts into the context. An eighth is a margin. 8,000 tokens are 9,000 there.
    excess = (1200 + 150) * 8000 // 9000 + 16
    assert "HTTP 401: invalid x-api-key (check the key in CLAUDE_PROXY_KEY" in refused.error
    assert (refused.retryable, long.excess) == (False, excess)
    message = "The input token count (9000) exceeds the maximum number of tokens allowed (8000)."
    with GoogleServer([ProviderReply(400, message)]) as google:
        (long,) = ProviderBench(google, GEMINI).ask(replace(call, model=GEMINI))
    assert long.excess == excess


def test_calls_cost_the_providers_list_price() -> None:
    tokens: EntryUsage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    names = ("anthropic:claude-haiku-4-5", "openai:gpt-4o-mini", "ollama:llama3:8b")
    assert [Models().cost_usd(name, tokens) for name in names] == [1.0, 0.15, None]


def test_reasoning_is_removed_and_a_truncated_reply_gets_more_tokens() -> None:
    turns = [
        ProviderReply(text="Trams are", stop="max_tokens"),
        ProviderReply(text="Trams win.", thinking="First, trams."),
    ]
    with AnthropicServer(turns) as server:
        reply, chunks = ProviderBench(server, CLAUDE).stream(replace(TURN_CALL, model=CLAUDE))
    assert [asked["max_tokens"] for asked in server.requests] == [200, 400]
    assert (reply.text, reply.reasoning) == ("Trams win.", "First, trams.")
    assert "First" not in "".join(chunk.text for chunk in chunks)


def test_temperature_is_omitted_for_models_without_it() -> None:
    name = "anthropic:claude-opus-4-7"
    with AnthropicServer() as server:
        models = Models({name: settings_of(CLAUDE, server)})
        context = ProviderBench(server, CLAUDE)
        context.models = models
        context.ask(replace(CALL, model=name, temperature=0.7))
    assert "temperature" not in server.requests[0]


def test_a_key_is_sent_only_to_its_own_endpoint_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer() as server:
        ProviderBench(server, CLAUDE).ask(replace(CALL, model=CLAUDE))
        sent = str(server.headers)
        with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY belongs to another endpoint"):
            make_model(CLAUDE, ModelSettings(base_url=server.base_url))
    assert "sk-of-the-proxy-only" in sent
    assert "real-endpoint" not in sent
    Models().check([CLAUDE])
    assert redact("sk-ant-of-the-real-endpoint") == "***"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(ConfigError, match=r"has no API key: set ANTHROPIC_API_KEY"):
        Models().check([CLAUDE])


@pytest.mark.parametrize(
    ("name", "module", "command"),
    [
        (CLAUDE, "langchain_anthropic", r"pip install 'moot\[anthropic\]'"),
        (LLAMA, "langchain.chat_models", r"pip install 'moot\[ollama\]'"),
        ("groq:llama", "langchain_groq", "pip install langchain langchain-groq"),
        ("bedrock_converse:x", "langchain_aws", r"pip install langchain langchain-aws` \("),
        ("bedrock_converse:x", "langchain.chat_models.base", r"pip install langchain` \("),
    ],
)
def test_the_error_names_the_missing_package(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, command: str
) -> None:
    langchain_models._get_chat_model_creator.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    if module == "langchain.chat_models.base":
        monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ConfigError, match=command):
        Models().check([name])


def test_every_langchain_provider_is_known() -> None:
    assert {OPENAI, "langsmith"} | LANGCHAIN_PROVIDERS == langchain_models._BUILTIN_PROVIDERS.keys()


def test_the_openai_prefix_uses_the_openai_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = ModelBench(server)
        context.models = Models()
        known, plain = context.ask(
            replace(CALL, model="openai:gpt-5-mini", temperature=0.7), replace(CALL, model="llama3:8b")
        )
    assert [asked["model"] for asked in server.chats] == ["gpt-5-mini", "llama3:8b"]
    assert server.chats[0]["max_completion_tokens"] == 200 + 4096
    assert (known.provider, plain.provider) == ("127.0.0.1", "127.0.0.1")


def test_only_the_operator_may_allow_a_provider_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    permissions = Permissions(DebateConfig(model=CLAUDE))
    monkeypatch.setenv("MOOT_ALLOW_MODELS", "claude*,ollama:*")
    with pytest.raises(ConfigError, match="model: 'anthropic:claude-test' needs the operator's permission"):
        permissions.authorize()
    monkeypatch.setenv("MOOT_ALLOW_MODELS", "anthropic:claude*")
    assert permissions.authorize().model == CLAUDE


@each_provider
def test_a_council_runs_to_its_verdict(name: str, tmp_path: Path) -> None:
    with KINDS[name]() as server:
        models = {name: settings_of(name, server).model_dump(exclude_unset=True)}
        config = DebateConfig(protocol="council", rounds=1, model=name, models=models)
        with open_debates(str(tmp_path / "moot.sqlite")) as debates:
            document = debates.start("Should we adopt a monorepo?", config).run()
    assert (document["status"], document["errors"]) == ("done", [])
    assert document["verdict"]["winner"] == "tie"
    assert document["usage"]["prompt_tokens"] > 700 * len(server.requests) - 1

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel

from moot.config.model_settings import ModelSettings
from moot.models.offline import OfflineModel, ScriptedModel
from moot.models.registry import Models, make_model
from moot.state.errors import ConfigError


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_offline_model_needs_no_settings() -> None:
    assert isinstance(make_model("offline", ModelSettings()), OfflineModel)
    Models().check(["offline"])


@pytest.mark.parametrize("name", ["", "  ", "http://localhost:8000/v1", "ollama://llama3"])
def test_an_invalid_model_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        Models().check([name])


@pytest.mark.parametrize("name", ["", "nothing", "monolit", "../../secrets"])
def test_an_unknown_recording_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(
        ConfigError, match=f"'{re.escape(name)}': choose one of free-transport, monolith, rate-limiter"
    ):
        Models().check([f"recorded:{name}"])


@pytest.mark.parametrize("name", ["llama3:8b", "vendor/x:free", "gpt-5-mini"])
def test_missing_key_and_address_error_suggests_moot_setup(name: str) -> None:
    with pytest.raises(ConfigError, match=r"run `moot setup`, or set OPENAI_API_KEY"):
        Models().check([name])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ofline", "offline"),
        ("Offline", "offline"),
        ("antropic:claude", "anthropic:claude"),
        ("opena:gpt-5", "openai:gpt-5"),
        ("recorde:monolith", "recorded:monolith"),
    ],
)
def test_mistyped_model_name_gets_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name!r}: did you mean {meant!r}\? Otherwise run `moot setup`"):
        Models().check([name])


def test_base_url_is_sufficient_and_names_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    Models().check(["llama3:8b"])
    assert Models().endpoint_host("llama3:8b") == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "temperature", "limit", "reasoning"),
    [
        ("gpt-5", False, "max_completion_tokens", 4096),
        ("openai/gpt-5-mini", False, "max_completion_tokens", 4096),
        ("gpt-5-chat-latest", True, "max_completion_tokens", 0),
        ("o3-mini", False, "max_completion_tokens", 4096),
        ("deepseek-r1:7b", True, "max_tokens", 4096),
        ("gpt-4o", True, "max_tokens", 0),
        ("o100-custom", True, "max_tokens", 0),
        ("llama3:8b", True, "max_tokens", 0),
    ],
)
def test_known_models_have_default_settings(name: str, temperature: bool, limit: str, reasoning: int) -> None:
    settings = Models().settings_of(name)
    defaults = (settings.temperature, settings.max_tokens_field, settings.reasoning_tokens)
    assert defaults == (temperature, limit, reasoning)


def test_configured_settings_override_the_defaults_of_a_known_model() -> None:
    models = Models(settings={"o3": ModelSettings(reasoning_tokens=10)})
    settings = models.settings_of("o3")
    assert (settings.reasoning_tokens, settings.temperature) == (10, False)


def test_concurrent_calls_build_one_client_for_each_loop() -> None:
    built: list[str] = []

    def factory(name: str, settings: ModelSettings) -> BaseChatModel:
        built.append(name)
        return ScriptedModel([])

    models = Models(factory=factory)

    async def together() -> list[Any]:
        return await asyncio.gather(*(models.client("x") for _ in range(5)))

    first, second = asyncio.run(together()), asyncio.run(together())
    assert built == ["x", "x"]
    assert len({id(client) for client in first}) == 1
    assert first[0] is not second[0]

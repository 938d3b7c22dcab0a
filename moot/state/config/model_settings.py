"""Per-model settings: what a provider's model can take and what it costs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from moot.state.config.section import Section

OFFLINE = "offline"
"""Name of the built-in model."""

RECORDED = "recorded:"
"""Begins the name of a model that plays a debate which ships; the recording's name follows."""


OPENAI = "openai"
"""Prefix of a model that is asked in OpenAI's own way, as one without a prefix is."""

_PROVIDERS = """
anthropic anthropic_bedrock azure_ai azure_openai baseten bedrock bedrock_converse bedrock_mantle_anthropic
bedrock_mantle_openai cohere deepseek fireworks google_anthropic_vertex google_genai google_vertexai groq
huggingface ibm litellm meta mistralai nvidia ollama openrouter perplexity together upstage xai
"""
LANGCHAIN_PROVIDERS = frozenset(_PROVIDERS.split())
"""Prefixes of models that LangChain's `init_chat_model` makes; any other colon is part of a model's name."""


def provider_of(name: str) -> str:
    """Return the provider that a model's name begins with, `""` where it names none."""
    prefix = name.partition(":")[0]
    return prefix if prefix == OPENAI or prefix in LANGCHAIN_PROVIDERS else ""


def bare_name(name: str) -> str:
    """Return a model's name as its provider knows it."""
    provider = provider_of(name)
    return name.removeprefix(f"{provider}:") if provider else name


def is_built_in(name: str) -> bool:
    """Return whether a model runs in this process, with no key, no network and no price."""
    return name == OFFLINE or name.startswith(RECORDED)


def check_model_name(name: str | None) -> str | None:
    """Refuse what is no model's name, for validators of the fields that hold one."""
    if name is not None and (not name.strip() or "://" in name):
        raise ValueError(
            f"{name!r} is not a model's name: give the name as the provider knows it "
            "and the endpoint as `base_url` or OPENAI_BASE_URL"
        )
    return name


class ModelSettings(Section):
    """How to talk to one model; every field has a default that suits a plain OpenAI-compatible server."""

    base_url: str | None = None
    """Endpoint; `None` means `OPENAI_BASE_URL`, else OpenAI's."""
    api_key_env: str | None = None
    """Environment variable that holds the endpoint's key; the key itself never enters a configuration. `None`
    means `OPENAI_API_KEY`, and no key where `base_url` is given: that one belongs to another endpoint."""
    context_size: int | None = Field(None, gt=0)
    """Tokens of prompt and answer together; `None` where unknown. The view's budget must fit."""
    encoding: Literal["o200k_base", "cl100k_base"] | None = None
    """Tokenizer; `None` chooses by the model's name."""
    input_usd_per_million: float | None = Field(None, ge=0)
    """Price of a million prompt tokens, USD; `None` takes the list price of a well-known model at its own
    endpoint, else leaves cost uncounted. Both this and the answers' count, or neither."""
    cached_usd_per_million: float | None = Field(None, ge=0)
    """Price of a million prompt tokens read from the provider's cache; `None` means the full price."""
    output_usd_per_million: float | None = Field(None, ge=0)
    """Price of a million answered tokens, USD."""
    requests_per_minute: float | None = Field(None, gt=0)
    """So often the model is asked by all who use the database; `None` until it says that it is too often."""
    tokens_per_minute: int | None = Field(None, gt=0)
    """Tokens of prompts and of the room for answers, likewise."""
    concurrency: int | None = Field(None, ge=1, le=64)
    """Calls at the same time, likewise; `None` bounds those of one debate alone (`limits.concurrency`)."""
    temperature: bool = True
    """Whether the model takes a temperature; reasoning models often refuse it."""
    seed: bool = True
    """Whether the model takes a seed."""
    structured_output: Literal["json_schema", "function_calling", "json_mode", "prompt"] = "json_schema"
    """How structured answers are asked for; `prompt` works with any model."""
    merge_roles: bool = False
    """Merge consecutive messages of one role, for chat templates that refuse them."""
    system_role: bool = True
    """Whether the model takes a system message; without, it is put before the first user message."""
    stream: bool = True
    """Whether the endpoint streams."""
    reasoning_tokens: int = Field(0, ge=0)
    """Added to the answer's reserve for thinking aloud, tokens."""
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """Name of the request's field for the answer's limit."""
    timeout_s: float = Field(120.0, gt=0)
    """So long may an answer be silent: until it begins, between what streams in; else until it is whole."""
    total_timeout_s: float = Field(1800.0, gt=0)
    """One attempt may take this long, seconds; what takes longer is not asked for again."""
    max_attempts: int = Field(5, ge=1, le=20)
    """Attempts of one call before its fallbacks are tried."""

    @property
    def key_variable(self) -> str | None:
        """The environment variable whose value is sent to the endpoint, `None` where none is."""
        return self.api_key_env or (None if self.base_url else "OPENAI_API_KEY")

"""Names and settings of models, and settings of the MCP servers whose tools debaters may call."""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from moot.config.section import Section
from moot.state.settings import redact_urls

MAX_WAIT_S = 3600.0
"""Default value of `ModelSettings.max_wait_s`, in seconds."""
OFFLINE = "offline"
"""Name of the built-in offline model."""

RECORDED = "recorded:"
"""Prefix of the names of recorded models. A recorded model replays a debate that is shipped with Moot. The
name of the recording follows the prefix."""


OLLAMA = "ollama"
"""Provider prefix for Ollama's own API."""
OPENAI = "openai"
"""Provider prefix for OpenAI, the default provider."""

_PROVIDERS = """
anthropic anthropic_bedrock azure_ai azure_openai baseten bedrock bedrock_converse bedrock_mantle_anthropic
bedrock_mantle_openai cohere deepseek fireworks google_anthropic_vertex google_genai google_vertexai groq
huggingface ibm litellm meta mistralai nvidia ollama openrouter perplexity together upstage xai
"""
LANGCHAIN_PROVIDERS = frozenset(_PROVIDERS.split())
"""Provider prefixes that LangChain's `init_chat_model` accepts in model names. Any other text before a colon
belongs to the name itself."""


def provider_of(name: str) -> str:
    """Return the provider prefix of a model name, or `""` if the name has no provider prefix."""
    prefix, colon, _ = name.partition(":")
    return prefix if colon and (prefix == OPENAI or prefix in LANGCHAIN_PROVIDERS) else ""


_SIMILARITY = 0.85
"""Minimum similarity (0 to 1) at which Moot suggests a known name for an unknown one. The unrelated names
`llama3` and `ollama` have a similarity of 0.83."""


def similar_model_name(name: str) -> str:
    """Return the built-in model or provider prefix most similar to a mistyped name, or `""`."""
    prefix, colon, rest = name.partition(":")
    known = [OPENAI, RECORDED.removesuffix(":"), *sorted(LANGCHAIN_PROVIDERS)] if colon else [OFFLINE]
    near = get_close_matches(prefix.lower(), known, n=1, cutoff=_SIMILARITY)
    return f"{near[0]}{colon}{rest}" if near and near[0] != prefix else ""


def bare_name(name: str) -> str:
    """Return the model name without its provider prefix."""
    provider = provider_of(name)
    return name.removeprefix(f"{provider}:") if provider else name


def is_built_in(name: str) -> bool:
    """Return True if the model runs in this process, without a key, a network or a price."""
    return name == OFFLINE or name.startswith(RECORDED)


def recording_in(names: Iterable[str]) -> str:
    """Return the first name that refers to a recorded debate, or `""` if none does."""
    return next((name for name in names if name.startswith(RECORDED)), "")


def check_model_name(name: str | None) -> str | None:
    """Return a valid model name. An empty name or a URL is a `ValueError`."""
    if name is not None and (not name.strip() or "://" in name):
        raise ValueError(
            f"{name!r} is not the name of a model: give the name that the provider uses, and set the "
            "URL of the endpoint in `base_url` or OPENAI_BASE_URL"
        )
    return name


OWN_PARAMETERS = frozenset(
    {
        *("model", "messages", "n", "stream", "stream_options", "temperature", "seed", "response_format"),
        *("tools", "tool_choice", "functions", "function_call", "extra_body", "extra_headers", "extra_query"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict"),
    }
)
"""Parameters of requests that `ModelSettings.parameters` cannot set."""


class ModelSettings(Section):
    """Settings for calling one model. The defaults fit an OpenAI-compatible server."""

    base_url: str | None = None
    """URL of the API endpoint that serves the model, without a user name, password or key. The configuration
    is stored with each debate. `None`: `OPENAI_BASE_URL`, or OpenAI's if that is not set."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the endpoint's API key. The key itself is never stored.
    `None`: `OPENAI_API_KEY`, or no key if `base_url` is set, because that key belongs to another endpoint."""
    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Command that produces the model's replies, such as `[claude, -p]`. It takes the place of an API. It
    gets the prompt on stdin and writes the reply to stdout. An exit code other than 0 is a failure. A request
    cannot set it."""
    context_size: int | None = Field(default=None, gt=0)
    """Size of the model's context window in tokens, including the prompt and the reply. `None`: unknown. If
    set, a prompt budget that exceeds it is refused before the run."""
    encoding: Literal["o200k_base", "cl100k_base"] | None = None
    """Tokenizer encoding used to count the model's tokens. `None`: the encoding is chosen by the model's
    name. Set it for models whose names are not known."""
    input_usd_per_million: float | None = Field(default=None, ge=0)
    """Price in US dollars per million prompt tokens sent to the model. `None`: the list price of a well-known
    model at its own endpoint, otherwise unknown. Set it together with `output_usd_per_million`."""
    cached_usd_per_million: float | None = Field(default=None, ge=0)
    """Price in US dollars per million prompt tokens read from the provider's cache. `None`: the full
    price."""
    output_usd_per_million: float | None = Field(default=None, ge=0)
    """Price in US dollars per million completion tokens generated by the model. `None`: as for
    `input_usd_per_million`."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Maximum number of requests per minute, shared by all processes that use the same database. `None`:
    unlimited until the provider returns 429."""
    tokens_per_minute: int | None = Field(default=None, gt=0)
    """Maximum number of tokens per minute, shared by all processes that use the same database. Prompt tokens
    and tokens reserved for replies count. `None`: unlimited until the provider returns 429."""
    concurrency: int | None = Field(default=None, ge=1, le=64)
    """Maximum number of concurrent calls, shared by all processes that use the same database. `None`: only
    `limits.concurrency` of each debate applies. Set it for a local server."""
    temperature: bool = True
    """True if requests to the model include the sampling temperature. Set this to `false` for models that
    reject a sampling temperature, as many reasoning models do."""
    seed: bool = True
    """True if calls to the model include a random seed. Set this to `false` for models that reject it."""
    structured_output: Literal["json_schema", "function_calling", "json_mode", "prompt"] = "json_schema"
    """Method used to request structured output from the model. `prompt` works with any model. Use it if the
    other methods fail."""
    parameters: dict[str, object] = Field(default_factory=dict)
    """Further parameters to send with every request, such as `{frequency_penalty: 0.5}`. The server must know
    them. Parameters that Moot itself sets are refused. A request cannot set it."""
    merge_roles: bool = False
    """True if consecutive messages with the same role are merged into one. Set it for chat templates that
    reject such messages."""
    system_role: bool = True
    """True if the system prompt is sent as a separate system message. Set it to `false` to put the text
    before the first user message instead."""
    stream: bool = True
    """True if the model's replies are streamed. Set this to `false` for endpoints that cannot stream
    replies."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Number of extra tokens reserved in each reply for the model's reasoning. Raise it if replies are cut
    off during reasoning."""
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    """Name of the request field that limits the number of tokens in a reply. Newer OpenAI models need
    `max_completion_tokens`."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Number of seconds after which a call times out if no data arrives. With streaming it applies to the
    first token and between chunks, otherwise to the whole reply."""
    total_timeout_s: float = Field(default=1800.0, gt=0)
    """Maximum duration of one attempt to call the model, in seconds. An attempt that takes longer is not
    repeated."""
    max_attempts: int = Field(default=5, ge=1, le=20)
    """Maximum number of attempts to call the model before its fallback models are tried."""
    max_wait_s: float = Field(default=MAX_WAIT_S, gt=0, le=86_400)
    """Longest wait, in seconds, that Moot accepts from a provider's `Retry-After` header. The wait applies
    to all processes that share the database."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # `parameters` has no hash

    @model_validator(mode="after")
    def _check_command(self) -> "ModelSettings":
        if self.command and (self.base_url or self.api_key_env):
            raise ValueError("a model with `command` has no endpoint: remove `base_url` and `api_key_env`")
        if self.command and not self.command[0].strip():
            raise ValueError("the first item of `command` is empty: give the name of a program")
        return self

    @field_validator("base_url")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is not None and redact_urls(value) != value:
            raise ValueError(
                f"{redact_urls(value)!r} contains a password or key, which would be stored with every "
                "debate: set this URL in OPENAI_BASE_URL, or set the key in a variable and name it in "
                "`api_key_env`"
            )
        return value

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, value: dict[str, object]) -> dict[str, object]:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("a value is not JSON: use texts, numbers, true, false, null and lists") from None
        if refused := sorted(OWN_PARAMETERS & value.keys()):
            raise ValueError(
                f"{refused[0]!r} is not a further parameter, because Moot sets it itself or relies on its "
                f"default: remove {refused[0]!r}"
            )
        return value

    @field_validator("api_key_env")
    @classmethod
    def _check_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError(
                "the value must be the name of an environment variable, such as MY_API_KEY, not the "
                "key itself"
            )
        return value

    @property
    def key_variable(self) -> str | None:
        """Return the name of the variable that holds the API key. `None`: no key is sent."""
        return self.api_key_env or (None if self.base_url else "OPENAI_API_KEY")


SERVER_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9]){0,19}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class McpToolDefinition(Section):
    """Definition of a tool, as reported by its MCP server at the start of the debate."""

    name: str
    """Name of the tool on the server that provides it."""
    description: str = ""
    """Text that tells the model what the tool does."""
    parameters: dict[str, object] = Field(default_factory=dict)
    """JSON Schema of the tool's arguments."""


class McpServerConfig(Section):
    """MCP server whose tools debaters may call. It has either a `command` or a `url`."""

    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Command that starts the server, such as `[npx, -y, some-server]`. Moot talks to it over stdin and
    stdout. A request cannot set it."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the command gets in addition to `PATH`, `HOME` and other basic
    ones. The values are never stored."""
    url: str | None = None
    """URL of a server that uses streamable HTTP, without a password or key. A request cannot set it."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the bearer token sent to `url`."""
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """Time limit in seconds for one tool call, including the time to start the server."""
    tools: dict[str, McpToolDefinition] = Field(default_factory=dict)
    """Definitions of the tools that debaters use, keyed by the names given in `debaters.tools`. Moot asks
    the server for them when the debate starts, and stores them with the debate. Leave it empty."""

    @field_validator("env", "api_key_env")
    @classmethod
    def _check_variables(cls, value: tuple[str, ...] | str | None) -> tuple[str, ...] | str | None:
        names = (value,) if isinstance(value, str) else value or ()
        if wrong := [name for name in names if not _VARIABLE.fullmatch(name)]:
            raise ValueError(f"{wrong[0][:4]!r}… is not the name of an environment variable: give names only")
        return value

    @model_validator(mode="after")
    def _check_transport(self) -> "McpServerConfig":
        if (self.command is None) == (self.url is None):
            raise ValueError("give either `command` or `url`")
        if self.url is not None:
            if redact_urls(self.url) != self.url:
                raise ValueError(
                    "`url` contains a password or key: remove the secret, and set `api_key_env` to the name "
                    "of the variable that holds it"
                )
            if not self.url.startswith(("http://", "https://")):
                raise ValueError(f"{self.url!r} is not an HTTP URL: use http:// or https://")
        if self.env and self.url:
            raise ValueError(
                "`env` works only with `command`, not with `url`: remove `env`, or use `api_key_env` instead"
            )
        if self.api_key_env and self.command:
            raise ValueError(
                "`api_key_env` works only with `url`, not with `command`: name the variable in `env` instead"
            )
        return self

    def capability(self, name: str) -> dict[str, object]:
        """Return the server's name and its settings that need the operator's permission."""
        return {"name": name, **self.model_dump(include={"command", "env", "url", "api_key_env"})}


def without_definitions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON, without the tool definitions of MCP servers."""
    servers = settings.get("mcp_servers") or {}
    configured_servers = {
        name: {key: value for key, value in server.items() if key != "tools"}
        for name, server in servers.items()
    }
    return {**settings, "mcp_servers": configured_servers}

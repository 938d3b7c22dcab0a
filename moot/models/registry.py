"""Registry of chat models: names, settings, clients and endpoints."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, SecretStr, ValidationError

from moot.calls.concurrency import to_thread
from moot.config import model_settings
from moot.models.adapters import Method
from moot.models.failures import Backoff
from moot.models.offline import CommandModel, OfflineModel, RecordedModel, check_command, check_recording
from moot.models.usage import configured_price, list_price
from moot.state import langgraph_internals, reducers, settings as environment
from moot.state.entries import EntryUsage, JsonObject, ModelFacts
from moot.state.errors import ConfigError, advise
from moot.state.settings import redact, redact_urls, register_secret
from moot.storage.rate_limiter import RateLimiter
from moot.text.tokens import encoding, encoding_for

ChatModelLike = Runnable[Any, Any]
"""LangChain chat model, or another runnable that maps a list of messages to one message."""

# Empty `callbacks`, because the wrapper already reports chunks and traces. Empty `configurable`, because a
# request must not choose another model.
_CONFIG = RunnableConfig(callbacks=[], configurable={}, tags=[TAG_NOSTREAM])


class RunnableModel(BaseChatModel):
    """Chat model that wraps a runnable, such as one made by `bind`, `with_retry` or `with_fallbacks`.

    Tools and structured output are bound as for the chat model inside the runnable. If there is none, or if
    its fallbacks are of several classes, a schema is described in the prompt and tools are refused.
    """

    runnable: ChatModelLike
    """Wrapped runnable, which maps a list of messages to one message."""

    @property
    def _llm_type(self) -> str:
        inner = inner_chat_model(self.runnable)
        return inner._llm_type if inner else "runnable"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools in the format of the chat model inside the runnable."""
        inner = inner_chat_model(self.runnable)
        return inner.bind_tools(tools, **kwargs) if inner else super().bind_tools(tools, **kwargs)

    def with_structured_output(
        self, schema: JsonObject | type, **kwargs: object
    ) -> Runnable[LanguageModelInput, JsonObject | BaseModel]:
        """Return a model whose output follows a schema, sent as the inner chat model sends it."""
        inner = inner_chat_model(self.runnable)
        if inner is None:
            return super().with_structured_output(schema, **cast(JsonObject, kwargs))
        return inner.with_structured_output(schema, **cast(JsonObject, kwargs))

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **kwargs: object
    ) -> ChatResult:
        return _result(self.runnable.invoke(messages, _CONFIG, **kwargs))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **kwargs: object
    ) -> ChatResult:
        return _result(await self.runnable.ainvoke(messages, _CONFIG, **kwargs))

    async def _astream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: object, **kwargs: object
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in self.runnable.astream(messages, _CONFIG, **kwargs):
            message = _checked(chunk)
            if not isinstance(message, AIMessageChunk):
                message = AIMessageChunk(**message.model_dump(exclude={"type"}))
            yield ChatGenerationChunk(message=message)


def inner_chat_model(runnable: object) -> BaseChatModel | None:
    """Return the chat model inside a runnable, or `None` without one or with several different classes."""
    if isinstance(runnable, BaseChatModel):
        return runnable
    if isinstance(runnable, RunnableWithFallbacks):
        inner = [inner_chat_model(each) for each in runnable.runnables]
        return inner[0] if len({type(each) for each in inner}) == 1 else None
    inner_runnable = getattr(runnable, "bound", None) or getattr(runnable, "default", None)
    return inner_chat_model(inner_runnable) if isinstance(inner_runnable, Runnable) else None


def _result(message: object) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=_checked(message))])


def _checked(message: object) -> AIMessage:
    """Return a runnable's output, or raise a `ConfigError` if it is not an `AIMessage`."""
    if not isinstance(message, AIMessage):
        raise ConfigError(
            f"a runnable used as a model returned a value of type {type(message).__name__}: return "
            "an AIMessage"
        )
    return message


Factory = Callable[[str, model_settings.ModelSettings], BaseChatModel]
"""Function that creates a model client from the model's name and settings."""

ChatSource = ChatModelLike | Callable[[], ChatModelLike]
"""Chat model or other runnable that the caller passes, or a function that returns one.

A function is called once for each event loop, since connections belong to a loop.
"""

CONTEXT_STEP = 2_048
"""Sizes of contexts are rounded up to a multiple of this number, so that a server seldom loads a model
anew."""

_OPENAI_REASONING: JsonObject = {
    "temperature": False,
    "max_tokens_field": "max_completion_tokens",
    "reasoning_tokens": 4_096,
}
_REASONING_MODEL: JsonObject = {"reasoning_tokens": 4_096}

KNOWN_MODELS: tuple[tuple[str, JsonObject], ...] = (
    ("gpt-5-chat", {"max_tokens_field": "max_completion_tokens"}),
    ("gpt-5", _OPENAI_REASONING),
    ("o1", _OPENAI_REASONING),
    ("o3", _OPENAI_REASONING),
    ("o4", _OPENAI_REASONING),
    ("deepseek-r1", _REASONING_MODEL),
    ("deepseek-reasoner", _REASONING_MODEL),
    ("qwq", _REASONING_MODEL),
    ("magistral", _REASONING_MODEL),
)
"""Default settings of well-known models, each paired with the start of a model's name. The first match
applies."""


OPENAI_URL = "https://api.openai.com/v1"
NO_USAGE: EntryUsage = {"prompt_tokens": 0, "completion_tokens": 0}


def known_settings(name: str) -> JsonObject:
    """Return the default settings of a well-known model, or `{}` for any other model."""
    base = model_settings.bare_name(name).rsplit("/", 1)[-1].lower()
    for start, defaults in KNOWN_MODELS:
        if base == start or (base.startswith(start) and not base[len(start)].isalnum()):
            return defaults
    return {}


def check_name(name: str) -> None:
    """Raise a `ConfigError` if a model's name is empty or a URL."""
    if not name.strip():
        raise ConfigError("the model's name is empty: give a name, or use `offline`")
    if "://" in name:
        raise ConfigError(
            f"{name!r} is a URL, not the name of a model: set OPENAI_BASE_URL or the model's setting "
            "`base_url` to this URL, and name a model on that server"
        )


@dataclass(frozen=True)
class Access:
    """API key and URL of a model's endpoint."""

    key: str = field(repr=False)
    base_url: str | None


def access_to(name: str, settings: model_settings.ModelSettings) -> Access:
    """Return a model's API key and URL from its settings and the environment.

    Raises:
        ConfigError: both key and address are missing, or the model's API is not OpenAI-compatible.
    """
    if model_settings.provider_of(name) not in ("", model_settings.OPENAI):
        raise ConfigError(
            f"cannot list the models of the provider of {name!r}: its API is not OpenAI-compatible"
        )
    base_url = environment.register_password(settings.base_url or environment.variable("OPENAI_BASE_URL"))
    variable = settings.key_variable
    key = environment.api_key(variable) if variable else None
    if key is None and settings.api_key_env:
        raise ConfigError(f"the model {name!r} has no API key: set {settings.api_key_env}")
    if key is None and base_url is None:
        suggestion = model_settings.similar_model_name(name)
        correction = f"did you mean {suggestion!r}? Otherwise " if suggestion else ""
        demo = advise(" `moot demo` needs no key", " The model 'offline' needs no key")
        raise ConfigError(
            f"no API key{f' for the model {name!r}' if name else ''}: {correction}run `moot setup`, or set "
            f"{variable}. For a server that needs no key, set OPENAI_BASE_URL.{demo}"
        )
    if base_url is not None and urlsplit(base_url).scheme not in ("http", "https"):
        setting_name = f"models.{name}.base_url" if settings.base_url else "OPENAI_BASE_URL"
        host = base_url.rpartition("://")[2]
        is_local = host.startswith(("localhost", "127.", "[::1]", "192.168.", "10."))
        full_url = redact_urls(f"http{'' if is_local else 's'}://{host}")
        raise ConfigError(f"{setting_name} {redact_urls(base_url)!r} has no URL scheme: write {full_url}")
    return Access(key or "not-needed", base_url)


def make_model(name: str, settings: model_settings.ModelSettings) -> BaseChatModel:
    """Create the client for the model with this name.

    `offline` and `recorded:…` are built in. A configured `command` is started. `anthropic:…` and other
    provider prefixes use LangChain's integrations. Any other name is sent to an OpenAI-compatible server.

    Raises:
        ConfigError: both key and address are missing, or a package is missing.
    """
    check_name(name)
    if name == model_settings.OFFLINE:
        return OfflineModel()
    if name.startswith(model_settings.RECORDED):
        return RecordedModel(recording=name.removeprefix(model_settings.RECORDED))
    if settings.command:
        check_command(name, settings.command)
        return CommandModel(command=settings.command)
    if model_settings.provider_of(name) not in ("", model_settings.OPENAI):
        return make_provider_model(name, settings)
    access = access_to(name, settings)
    from moot.models.openai_compatible import make_chat

    return make_chat(name, settings, key=access.key, base_url=access.base_url)


def check_source(name: str, source: object) -> None:
    """Raise a `ConfigError` if the object passed as `models[name]` is neither a runnable nor a function."""
    if not isinstance(source, Runnable) and not callable(source):
        raise ConfigError(
            f"models[{name!r}] has the type {type(source).__name__}: pass a LangChain chat model, "
            "a runnable that maps messages to a message, or a function that returns one of these"
        )


def chat_model_of(name: str, model: object) -> BaseChatModel:
    """Return a chat model unchanged, or wrap another runnable in one. Anything else is a `ConfigError`."""
    if isinstance(model, BaseChatModel):
        return model
    if not isinstance(model, Runnable):
        raise ConfigError(
            f"the function models[{name!r}] returned a value of type {type(model).__name__}: "
            "return a LangChain chat model, or a runnable that maps messages to a message"
        )
    return RunnableModel(runnable=model)


@dataclass(frozen=True)
class _Loop:
    """Model clients of one event loop, the lock for their creation, and the generator that closes them."""

    clients: dict[tuple[str, model_settings.ModelSettings], BaseChatModel] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    closers: list[AsyncGenerator[None, None]] = field(default_factory=list)
    """List with one generator, which closes the model clients. The list is empty until the first client is
    needed. The generator runs when `asyncio.run` shuts down the event loop."""


@dataclass(frozen=True)
class Models:
    """All chat models that a run uses. Create it once and reuse it, since it caches the clients."""

    settings: Mapping[str, model_settings.ModelSettings] = field(default_factory=dict)
    """Configured settings of the models, keyed by model name. Models without an entry get the defaults."""
    factory: Factory = make_model
    """Function that creates the client for each model that is not in `chats`."""
    chats: Mapping[str, ChatSource] = field(default_factory=dict)
    """LangChain model objects passed in from Python, keyed by the name in the configuration. These models
    override the factory."""
    backoff: Backoff = field(default_factory=Backoff)
    """Backoff policy that determines the wait before each retry of a call."""
    retry_for: float = 0.0
    """Number of seconds to keep retrying a call after all models have failed. The value of the setting
    `limits.retry_for`."""
    rate_limiter: RateLimiter | None = field(default=None, repr=False, compare=False)
    """Rate limiter shared by all processes that use the same database. `None` means no limits."""
    _loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )
    reasoning_first: set[str] = field(default_factory=set, repr=False, compare=False)
    """Names of the models that were seen to begin with reasoning without an opening tag."""
    largest_request: int = 0
    """Largest number of tokens in a prompt and its reply. Ollama gets it as `num_ctx`. 0: unknown."""
    _methods: dict[str, Method] = field(default_factory=dict, repr=False, compare=False)
    _facts: dict[str, ModelFacts] = field(default_factory=dict, repr=False, compare=False)

    def settings_of(self, name: str) -> model_settings.ModelSettings:
        """Return a model's configured settings, with the defaults for well-known models and learned facts."""
        configured = self.settings.get(name)
        explicit_settings = configured.model_dump(exclude_unset=True) if configured else {}
        facts = self._facts.get(name, {})
        learned = {
            key: value
            for key, value in facts.get("settings", {}).items()
            if key in model_settings.ModelSettings.model_fields
        }
        merged = {**known_settings(name), **explicit_settings, **learned}
        if "limit" in facts:
            merged["context_size"] = min(facts["limit"], merged.get("context_size") or facts["limit"])
        return model_settings.ModelSettings(**merged)

    def facts_of(self, name: str) -> ModelFacts:
        """Return what a model's replies and errors have shown about it so far."""
        return self._facts.get(name, {})

    def learn(self, facts: Mapping[str, ModelFacts]) -> None:
        """Remember facts about models, keyed by model name. Later requests follow them."""
        self._facts.update(reducers.merge_facts(self._facts, [facts]))

    async def client(self, name: str) -> BaseChatModel:
        """Return the client for a model in the running event loop, because connections belong to a loop.

        A worker thread builds it and loads its tokenizer and prices, since all of them read files.

        Raises:
            ConfigError: the name or the environment is invalid.
        """
        # The context size changes no client. Without it here, a learned one would open new connections.
        key = (name, self.settings_of(name).model_copy(update={"context_size": None}))
        loop = self._loops.setdefault(asyncio.get_running_loop(), _Loop())
        async with loop.lock:
            if not loop.closers:
                loop.closers.append(self._close_with_loop())
                await anext(loop.closers[0])
            if key not in loop.clients:
                loop.clients[key] = await to_thread(self._build, *key)
        return loop.clients[key]

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.aclose()

    def _build(self, name: str, settings: model_settings.ModelSettings) -> BaseChatModel:
        source = self.chats.get(name)
        if source is None:
            client = self.factory(name, settings)
        else:
            check_source(name, source)
            client = chat_model_of(name, source if isinstance(source, Runnable) else source())
        encoding(settings.encoding or encoding_for(name))
        self.cost_usd(name, NO_USAGE)
        return client

    def check(self, names: Iterable[str]) -> None:
        """Raise a `ConfigError` if a model's name, key or URL is missing or invalid."""
        for name in dict.fromkeys(names):
            check_name(name)
            if name in self.chats:
                check_source(name, self.chats[name])
            if self.factory is not make_model or name in self.chats:
                continue
            if name.startswith(model_settings.RECORDED):
                check_recording(name.removeprefix(model_settings.RECORDED))
            if model_settings.is_built_in(name):
                continue
            reach = access_to if self.is_openai_compatible(name) else make_model
            reach(name, self.settings_of(name))

    def cost_usd(self, name: str, tokens: EntryUsage) -> float | None:
        """Return a call's cost in US dollars, 0 for built-in models, or `None` without a known price."""
        if model_settings.is_built_in(name):
            return 0.0
        settings = self.settings_of(name)
        cost = configured_price(settings, tokens)
        is_custom = self.factory is not make_model or name in self.chats or settings.command
        if cost is not None or is_custom:
            return cost
        return list_price(name, self.base_url(name), tokens)

    def names_without_price(self, names: Iterable[str]) -> list[str]:
        """Return the names of the models whose price per token is unknown."""
        return [name for name in names if self.cost_usd(name, NO_USAGE) is None]

    def endpoint_host(self, name: str) -> str:
        """Return the host name of a model's endpoint, which identifies its provider."""
        base_url = self.base_url(name)
        return urlsplit(base_url).hostname or base_url

    def base_url(self, name: str) -> str:
        """Return the URL of a model's endpoint, or `""` for the provider's default URL."""
        base_url = self.settings_of(name).base_url
        if not self.is_openai_compatible(name):
            return base_url or ""
        return base_url or environment.variable("OPENAI_BASE_URL") or OPENAI_URL

    def is_openai_compatible(self, name: str) -> bool:
        """Return True if a model is called through the OpenAI-compatible client."""
        is_custom = name in self.chats or self.settings_of(name).command
        return model_settings.provider_of(name) in ("", model_settings.OPENAI) and not is_custom

    def context_of(self, name: str, tokens: int) -> int | None:
        """Return the size of context to reserve on a server that lets a request choose it.

        It is the configured one, or else that of the debate's largest prompt and reply, never the model's
        maximum: a context of 131,072 tokens can exhaust a machine's memory. A size that changes makes Ollama
        load anew.
        """
        configured, facts = self.settings.get(name), self.facts_of(name)
        if configured and configured.context_size:
            return configured.context_size
        needed = int(max(tokens, self.largest_request) * facts.get("ratio", 1.0))
        rounded = -(-needed // CONTEXT_STEP) * CONTEXT_STEP
        return min(rounded, facts.get("limit", rounded))

    def asks_server(self, name: str) -> bool:
        """Return True if a model's server may tell the context size, unlike OpenAI's."""
        if self.factory is not make_model or name in self.chats or model_settings.is_built_in(name):
            return False
        if model_settings.provider_of(name) == model_settings.OLLAMA:
            return not self.settings_of(name).command
        return self.is_openai_compatible(name) and self.base_url(name) != OPENAI_URL

    def method_of(self, name: str) -> Method:
        """Return the structured output method to use with a model."""
        return self._methods.get(name, self.settings_of(name).structured_output)

    def learn_method(self, name: str, method: Method) -> None:
        """Remember which structured output method a model's endpoint accepts."""
        self._methods[name] = method

    async def aclose(self) -> None:
        """Close the model clients of the running event loop, as `asyncio.run` does at its end.

        A model object passed from Python stays open: its owner closes it.
        """
        loop = self._loops.pop(asyncio.get_running_loop(), _Loop())
        for (name, _), chat in loop.clients.items():
            if isinstance(self.chats.get(name), Runnable):
                continue
            # LangChain models have no `close`, and each provider's class gives its HTTP client another name.
            clients = [getattr(chat, attribute, None) for attribute in ("root_async_client", "_async_client")]
            clients.append(getattr(getattr(chat, "client", None), "aio", None))  # name in Google's class
            for owner in (*clients, *(getattr(client, "_client", None) for client in clients)):
                close_methods = (getattr(owner, method_name, None) for method_name in ("close", "aclose"))
                if close := next(filter(inspect.iscoroutinefunction, close_methods), None):
                    await close()


EXTRAS = {"anthropic": "anthropic", "google_genai": "google-genai", "ollama": "ollama"}
"""Extras of `moot` that install providers' packages, keyed by provider."""

_TIMEOUTS = ("default_request_timeout", "request_timeout")
_clients = count()


def make_provider_model(name: str, settings: model_settings.ModelSettings) -> BaseChatModel:
    """Create the client for a model whose name has a provider prefix, such as `anthropic:`.

    The key and the address come from the model's settings, or from the provider's environment variables.

    Raises:
        ConfigError: a package or a key is missing, or the provider's class cannot be instantiated.
    """
    arguments: JsonObject = {"base_url": settings.base_url} if settings.base_url else {}
    if settings.api_key_env:
        arguments["api_key"] = environment.api_key(settings.api_key_env)
        if arguments["api_key"] is None:
            raise ConfigError(f"the model {name!r} has no API key: set {settings.api_key_env}")
    chat = _make(name, arguments)
    # Moot retries calls itself. The timeout is unique, because LangChain shares one HTTP client among all
    # models with the same timeout, even across event loops, and loses replies that arrive on the wrong loop.
    options = dict.fromkeys(_TIMEOUTS, settings.timeout_s + next(_clients) / 1e6)
    options = {
        key: value for key, value in {"max_retries": 0, **options}.items() if key in type(chat).model_fields
    }
    if options:
        chat = _make(name, {**arguments, **options})
    _check_keys(name, chat, settings)
    return chat


def _make(name: str, arguments: JsonObject) -> BaseChatModel:
    provider = model_settings.provider_of(name)
    try:
        from langchain.chat_models import init_chat_model

        chat: BaseChatModel = init_chat_model(
            model_settings.bare_name(name), model_provider=provider, **arguments
        )
    except ImportError as error:
        extra = EXTRAS.get(provider)
        # Without `langchain` the provider's package is unknown. A guessed name could be a malicious package.
        packages = (
            f"'moot[{extra}]'"
            if extra
            else f"langchain {langgraph_internals.provider_package(provider)}".strip()
        )
        raise ConfigError(
            f"the model {name!r} needs packages that are not installed: run `pip install "
            f"{packages}` ({error})"
        ) from error
    except ValidationError as error:  # the text of this error would show the input, including keys
        reasons = "; ".join(each["msg"] for each in error.errors(include_input=False))
        raise ConfigError(f"the model {name!r} cannot be created: {redact(reasons)}") from None
    except Exception as error:
        raise ConfigError(f"the model {name!r} cannot be created: {redact(str(error))}") from error
    return chat


def _check_keys(name: str, chat: BaseChatModel, settings: model_settings.ModelSettings) -> None:
    """Register a model's API keys as secrets. A missing or misplaced key is a `ConfigError`."""
    for attribute in type(chat).model_fields:
        value = getattr(chat, attribute)
        if not isinstance(value, SecretStr):
            continue
        register_secret(value.get_secret_value())
        variable = chat.lc_secrets.get(attribute)
        if variable and not value.get_secret_value():
            raise ConfigError(f"the model {name!r} has no API key: set {variable}, or use 'offline'")
        if variable and settings.base_url and not settings.api_key_env:
            raise ConfigError(
                f"models.{name}.base_url: the key in {variable} belongs to another endpoint; set "
                "`api_key_env` to the environment variable that holds this endpoint's key"
            )

"""Which model a name stands for, and the clients that reach it."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from langchain_core.language_models.chat_models import BaseChatModel

from moot.nodes.models.failures import Backoff
from moot.nodes.models.schemas import Method
from moot.nodes.models.usage import configured_price, list_price
from moot.nodes.text.tokens import encoding, encoding_for
from moot.state import settings as environment
from moot.state.config.model_settings import (
    OFFLINE,
    OPENAI,
    RECORDED,
    ModelSettings,
    bare_name,
    is_built_in,
    provider_of,
)
from moot.state.entries import EntryUsage, JsonObject
from moot.state.errors import ConfigError
from moot.state.redaction import shown_url
from moot.state.traffic import Traffic

Factory = Callable[[str, ModelSettings], BaseChatModel]
"""Builds the client of one model from its name and settings."""

ChatSource = BaseChatModel | Callable[[], BaseChatModel]
"""A LangChain model from Python, or what makes one: once for each event loop, which connections belong to."""

_OPENAI_REASONING: JsonObject = {
    "temperature": False,
    "max_tokens_field": "max_completion_tokens",
    "reasoning_tokens": 4_096,
}
_THINKS_ALOUD: JsonObject = {"reasoning_tokens": 4_096}

KNOWN: tuple[tuple[str, JsonObject], ...] = (
    ("gpt-5-chat", {"max_tokens_field": "max_completion_tokens"}),
    ("gpt-5", _OPENAI_REASONING),
    ("o1", _OPENAI_REASONING),
    ("o3", _OPENAI_REASONING),
    ("o4", _OPENAI_REASONING),
    ("deepseek-r1", _THINKS_ALOUD),
    ("deepseek-reasoner", _THINKS_ALOUD),
    ("qwq", _THINKS_ALOUD),
    ("magistral", _THINKS_ALOUD),
)
"""Defaults by the start of a model's name, after any vendor's prefix; the first match counts."""


OPENAI_URL = "https://api.openai.com/v1"
NOTHING: EntryUsage = {"prompt_tokens": 0, "completion_tokens": 0}


def known_settings(name: str) -> JsonObject:
    """Return the defaults of a well-known model, `{}` for any other."""
    base = bare_name(name).rsplit("/", 1)[-1].lower()
    for start, defaults in KNOWN:
        if base == start or (base.startswith(start) and not base[len(start)].isalnum()):
            return defaults
    return {}


def check_name(name: str) -> None:
    """Refuse what cannot be a model's name.

    Raises:
        ConfigError: it is empty or an address.
    """
    if not name.strip():
        raise ConfigError("the model's name is empty: give one, or `offline`")
    if "://" in name:
        raise ConfigError(
            f"{name!r} is an address, not a model's name: set OPENAI_BASE_URL (or `base_url` in the model's "
            "settings) to the address, and give the name that the server knows"
        )


@dataclass(frozen=True)
class Access:
    """How an endpoint is reached."""

    key: str = field(repr=False)
    base_url: str | None


def access_to(name: str, settings: ModelSettings) -> Access:
    """Return the key and the address of a model's endpoint, from its settings and the environment.

    Raises:
        ConfigError: there is neither a key nor an address, or it is not asked in OpenAI's way.
    """
    if provider_of(name) not in ("", OPENAI):
        raise ConfigError(f"{name!r} is reached by its provider's own package, which lists no models here")
    base_url = settings.base_url or environment.variable("OPENAI_BASE_URL")
    variable = settings.key_variable
    key = environment.api_key(variable) if variable else None
    if key is None and base_url is None:
        raise ConfigError(
            f"no key for the model {name!r}: set {variable} (or OPENAI_BASE_URL for a server "
            "that needs none), or use `--model offline`"
        )
    if base_url is not None and urlsplit(base_url).scheme not in ("http", "https"):
        where = f"models.{name}.base_url" if settings.base_url else "OPENAI_BASE_URL"
        host = base_url.rpartition("://")[2]
        near = host.startswith(("localhost", "127.", "[::1]", "192.168.", "10."))
        whole = shown_url(f"http{'' if near else 's'}://{host}")
        raise ConfigError(f"{where} {shown_url(base_url)!r} has no scheme: write {whole}")
    return Access(key or "not-needed", base_url)


def make_model(name: str, settings: ModelSettings) -> BaseChatModel:
    """Build the client of a model, by its name.

    `offline` and `recorded:…` are built in, `anthropic:…` and other prefixes are LangChain's; everything else
    is asked of an OpenAI-compatible server.

    Raises:
        ConfigError: there is neither a key nor an address, or a package is missing.
    """
    check_name(name)
    if name == OFFLINE:
        from moot.nodes.models.offline import OfflineModel

        return OfflineModel()
    if name.startswith(RECORDED):
        from moot.nodes.models.recorded import RecordedModel

        return RecordedModel(recording=name.removeprefix(RECORDED))
    if provider_of(name) not in ("", OPENAI):
        from moot.nodes.models.provider_models import make_provider_model

        return make_provider_model(name, settings)
    access = access_to(name, settings)
    from moot.nodes.models.openai_compatible import make_chat

    return make_chat(name, settings, key=access.key, base_url=access.base_url)


@dataclass(frozen=True)
class _Loop:
    """The clients of one event loop."""

    clients: dict[tuple[str, ModelSettings], BaseChatModel] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True)
class Models:
    """The models of a run. Make one and keep it: it holds the clients and what was learnt about endpoints."""

    settings: Mapping[str, ModelSettings] = field(default_factory=dict)
    """Settings by model name; a name without any gets the defaults."""
    factory: Factory = make_model
    chats: Mapping[str, ChatSource] = field(default_factory=dict)
    """Models from Python, by the names that a configuration has for them; they come before the factory."""
    backoff: Backoff = field(default_factory=Backoff)
    retry_for: float = 0.0
    """`limits.retry_for`, seconds."""
    traffic: Traffic | None = field(default=None, repr=False, compare=False)
    """What all who use the run's database know of endpoints."""
    _loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = field(
        default_factory=WeakKeyDictionary, repr=False, compare=False
    )
    _methods: dict[str, Method] = field(default_factory=dict, repr=False, compare=False)

    def settings_of(self, name: str) -> ModelSettings:
        """Return the settings of a model: what was configured over what is known of it."""
        given = self.settings.get(name)
        explicit = given.model_dump(exclude_unset=True) if given else {}
        return ModelSettings(**{**known_settings(name), **explicit})

    async def client(self, name: str) -> BaseChatModel:
        """Return the client of a model, one for each event loop: connections belong to a loop.

        It is built in a thread, with the tokenizer and the prices that count its usage: all read files.

        Raises:
            ConfigError: the name or the environment is unusable.
        """
        key = (name, self.settings_of(name))
        here = self._loops.setdefault(asyncio.get_running_loop(), _Loop())
        async with here.lock:
            if key not in here.clients:
                here.clients[key] = await asyncio.to_thread(self._build, *key)
        return here.clients[key]

    def _build(self, name: str, settings: ModelSettings) -> BaseChatModel:
        given = self.chats.get(name)
        if given is None:
            client: object = self.factory(name, settings)
        else:
            client = given if isinstance(given, BaseChatModel) else given()
        if not isinstance(client, BaseChatModel):
            raise ConfigError(
                f"models[{name!r}] is no LangChain chat model but a {type(client).__name__}: give a "
                "BaseChatModel, without `bind` or `with_…`, or a function that makes one"
            )
        encoding(settings.encoding or encoding_for(name))
        self.cost_usd(name, NOTHING)
        return client

    def check(self, names: Iterable[str]) -> None:
        """Refuse, before anything runs, models that cannot be used.

        Raises:
            ConfigError: a name or the environment is unusable.
        """
        for name in dict.fromkeys(names):
            check_name(name)
            if self.factory is not make_model or is_built_in(name) or name in self.chats:
                continue
            reach = access_to if self.speaks_openai(name) else make_model
            reach(name, self.settings_of(name))

    def cost_usd(self, name: str, tokens: EntryUsage) -> float | None:
        """Return what one call costs, `None` where nobody knows the price; that of a built-in model is 0."""
        if is_built_in(name):
            return 0.0
        settings = self.settings_of(name)
        cost = configured_price(settings, tokens)
        if cost is not None or self.factory is not make_model or name in self.chats:
            return cost
        return list_price(name, self.base_url(name), tokens)

    def names_without_price(self, names: Iterable[str]) -> list[str]:
        """Return those whose calls cost something that nobody can count."""
        return [name for name in names if self.cost_usd(name, NOTHING) is None]

    def provider(self, name: str) -> str:
        """Return who serves a model that is asked in OpenAI's way: the host of its endpoint."""
        base_url = self.base_url(name)
        return urlsplit(base_url).hostname or base_url

    def base_url(self, name: str) -> str:
        """Return the address of a model's endpoint, `""` where the provider's own package knows it."""
        base_url = self.settings_of(name).base_url
        if not self.speaks_openai(name):
            return base_url or ""
        return base_url or environment.variable("OPENAI_BASE_URL") or OPENAI_URL

    def speaks_openai(self, name: str) -> bool:
        """Return whether a model is asked in OpenAI's way, at an address and with a key that Moot knows."""
        return provider_of(name) in ("", OPENAI) and name not in self.chats

    def method_of(self, name: str) -> Method:
        """Return how structured answers are asked of a model, with what its endpoint taught us."""
        return self._methods.get(name, self.settings_of(name).structured_output)

    def learn_method(self, name: str, method: Method) -> None:
        """Remember that a model's endpoint takes this method and refused a stronger one."""
        self._methods[name] = method

    async def aclose(self) -> None:
        """Close the clients of the running event loop; they are made anew when they are needed again.

        A model from Python is closed by whoever made it, unless a function makes it here.
        """
        here = self._loops.pop(asyncio.get_running_loop(), _Loop())
        for (name, _), chat in here.clients.items():
            if isinstance(self.chats.get(name), BaseChatModel):
                continue
            # LangChain closes nothing, and what a model talks through is called otherwise at each provider.
            clients = [getattr(chat, place, None) for place in ("root_async_client", "_async_client")]
            clients.append(getattr(getattr(chat, "client", None), "aio", None))  # Google's
            for owner in (*clients, *(getattr(client, "_client", None) for client in clients)):
                closes = (getattr(owner, verb, None) for verb in ("close", "aclose"))
                if close := next(filter(inspect.iscoroutinefunction, closes), None):
                    await close()

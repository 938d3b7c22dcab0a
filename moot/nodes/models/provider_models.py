"""Models of other providers than OpenAI's kind, made by LangChain's `init_chat_model`. Imported lazily."""

from __future__ import annotations

from itertools import count

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import SecretStr, ValidationError

from moot.state import settings as environment
from moot.state.config.model_settings import ModelSettings, bare_name, provider_of
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError
from moot.state.redaction import keep_secret, redact

EXTRAS = {"anthropic": "anthropic", "google_genai": "google-genai", "ollama": "ollama"}
"""Extras of Moot that install what a provider needs."""

_TIMEOUTS = ("default_request_timeout", "request_timeout")
_clients = count()


def make_provider_model(name: str, settings: ModelSettings) -> BaseChatModel:
    """Build the client of a model whose name begins with a provider.

    The provider's own variables give the key and the address, unless the model's settings do.

    Raises:
        ConfigError: a package or a key is missing, or the provider's class cannot be made.
    """
    given: JsonObject = {"base_url": settings.base_url} if settings.base_url else {}
    if settings.api_key_env:
        given["api_key"] = environment.api_key(settings.api_key_env)
        if given["api_key"] is None:
            raise ConfigError(f"no key for the model {name!r}: set {settings.api_key_env}")
    chat = _make(name, given)
    # Retries are ours, as is the wait between them. And LangChain shares one HTTP client among all models of
    # the same timeout, whatever event loop they run on: an answer to a request of another loop is lost, paid.
    own = dict.fromkeys(_TIMEOUTS, settings.timeout_s + next(_clients) / 1e6)
    own = {key: value for key, value in {"max_retries": 0, **own}.items() if key in type(chat).model_fields}
    if own:
        chat = _make(name, {**given, **own})
    _check_keys(name, chat, settings)
    return chat


def _make(name: str, given: JsonObject) -> BaseChatModel:
    provider = provider_of(name)
    try:
        from langchain.chat_models import init_chat_model

        made: BaseChatModel = init_chat_model(bare_name(name), model_provider=provider, **given)
    except ImportError as error:
        extra = EXTRAS.get(provider)
        packages = f"'moot[{extra}]'" if extra else f"langchain langchain-{provider.replace('_', '-')}"
        raise ConfigError(
            f"the model {name!r} needs packages that are not installed: pip install {packages} ({error})"
        ) from error
    except ValidationError as error:  # which prints what it was given, keys too
        said = "; ".join(each["msg"] for each in error.errors(include_input=False))
        raise ConfigError(f"the model {name!r} cannot be made: {redact(said)}") from None
    except Exception as error:
        raise ConfigError(f"the model {name!r} cannot be made: {redact(str(error))}") from error
    return made


def _check_keys(name: str, chat: BaseChatModel, settings: ModelSettings) -> None:
    """Keep a model's keys secret, and refuse one without any, or one that another endpoint would be sent."""
    for field in type(chat).model_fields:
        value = getattr(chat, field)
        if not isinstance(value, SecretStr):
            continue
        keep_secret(value.get_secret_value())
        variable = chat.lc_secrets.get(field)
        if variable and not value.get_secret_value():
            raise ConfigError(f"no key for the model {name!r}: set {variable}, or use `--model offline`")
        if variable and settings.base_url and not settings.api_key_env:
            raise ConfigError(
                f"models.{name}.base_url: the key in {variable} belongs to another endpoint; name the "
                "variable of this one's key beside it, as `api_key_env`"
            )

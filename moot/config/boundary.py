"""Trust boundary: permissions of a configuration that comes from outside.

A configuration is *untrusted* if it comes from a request (a server's context, MCP, A2A), from an imported
document or from a stored state. Its topic, debaters, protocol and budgets are plain data. Its limits are
capped by the operator's.

A configuration can also name capabilities: a model, an endpoint and its key, a folder, a tool, an import, a
price. Capabilities of an untrusted configuration are refused, here and nowhere else, unless the operator
allows them. The operator is whoever runs this program. Operators allow capabilities by environment variables,
by the file of `MOOT_CONFIG`, or by the configuration that their own program or command line gave the debate.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from moot.config.config_files import make_config
from moot.config.debate_config import DebateConfig, LimitsConfig
from moot.config.memory_config import WORDS
from moot.config.model_settings import ModelSettings, is_built_in
from moot.state import settings as environment
from moot.state.entries import memoize_by_identity
from moot.state.errors import ConfigError, advise
from moot.state.settings import redact_urls

CapabilityKind = Literal[
    "model",
    "endpoint",
    "command",
    "parameters",
    "traffic",
    "price",
    "limit",
    "context",
    "tool",
    "server",
    "embeddings",
]


class Capability(NamedTuple):
    """Something that needs the operator's permission, such as a model, folder or higher limit."""

    kind: CapabilityKind
    value: str
    """Value that needs permission, such as a model name or a folder path."""


ALLOWED_IN: dict[CapabilityKind, str] = {
    "model": "MOOT_MODEL, MOOT_ALLOW_MODELS (names or patterns, separated by commas)",
    "endpoint": "`models.…: {base_url, api_key_env}`",
    "command": "`models.…: {command}`",
    "parameters": "`models.…: {parameters}`",
    "traffic": "`models.…: {requests_per_minute, tokens_per_minute, concurrency, max_wait_s}`",
    "price": "`models.…: {input_usd_per_million, cached_usd_per_million, output_usd_per_million}`",
    "limit": "`limits`",
    "context": "MOOT_CONTEXT_ROOT (a folder around it)",
    "tool": "MOOT_ALLOW_TOOLS (names, separated by commas)",
    "server": "`mcp_servers`",
    "embeddings": "`memory.retrieval.embeddings`",
}
"""Settings by which the operator permits each kind of capability. Error messages contain these texts."""


_IN_PYTHON = "`Debate.allow`). In your own program, pass a `DebateConfig` as `context`"
PRICES = frozenset({"input_usd_per_million", "cached_usd_per_million", "output_usd_per_million"})
"""Names of the model settings that hold prices."""


@memoize_by_identity()
def capabilities_of(config: DebateConfig) -> Mapping[Capability, str]:
    """Return the capabilities that a configuration needs.

    Each capability maps to the key of the setting that needs it. Models have the key `""`, because several
    settings can name the same model.
    """
    capabilities = {Capability("model", name): "" for name in config.model_names() if not is_built_in(name)}
    for name, model in config.models.items():
        if model.base_url or model.api_key_env:  # one capability, as a key belongs to its endpoint
            # Grants are stored in the database, so passwords are removed from the address.
            endpoint = Capability(
                "endpoint", redact_urls(f"{model.base_url or ''} {model.api_key_env or ''}")
            )
            capabilities[endpoint] = f"models.{name}.{'base_url' if model.base_url else 'api_key_env'}"
        if model.command:
            command = json.dumps([name, *model.command], ensure_ascii=False)
            capabilities[Capability("command", command)] = f"models.{name}.command"
        if model.parameters:
            parameters = json.dumps([name, model.parameters], ensure_ascii=False, sort_keys=True)
            capabilities[Capability("parameters", parameters)] = f"models.{name}.parameters"
        for bound in ("requests_per_minute", "tokens_per_minute", "concurrency", "max_wait_s"):
            if bound in model.model_fields_set and (limit := getattr(model, bound)) is not None:
                capabilities[Capability("traffic", f"{name} {bound} {limit:g}")] = f"models.{name}.{bound}"
        for price in sorted(model.model_fields_set & PRICES):
            capabilities[Capability("price", _price_words(name, price, model))] = f"models.{name}.{price}"
    capabilities |= {Capability("context", path): "context" for path in config.context_paths()}
    for debater in config.debaters:
        capabilities |= {Capability("tool", tool): f"debaters.{debater.id}.tools" for tool in debater.tools}
    servers = {name: each.capability(name) for name, each in config.mcp_servers.items()}
    capabilities |= {
        Capability("server", json.dumps(servers[name])): f"mcp_servers.{name}" for name in servers
    }
    if (embeddings := config.memory.retrieval.embeddings) and embeddings != WORDS:
        capabilities[Capability("embeddings", embeddings)] = "memory.retrieval.embeddings"
    return capabilities


def _named_at(value: object, name: str, key: str = "") -> Iterator[str]:
    """Yield the keys of all settings that name the given model, such as `judge.model`."""
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _named_at(each, name, f"{key}.{inner}" if key else inner)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _named_at(each, name, f"{key}.{number}")
    elif value == name and re.search(r"(model|fallbacks\.\d+)$", key):
        yield key


@dataclass(frozen=True)
class Permissions:
    """Configuration of a debate, with the capabilities that the debate may use.

    Code that makes clients, opens folders or imports modules takes `Permissions`, never a bare configuration.
    """

    config: DebateConfig
    granted: Set[Capability] = frozenset()
    """Capabilities that the debate may use because the operator's own configuration names them."""
    safe_capabilities: Collection[CapabilityKind | Capability] = ()
    """Capabilities that the debate may always use because Moot itself supplies them. An entry is one
    capability or a whole kind of capabilities."""

    @classmethod
    def of_operator(cls, config: DebateConfig) -> Self:
        """Return permissions that grant every capability in the operator's own configuration."""
        return cls(config, capabilities_of(config).keys())

    def authorize(self, *kinds: CapabilityKind) -> DebateConfig:
        """Return the configuration if the given kinds of capabilities, by default all, are permitted.

        Raises:
            ConfigError: A capability is not allowed. The message names each setting and how to allow it.
        """
        refused = [
            f"{setting or next(_named_at(self.config.to_json(), capability.value), 'model')}: "
            f"{capability.value!r} needs the operator's permission in a request, an import or a stored "
            f"debate: set {ALLOWED_IN[capability.kind]}, or allow it in a configuration file "
            f"(MOOT_CONFIG, {advise('`moot resume ID --config`)', _IN_PYTHON, 'on the server)')}"
            for capability, setting in capabilities_of(self.config).items()
            if (not kinds or capability.kind in kinds)
            and not {capability, capability.kind} & set(self.safe_capabilities)
            and capability not in self.granted
            and not _allows(capability)
        ]
        if refused:
            raise ConfigError("\n".join(refused))
        return self.config


def _allows(capability: Capability) -> bool:
    """Return True if an environment variable permits this capability for every debate."""
    match capability.kind:
        case "model":
            patterns = [environment.variable("MOOT_MODEL") or "", *environment.names_in("MOOT_ALLOW_MODELS")]
            return any(fnmatchcase(capability.value, pattern) for pattern in patterns)
        case "tool":
            return capability.value in environment.names_in("MOOT_ALLOW_TOOLS")
        case "context":
            root = environment.variable("MOOT_CONTEXT_ROOT")
            return root is not None and _is_within(capability.value, root)
        case _:
            return False


@lru_cache(256)
def _is_within(path: str, root: str) -> bool:
    # The cache is filled in a thread, because a server's event loop may not read links. `open_context` checks
    # the path again.
    return Path(path).resolve().is_relative_to(Path(root).resolve())


class UntrustedConfig(BaseModel):
    """Validated configuration of a request. Its capabilities are not yet authorized."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def model_post_init(self, context: object, /) -> None:
        """Check that the values in the request form a valid configuration."""
        make_config(self.requested_settings)

    @classmethod
    def __get_pydantic_json_schema__(cls, _: object, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(DebateConfig.__pydantic_core_schema__)

    @property
    def requested_settings(self) -> Mapping[str, object]:
        """Return the settings of the request, without an empty list of debaters, a form's default."""
        settings = self.model_extra or {}
        return {key: value for key, value in settings.items() if (key, value) != ("debaters", [])}


@dataclass(frozen=True)
class ClientConfig:
    """Configuration of a debate that a client starts on a server, with the operator's permissions only."""

    config: DebateConfig
    operator: DebateConfig
    """The operator's configuration on the server."""


CEILINGS = ("total_tokens", "cost_usd", "wall_clock_s", "concurrency", "retry_for")
"""Names of the limits that a request may lower but not raise. The same applies to imports and stored
debates."""


def without_raised_limits(granted: Iterable[Capability]) -> set[Capability]:
    """Remove the permissions for higher limits from the granted capabilities.

    The operator gave these permissions for one debate only. A copy that somebody else makes of this debate
    keeps to the operator's ceilings, as a new debate does. All other capabilities are returned.
    """
    return {each for each in granted if each.kind != "limit"}


def within_ceilings(
    config: DebateConfig, operators: Sequence[DebateConfig], granted: Collection[Capability]
) -> DebateConfig:
    """Return the configuration with the operator's limits and prices applied.

    Limits and prices in `granted` are kept, because the operator set them for this debate. The same object is
    returned if nothing changes.
    """
    limits = {
        key: ceiling
        for key in CEILINGS
        if (ceiling := _ceiling(key, operators)) is not None
        and _exceeds(value := getattr(config.limits, key), ceiling)
        and Capability("limit", _limit_words(key, value)) not in granted
    }
    prices = {}
    for name in {*config.models, *config.model_names()}:
        settings = config.settings(name)
        price_keys = settings.model_fields_set & PRICES
        is_granted = price_keys and all(
            Capability("price", _price_words(name, key, settings)) in granted for key in price_keys
        )
        operator_settings = [
            each.models[name] for each in operators if name in each.models and not is_granted
        ]
        operator_prices = {
            key: getattr(each, key) for each in operator_settings for key in each.model_fields_set & PRICES
        }
        if operator_prices and operator_prices != {key: getattr(settings, key) for key in price_keys}:
            prices[name] = operator_prices
    return (
        _laid_over(config, intern(json.dumps([limits, prices], sort_keys=True)))
        if limits or prices
        else config
    )


@memoize_by_identity()
def _laid_over(config: DebateConfig, operators: str) -> DebateConfig:
    limits, prices = json.loads(operators)
    models = dict(config.models)
    for name, each in prices.items():
        kept = models.get(name, ModelSettings()).model_dump(exclude_unset=True, exclude=set(PRICES))
        models[name] = ModelSettings(**kept, **each)
    return config.model_copy(update={"limits": config.limits.model_copy(update=limits), "models": models})


def raised_limit_capabilities(config: DebateConfig, operators: Sequence[DebateConfig]) -> set[Capability]:
    """Return the numbers that a configuration sets explicitly above the operator's limits."""
    limit_keys = [key for key in CEILINGS if key in config.limits.model_fields_set]
    limits = ((key, getattr(config.limits, key), _ceiling(key, operators)) for key in limit_keys)
    return {
        Capability("limit", _limit_words(key, value))
        for key, value, ceiling in limits
        if ceiling is not None and value is not None and _exceeds(value, ceiling)
    }


def only_ceilings(config: DebateConfig, operators: Sequence[DebateConfig]) -> DebateConfig:
    """Return a copy with the operator's limits, without those that the operator let it exceed."""
    ceilings = {key: ceiling for key in CEILINGS if (ceiling := _ceiling(key, operators)) is not None}
    kept_ceilings = {
        key: ceiling
        for key, ceiling in ceilings.items()
        if not _exceeds(getattr(config.limits, key), ceiling)
    }
    return config.model_copy(update={"limits": LimitsConfig().model_copy(update=kept_ceilings)})


def _ceiling(key: str, operators: Sequence[DebateConfig]) -> float | None:
    """Return the lowest value that any of the operator's configurations sets for a limit, or `None`."""
    limits = [each.limits for each in operators if key in each.limits.model_fields_set]
    return min((value for each in limits if (value := getattr(each, key)) is not None), default=None)


def _exceeds(value: float | None, ceiling: float) -> bool:
    return value is None or value > ceiling


def _limit_words(key: str, value: float | None) -> str:
    return f"{key} {'unlimited' if value is None else format(value, 'g')}"


def _price_words(name: str, key: str, settings: ModelSettings) -> str:
    price = getattr(settings, key)
    return f"{name} {key} {'unset' if price is None else format(price, 'g')}"

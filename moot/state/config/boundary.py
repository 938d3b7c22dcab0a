"""The border: what a configuration from elsewhere may say, and what the operator alone says.

A request (a server's context, MCP, A2A), an imported document and a stored state are *foreign*: their topic,
debaters, protocol and budgets are data. What reaches the outside (a model, an endpoint with its key, a
folder, a tool, an import) is refused, here and nowhere else, unless the operator allows it: by the
environment, by the file of `MOOT_CONFIG`, or by a configuration that the operator's own program or command
line gave the debate.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from moot.state import settings as environment
from moot.state.at_sight import at_sight
from moot.state.config.config_files import load_config, make_config
from moot.state.config.debate_config import DebateConfig
from moot.state.config.model_settings import is_built_in
from moot.state.errors import ConfigError

ReachKind = Literal["model", "endpoint", "traffic", "context", "tool", "embeddings"]


class Reach(NamedTuple):
    """One thing outside that a configuration names."""

    kind: ReachKind
    value: str
    """A model's name, an endpoint's address with its key's variable, what bounds the calls of all who share
    it, a path, a tool's or an import's name."""


ALLOWED_IN: dict[ReachKind, str] = {
    "model": "MOOT_MODEL, MOOT_ALLOW_MODELS (names or patterns, separated by commas)",
    "endpoint": "`models.…: {base_url, api_key_env}`",
    "traffic": "`models.…: {requests_per_minute, tokens_per_minute, concurrency}`",
    "context": "MOOT_CONTEXT_ROOT (a folder around it)",
    "tool": "MOOT_ALLOW_TOOLS (names, separated by commas)",
    "embeddings": "`memory.retrieval.embeddings`",
}
"""Where an operator allows a thing of each kind, beside a configuration file."""


@at_sight()
def reaches(config: DebateConfig) -> Mapping[Reach, str]:
    """Return all that a configuration reaches outside, each with the setting that names it (models: `""`)."""
    found = {Reach("model", name): "" for name in config.model_names() if not is_built_in(name)}
    for name, model in config.models.items():
        if model.base_url or model.api_key_env:  # as a pair: a key goes to the endpoint it belongs to
            endpoint = Reach("endpoint", f"{model.base_url or ''} {model.api_key_env or ''}")
            found[endpoint] = f"models.{name}.{'base_url' if model.base_url else 'api_key_env'}"
        for bound in ("requests_per_minute", "tokens_per_minute", "concurrency"):
            if (most := getattr(model, bound)) is not None:
                found[Reach("traffic", f"{name} {bound} {most:g}")] = f"models.{name}.{bound}"
    if config.context is not None:
        found[Reach("context", config.context)] = "context"
    for debater in config.debaters:
        found |= {Reach("tool", tool): f"debaters.{debater.id}.tools" for tool in debater.tools}
    if embeddings := config.memory.retrieval.embeddings:
        found[Reach("embeddings", embeddings)] = "memory.retrieval.embeddings"
    return found


def _named_at(value: object, name: str, key: str = "") -> Iterator[str]:
    """Yield the settings of models, as the user writes them, that are this name."""
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _named_at(each, name, f"{key}.{inner}" if key else inner)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _named_at(each, name, f"{key}.{number}")
    elif value == name and re.search(r"(model|fallbacks\.\d+)$", key):
        yield key


@dataclass(frozen=True)
class Claim:
    """A configuration with what its debate was granted: data, until it is admitted.

    Whatever makes clients, opens folders or imports takes a claim, never a bare configuration.
    """

    config: DebateConfig
    granted: Collection[Reach] = ()
    """What an operator's own configuration named for this debate."""
    harmless: Collection[ReachKind | Reach] = ()
    """Kinds and things that lead nowhere here, because the program brought its own."""

    @classmethod
    def of_operator(cls, config: DebateConfig) -> Self:
        """Return the claim of whoever runs this program, which is granted."""
        return cls(config, reaches(config))

    def admit(self, *kinds: ReachKind) -> DebateConfig:
        """Return the configuration, to be used for these kinds of reaches, without any for all of them.

        Raises:
            ConfigError: it reaches what nobody allowed; the message names each setting and where it may be.
        """
        refused = [
            f"{setting or next(_named_at(self.config.to_json(), reach.value), 'model')}: {reach.value!r} "
            "reaches outside, which only the operator may let a request, an import or a stored debate do: "
            f"allow it with {ALLOWED_IN[reach.kind]}, or in a file (MOOT_CONFIG, `moot resume ID --config`)"
            for reach, setting in reaches(self.config).items()
            if (not kinds or reach.kind in kinds)
            and not {reach, reach.kind} & set(self.harmless)
            and reach not in self.granted
            and not _allows(reach)
        ]
        if refused:
            raise ConfigError("\n".join(refused))
        return self.config


def _allows(reach: Reach) -> bool:
    """Return whether the operator's environment allows everybody to reach a thing."""
    path = environment.variable("MOOT_CONFIG")
    if path is not None and reach in _in_file(path):
        return True
    match reach.kind:
        case "model":
            patterns = [environment.variable("MOOT_MODEL") or "", *environment.names_in("MOOT_ALLOW_MODELS")]
            return any(fnmatchcase(reach.value, pattern) for pattern in patterns)
        case "tool":
            return reach.value in environment.names_in("MOOT_ALLOW_TOOLS")
        case "context":
            root = environment.variable("MOOT_CONTEXT_ROOT")
            return root is not None and Path(reach.value).resolve().is_relative_to(Path(root).resolve())
        case _:
            return False


@lru_cache(maxsize=4)
def _in_file(path: str) -> Collection[Reach]:
    data = load_config(path)
    if isinstance(data.get("context"), str):
        data["context"] = str((Path(path).parent / data["context"]).absolute())
    return reaches(make_config(data)).keys()


class ForeignConfig(BaseModel):
    """What a request says as a run's context: validated like a `DebateConfig`, and none until admitted."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def model_post_init(self, context: object, /) -> None:
        """Validate what was said."""
        make_config(self.said)

    @classmethod
    def __get_pydantic_json_schema__(cls, _: object, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(DebateConfig.__pydantic_core_schema__)

    @property
    def said(self) -> Mapping[str, object]:
        """What the request says, and nothing else."""
        return self.model_extra or {}


def requested_config(usual: DebateConfig, *said: Mapping[str, object]) -> DebateConfig:
    """Return the operator's configuration with what a client says in it, section by section.

    Debaters that nobody named are the protocol's. A model that the operator has settings for keeps them, and
    no limit that they set is passed.

    Args:
        usual: the operator's.
        said: by the client, the later over the former; `None` says nothing.

    Raises:
        ConfigError: they cannot be used.
    """
    own = usual.to_json()
    data = dict(own)
    if usual.debaters == DebateConfig(protocol=usual.protocol).debaters:
        del data["debaters"]
    for each in said:
        data = _over(data, each)
    if isinstance(models := data["models"], dict):
        data["models"] = models | own["models"]
    if isinstance(limits := data["limits"], dict):
        for key in usual.limits.model_fields_set & _CEILINGS:
            if own["limits"][key] is not None and isinstance(limits[key], float | int):
                limits = {**limits, key: min(limits[key], own["limits"][key])}
        data["limits"] = limits
    return make_config(data)


_CEILINGS = {"total_tokens", "cost_usd", "wall_clock_s", "concurrency", "retry_for"}
"""Limits of which an operator's is the most that a client may ask for."""


def _over(under: Mapping[str, object], said: Mapping[str, object]) -> dict[str, object]:
    """Return a mapping with what is said laid over it, mapping by mapping; `None` says nothing."""
    laid = dict(under)
    for key, value in said.items():
        known = laid.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            laid[key] = _over(known, value)
        elif value is not None:
            laid[key] = value
    return laid

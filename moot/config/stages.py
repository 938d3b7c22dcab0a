"""Processing of a configuration in five stages, from its sources to the debate's graph.

    read       the environment, a file and the command line, lowest priority first
    merge      merge the layers; later ones override earlier ones (`merge_settings`)
    validate   make a `DebateConfig`; unknown keys and wrong types are errors (`make_config`)
    authorize  apply the operator's ceilings and prices, and grant capabilities
    freeze     the JSON that the state keeps as `config` (`DebateConfig.to_json`)

Every configuration passes these stages, whether it comes from the command line, Python, a server, MCP, the
live page or a batch. The settings of a request override the operator's settings. The configuration of a
stored debate starts at `authorize`, with the capabilities granted to the debate.

A plug-in converts a file that was written for another program before it is read.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from moot.config import DebateConfig, boundary, participants
from moot.config.config_files import load_config, make_config, merge_settings, nested_settings
from moot.config.file_references import Warn, check_local, log, with_files
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError
from moot.state.settings import load_plugin, plugin_entry_points, variable

ENTRY_POINT_GROUP = "moot.config_readers"
"""Entry-point group in which packages provide converters of other programs' configuration files. An entry
point refers to a function of a file's data and folder. It returns `None` for a file of another kind."""


class ConvertedConfig(Protocol):
    """Configuration that a plug-in made from another program's configuration file."""

    data: JsonObject
    """Configuration data to pass to `make_config`."""
    warnings: list[str]

    defaults: Mapping[str, str]
    """Warnings about settings that the file does not state, by dotted key. They apply unless an option gives
    the setting."""

    def original_keys(self, errors: str) -> str:
        """Replace Moot's setting names in validation errors with those of the original file."""


def _converted(data: JsonObject, folder: Path) -> ConvertedConfig | None:
    if data.keys() <= DebateConfig.model_fields.keys():  # most files: the look-up of plug-ins takes 13 ms
        return None
    converters = (
        load_plugin(point, "--config", create=False)
        for point in plugin_entry_points(ENTRY_POINT_GROUP).values()
    )
    conversions = (convert(data, folder) for convert in converters)
    return cast(ConvertedConfig | None, next(filter(None, conversions), None))


def file_data(path: Path | None, warn: Warn = log, options: Mapping[str, object] | None = None) -> JsonObject:
    """Return the settings in a configuration file, including the text of its prompt files.

    Default file: that of `MOOT_CONFIG`. `warn` receives a warning for each ignored value.

    Raises:
        ConfigError: The file cannot be read, or another program's file has an invalid value.
    """
    config_path = path or variable("MOOT_CONFIG")
    if config_path is None:
        return {}
    data, folder = load_config(config_path), Path(config_path).parent
    converted = _converted(data, folder)
    if converted is not None:
        defaults = [each for key, each in converted.defaults.items() if not (options or {}).get(key)]
        for warning in (*converted.warnings, *defaults):
            warn(f"warning: {warning}")
        data = converted.data
        try:
            make_config(data)
        except ConfigError as error:
            raise ConfigError(converted.original_keys(str(error))) from error
    elif isinstance(context := data.get("context"), str) and context:
        data["context"] = str((folder / check_local(context)).absolute())
    elif isinstance(context, list) and all(isinstance(each, str) for each in context):
        data["context"] = [str((folder / check_local(each)).absolute()) for each in context if each]
    return with_files(data, folder, warn)


def read(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> list[JsonObject]:
    """Return the settings of each configuration source, without merging or validating them.

    Options override the file, and the file overrides the environment.
    Default file: that of `MOOT_CONFIG`. `warn` receives a warning for each ignored value.

    Raises:
        ConfigError: A file cannot be read.
    """
    model = variable("MOOT_MODEL")
    environment = {"model": model} if model else {}
    return [environment, file_data(file, warn, options), nested_settings(options or {})]


def authorize(
    config: DebateConfig,
    operator: DebateConfig | None = None,
    granted: Collection[boundary.Capability] = (),
    safe: Collection[boundary.CapabilityKind | boundary.Capability] = (),
) -> boundary.Permissions:
    """Return the permissions of a debate, limited to what the operator allows.

    `granted` and `safe` capabilities need no further permission.
    """
    operators = [each for each in (operators_config(), operator) if each is not None]
    allowed = {*granted, *(capability for each in operators for capability in boundary.capabilities_of(each))}
    return boundary.Permissions(boundary.within_ceilings(config, operators, allowed), allowed, safe)


def operators_limits(config: DebateConfig, operator: DebateConfig | None = None) -> DebateConfig:
    """Return a configuration with only the operator's limits, unless they were raised for this debate."""
    operators = [each for each in (operators_config(), operator) if each is not None]
    return boundary.only_ceilings(config, operators)


def authorize_operator(config: DebateConfig) -> boundary.Permissions:
    """Return permissions for everything that the operator's own configuration uses.

    A limit in `MOOT_CONFIG` applies unless the configuration explicitly sets a higher number.
    """
    operators = [operators_config()]
    granted = {*boundary.capabilities_of(config), *boundary.raised_limit_capabilities(config, operators)}
    return boundary.Permissions(boundary.within_ceilings(config, operators, granted), granted)


def read_config(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> DebateConfig:
    """Read and validate the operator's configuration from all sources, or raise a `ConfigError`."""
    layers = read(file, options, warn)
    return make_config(merge_settings(*layers))


def requested_config(operator: DebateConfig, *requests: Mapping[str, object]) -> DebateConfig:
    """Return the configuration for a request, within the operator's limits.

    The requested settings override those of the operator. Without debaters in any layer, those of the
    protocol are used. Requests cannot change the settings of the operator's models and MCP servers.
    A later request overrides earlier ones, but a setting of `None` overrides nothing.

    Raises:
        ConfigError: The result is not valid.
    """
    base = operator.to_json()
    if "model" not in operator.model_fields_set:
        del base["model"]  # nobody chose the default
    if operator.debaters == make_config({"protocol": operator.protocol}).debaters:
        del base["debaters"]
    return boundary.within_ceilings(
        make_config(merge_settings(base, *(_allowed_settings(each, operator) for each in requests))),
        [operator],
        (),
    )


def operators_config() -> DebateConfig:
    """Return the cached configuration of `MOOT_CONFIG` and `MOOT_MODEL`, or raise a `ConfigError`."""
    return _operators_config(variable("MOOT_CONFIG"), variable("MOOT_MODEL"))


@lru_cache(maxsize=4)
def _operators_config(file: str | None, model: str | None) -> DebateConfig:
    return read_config()


def _allowed_settings(request: Mapping[str, object], operator: DebateConfig) -> JsonObject:
    """Return a request's settings without `None` and the settings of the operator's models and servers."""
    if not isinstance(request, Mapping):
        raise ConfigError(
            f"settings: {request!r:.60} is not a mapping: give keys and values, such as `{{turns: 4}}`"
        )
    settings = _without_none(request)
    if (
        isinstance(debaters := settings.get("debaters"), list | tuple)
        and len(debaters) > participants.MAX_REQUESTED_DEBATERS
    ):
        raise ConfigError(
            f"debaters: the request names {len(debaters)} debaters, but at most "
            f"{participants.MAX_REQUESTED_DEBATERS} are allowed"
        )
    panel = judge.get("panel") if isinstance(judge := settings.get("judge"), Mapping) else None
    if isinstance(panel, list | tuple) and len(panel) > participants.MAX_REQUESTED_JUDGES:
        raise ConfigError(
            f"judge.panel: the request has {len(panel)} judges, but at most "
            f"{participants.MAX_REQUESTED_JUDGES} are allowed"
        )
    for key, operator_settings in (("models", operator.models), ("mcp_servers", operator.mcp_servers)):
        if isinstance(requested_settings := settings.get(key), dict):
            settings[key] = {
                name: each for name, each in requested_settings.items() if name not in operator_settings
            }
    return settings


def _without_none(settings: Mapping[str, object]) -> JsonObject:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if value is not None and (key, value) != ("debaters", [])
    }

"""Processing of a configuration in five stages, from its sources to the debate's graph.

    read       the environment, a file and the command line, lowest priority first
    merge      merge the layers; later ones override earlier ones
    validate   make a `DebateConfig`; unknown keys and wrong types are errors
    authorize  apply the operator's ceilings and prices, and grant capabilities
    freeze     the JSON that the state keeps as `config`

The command line, the Python API, servers, MCP, the live page and batches use these stages. A request is
merged over the operator's configuration. A stored debate starts at `authorize`, with the capabilities granted
to it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

from moot.configuration.dialectic import from_dialectic, is_dialectic
from moot.judging.rubrics import load_rubric, rubric_for, rubric_names
from moot.memory.perspectives import check_summarizers
from moot.protocols import registry
from moot.state.config import DebateConfig
from moot.state.config.boundary import (
    Capability,
    CapabilityKind,
    Permissions,
    capabilities_of,
    exceeded,
    only_ceilings,
    within_ceilings,
)
from moot.state.config.config_files import load_config, make_config, merge_settings, nested_settings
from moot.state.config.participants import MAX_REQUESTED_DEBATERS, MAX_REQUESTED_JUDGES
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, InputError, file_error_reason
from moot.state.settings import variable

STDIN = Path("-")
"""Path that means "read the configuration from stdin"."""
LEFT_OUT = object()
"""Marker for a setting that is removed from the configuration."""

Warn = Callable[[str], object]
"""Function that receives a warning for each ignored configuration value."""
log: Warn = logging.getLogger(__name__).warning


def file_data(path: Path | None, warn: Warn = log) -> JsonObject:
    """Return the settings in a configuration file, including the text of its prompt files.

    Args:
        path: Value of `--config`; if `None`, `MOOT_CONFIG` is used.
        warn: Function called with a warning for every configuration value that is ignored.

    Raises:
        ConfigError: The file cannot be read, or it is a dialectic file with an invalid value.
    """
    chosen = path or variable("MOOT_CONFIG")
    if chosen is None:
        return {}
    data, folder = load_config(chosen), Path(chosen).parent
    if is_dialectic(data):
        converted = from_dialectic(data, folder)
        for warning in converted.warnings:
            warn(f"warning: {warning}")
        data = converted.data
        try:
            validate(data)
        except ConfigError as error:
            raise ConfigError(converted.original_keys(str(error))) from error
    elif isinstance(given := data.get("context"), str):
        data["context"] = str((folder / given).absolute())
    elif isinstance(given, list) and all(isinstance(each, str) for each in given):
        data["context"] = [str((folder / each).absolute()) for each in given]
    return with_files(data, folder, warn)


def read_text(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file without its byte order mark. The path `-` means stdin.

    Raises:
        InputError: The file cannot be read, or is not UTF-8 text.
    """
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of a file. The path `-` means stdin.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {what} from {str(path)!r}: {file_error_reason(error)}") from error


def read_rubric(named: str, folder: Path) -> str | JsonObject:
    """Return the text of a rubric file. Return the name of a built-in rubric unchanged.

    Raises:
        ConfigError: There is no such rubric.
    """
    if named in rubric_names():
        return named
    path = folder / named
    return load_rubric(path if path.exists() else Path(named)).model_dump(mode="json")


PROMPTS = (
    "debaters.*.system_prompt",
    "debaters.*.summary_prompt",
    "debaters.*.clarification_prompt",
    "debaters.*.perspective.prompt",
    "judge.summary.prompt",
    "memory.summary_prompt",
    "memory.perspectives.prompt",
)
"""Paths of all settings whose value may be the name of a prompt file. `*` matches every item of a list."""


def with_files(data: JsonObject, folder: Path, warn: Warn = log) -> JsonObject:
    """Replace file names in configuration data with the contents of the files.

    Raises:
        ConfigError: A rubric, persona or reference document cannot be read. A prompt that cannot be read is
            replaced by the built-in one, with a warning.
    """
    readers: dict[str, Callable[[str, object], object]] = {
        **dict.fromkeys(PROMPTS, partial(_prompt, folder, warn)),
        "debaters.*.persona": partial(_persona, folder),
        "debaters.*.anchors.*": partial(_anchor, folder),
    }
    filled: object = with_rubrics(data, folder)
    for place, read in readers.items():
        *_, key = keys = place.split(".")
        filled = _replace(filled, keys, partial(read, key))
    return cast(JsonObject, filled)


def with_rubrics(data: JsonObject, folder: Path) -> JsonObject:
    """Replace the names of rubric files in configuration data with the contents of the files.

    Raises:
        ConfigError: A rubric file cannot be read.
    """
    filled: object = data
    for place in ("judge.rubric", "judge.panel.*.rubric"):
        filled = _replace(filled, place.split("."), partial(_rubric, folder))
    return cast(JsonObject, filled)


def _rubric(folder: Path, value: object) -> object:
    return read_rubric(value, folder) if isinstance(value, str) else value


def _text(folder: Path, key: str, value: object) -> object:
    """Return the text of the file that an `@FILE` reference names. Return any other value unchanged."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    try:
        return read_text(folder / value[1:], key)
    except InputError as error:
        raise ConfigError(str(error)) from error


def _persona(folder: Path, key: str, value: object) -> object:
    """Replace file references (such as `@FILE`) in a persona with the text of the files."""
    if isinstance(value, Mapping):
        return {title: _text(folder, f"{key}.{title}", text) for title, text in value.items()}
    return _text(folder, key, value)


def _prompt(folder: Path, warn: Warn, key: str, value: object) -> object:
    try:
        return _text(folder, key, value)
    except ConfigError as error:
        warn(f"{error}: the built-in prompt is used")
        return LEFT_OUT


def _anchor(folder: Path, _: str, value: object) -> object:
    """Return a configured reference document, reading its text from a file if a file is named.

    Its default name is that of the file.
    """
    anchor = {"text": value} if isinstance(value, str) else value
    named = anchor.get("text") if isinstance(anchor, Mapping) else None
    text = _text(folder, "anchors", named)
    if not isinstance(anchor, Mapping) or text is named:
        return value
    return {"name": Path(str(named)[1:]).stem, **anchor, "text": text}


def _replace(data: object, keys: Sequence[str], read: Callable[[object], object]) -> object:
    """Replace the configuration value at the path `keys` with the result of `read`."""
    if not keys:
        return read(data)
    key, *rest = keys
    if key == "*":
        return [_replace(each, rest, read) for each in data] if isinstance(data, list) else data
    if not isinstance(data, Mapping) or key not in data:
        return data
    value = _replace(data[key], rest, read)
    if value is LEFT_OUT:
        return {name: each for name, each in data.items() if name != key}
    return {**data, key: value}


"""Function called with a warning for every configuration value that is ignored."""


def read(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> list[JsonObject]:
    """Return the settings of each configuration source, without merging or validating them.

    Options override the file, and the file overrides the environment.

    Args:
        file: Value of `--config`; if `None`, the file of `MOOT_CONFIG` is used, if any.
        options: Values by dotted key; `None` counts as missing.
        warn: Function called with a warning for every configuration value that is ignored.

    Raises:
        ConfigError: A file cannot be read.
    """
    model = variable("MOOT_MODEL")
    environment = {"model": model} if model else {}
    return [environment, file_data(file, warn), nested_settings(options or {})]


def merge(*layers: Mapping[str, Any]) -> JsonObject:
    """Merge layers of nested settings recursively, letting later layers override earlier ones."""
    return merge_settings(*layers)


def validate(data: Mapping[str, object]) -> DebateConfig:
    """Validate configuration data, and add the protocol's defaults.

    Raises:
        ConfigError: One line for each error, with the key as the user writes it.
    """
    return make_config(data, registry)


def check_names(config: DebateConfig) -> None:
    """Check that the protocol, the summarizers and the rubrics that a configuration names exist.

    Raises:
        ConfigError: A name is unknown, or the protocol cannot run the configuration.
    """
    protocol = registry.protocol_named(config.protocol)
    protocol.check(config)
    check_summarizers(config)
    for judge in config.judge.judges():
        rubric_for(judge, config, protocol.judge_spec.rubric)


def authorize(
    config: DebateConfig,
    operator: DebateConfig | None = None,
    granted: Collection[Capability] = (),
    safe: Collection[CapabilityKind | Capability] = (),
) -> Permissions:
    """Return the permissions of a debate, limited to what the operator allows.

    Args:
        config: Validated configuration of a request, an import or a stored state.
        operator: Configuration that the operator gave this run or server, in addition to `MOOT_CONFIG`.
        granted: Capabilities granted to this debate before.
        safe: Capabilities that need no permission because the program supplies them itself.
    """
    given = [each for each in (operators_config(), operator) if each is not None]
    allowed = {*granted, *(capability for each in given for capability in capabilities_of(each))}
    return Permissions(within_ceilings(config, given, allowed), allowed, safe)


def operators_limits(config: DebateConfig, operator: DebateConfig | None = None) -> DebateConfig:
    """Return a configuration that keeps only the limits that the operator sets for every debate.

    A limit that the operator raised for this debate is left out.
    """
    given = [each for each in (operators_config(), operator) if each is not None]
    return only_ceilings(config, given)


def authorize_operator(config: DebateConfig) -> Permissions:
    """Return permissions that allow everything in the operator's own configuration.

    A limit in `MOOT_CONFIG` applies unless the configuration explicitly sets a higher number.
    """
    operators = [operators_config()]
    granted = {*capabilities_of(config), *exceeded(config, operators)}
    return Permissions(within_ceilings(config, operators, granted), granted)


def freeze(config: DebateConfig) -> JsonObject:
    """Convert a configuration, including its defaults, to JSON for storage in the state."""
    return config.to_json()


def read_config(
    file: Path | None = None, options: Mapping[str, object] | None = None, warn: Warn = log
) -> DebateConfig:
    """Read and validate the operator's configuration from all of its sources.

    Raises:
        ConfigError: The configuration is not valid.
    """
    return validate(merge(*read(file, options, warn)))


def requested_config(operator: DebateConfig, *requests: Mapping[str, object]) -> DebateConfig:
    """Merge requested settings into the operator's configuration, and apply the operator's limits.

    Without debaters in any layer, those of the protocol are used. Requests cannot change the settings of the
    operator's models and MCP servers.

    Args:
        operator: Configuration with the defaults.
        requests: Layers; later ones override earlier ones, and `None` counts as missing.

    Raises:
        ConfigError: The result is not valid.
    """
    base = freeze(operator)
    if operator.debaters == validate({"protocol": operator.protocol}).debaters:
        del base["debaters"]
    return within_ceilings(
        validate(merge(base, *(_said(each, operator) for each in requests))), [operator], ()
    )


def operators_config() -> DebateConfig:
    """Return the operator's configuration, as set by `MOOT_CONFIG` and `MOOT_MODEL`.

    The result is cached.

    Raises:
        ConfigError: The file is not valid.
    """
    return _operators_config(variable("MOOT_CONFIG"), variable("MOOT_MODEL"))


@lru_cache(maxsize=4)
def _operators_config(file: str | None, model: str | None) -> DebateConfig:
    return read_config()


def _said(request: Mapping[str, object], operator: DebateConfig) -> JsonObject:
    """Return the settings of a request, except `None` values and settings reserved for the operator."""
    if not isinstance(request, Mapping):
        raise ConfigError(
            f"settings: {request!r:.60} is not a mapping: give keys and values, such as `{{turns: 4}}`"
        )
    said = _without_none(request)
    if isinstance(debaters := said.get("debaters"), list | tuple) and len(debaters) > MAX_REQUESTED_DEBATERS:
        raise ConfigError(
            f"debaters: the request names {len(debaters)} debaters, but at most {MAX_REQUESTED_DEBATERS} "
            "are allowed"
        )
    panel = judge.get("panel") if isinstance(judge := said.get("judge"), Mapping) else None
    if isinstance(panel, list | tuple) and len(panel) > MAX_REQUESTED_JUDGES:
        raise ConfigError(
            f"judge.panel: the request has {len(panel)} judges, but at most {MAX_REQUESTED_JUDGES} are "
            "allowed"
        )
    for key, own in (("models", operator.models), ("mcp_servers", operator.mcp_servers)):
        if isinstance(asked := said.get(key), dict):
            said[key] = {name: each for name, each in asked.items() if name not in own}
    return said


def _without_none(said: Mapping[str, object]) -> JsonObject:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in said.items()
        if value is not None
    }

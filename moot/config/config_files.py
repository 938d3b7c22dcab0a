"""Reader of configuration files in YAML, TOML or JSON."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from moot.config.debate_config import DebateConfig
from moot.config.section import duplicates
from moot.state.errors import ConfigError, file_error_reason, read_file

ENDINGS = {".yaml", ".yml", ".toml", ".json"}
MAX_YAML_NODES = 200_000
"""Maximum number of values in one YAML file after its aliases are expanded. A configuration has hundreds of
values, and the largest shipped recording has thousands."""


def load_config(path: str | Path) -> dict[str, Any]:
    """Read a configuration file and return its content without validating it.

    Raises:
        ConfigError: The file cannot be read, is malformed, has an unknown suffix, or holds no mapping.
    """
    path = Path(path)
    try:
        text = read_file(path, regular=True).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read configuration {str(path)!r}: {file_error_reason(error)}") from error
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(
            f"the name of the configuration file {str(path)!r} must end in .yaml, .toml or .json"
        )
    data = data_in(text, path, "configuration")
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {str(path)!r} must be a mapping of keys to values")
    return data


def data_in(text: str, path: Path, what: str) -> object:
    """Parse the text of a JSON, TOML or YAML file, by the file's suffix.

    Raises:
        ConfigError: The text is malformed, is nested too deeply, expands too far, or repeats a key.
    """
    try:
        match path.suffix.lower():
            case ".toml":
                data = tomllib.loads(text)
            case ".json":
                data = json.loads(text, object_pairs_hook=_pairs)
            case _:
                data = yaml.load(text, _StrictLoader)  # noqa: S506  # a SafeLoader
        repr(data)  # a hexadecimal number with thousands of digits has no text
        return data
    except (yaml.YAMLError, ValueError) as error:  # also of a number with thousands of digits
        raise ConfigError(f"{what} {str(path)!r} is malformed: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"the {what} file {str(path)!r} is nested too deeply") from error
    except ConfigError as error:
        raise ConfigError(f"{what} {str(path)!r}: {error}") from error


def make_config(data: Mapping[str, object]) -> DebateConfig:
    """Create a `DebateConfig` from configuration data, with the defaults of its protocol.

    Raises:
        ConfigError: One line for each error, with the key as the user writes it.
    """
    return DebateConfig.model_validate(dict(data))


def merge_settings(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested dictionaries. Later values win. Mappings merged with other values are a `ConfigError`."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping) and merged.get(key) is not None:
                if not isinstance(merged[key], Mapping):
                    raise ConfigError(f"{key}: {merged[key]!r} is not a mapping: give keys and values")
                value = _laid_over(merged[key], value)
            merged[key] = value
    return merged


def _laid_over(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        base_value = merged.get(key)
        if isinstance(base_value, Mapping) and isinstance(value, Mapping):
            value = _laid_over(base_value, value)
        merged[key] = value
    return merged


def nested_settings(settings: Mapping[str, object]) -> dict[str, Any]:
    """Convert settings with dotted keys to nested sections, skipping `None` values."""
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        if value is not None:
            nested = merge_settings(nested, {section: {name: value}} if name else {section: value})
    return nested


def with_settings(data: Mapping[str, Any], settings: Mapping[str, object]) -> dict[str, Any]:
    """Return configuration data changed by dotted keys that are not `None`.

    Raises:
        ConfigError: The section of a setting is not a mapping.
    """
    return merge_settings(data, nested_settings(settings))


_TRUTH = "tag:yaml.org,2002:bool"


class _StrictLoader(yaml.SafeLoader):
    """YAML loader that rejects duplicate keys, and aliases that expand to too many values.

    As in YAML 1.2, only `true` and `false` are truth values. `yes` and `no` are text, such as a stance.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML's own way to set them
        first: [each for each in resolvers if each[0] != _TRUTH]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _weight(node, {}) > MAX_YAML_NODES:
            raise ConfigError(
                f"the file has more than {MAX_YAML_NODES:,} values after its YAML aliases are expanded"
            )
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        _refuse_twice(keys)
        return super().construct_mapping(node, deep=deep)


_StrictLoader.add_implicit_resolver(_TRUTH, re.compile(r"(?i:true|false)\Z"), list("tTfF"))


def _weight(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values of a YAML node with all aliases expanded. A recursive node exceeds the maximum."""
    if id(node) not in known:
        known[id(node)] = MAX_YAML_NODES + 1
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for item in inner for part in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_weight(part, known) for part in parts)
    return known[id(node)]


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _refuse_twice([key for key, _ in pairs])
    return dict(pairs)


def _refuse_twice(keys: Sequence[str]) -> None:
    if twice := duplicates(keys):
        raise ConfigError(
            f"these keys occur more than once: {', '.join(map(repr, twice))}. Keep each key once"
        )

"""Reading configurations from YAML, TOML or JSON, with errors that say what to do."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from moot.state.config.debate_config import DebateConfig
from moot.state.config.section import repeats
from moot.state.errors import ConfigError

ENDINGS = {".yaml", ".yml", ".toml", ".json"}
MAX_YAML_NODES = 200_000
"""Values of one file; a configuration has some hundred, the largest recording that ships some thousand."""


def load_config(path: str | Path) -> dict[str, Any]:
    """Return the mapping that a configuration file holds, not yet validated.

    Raises:
        ConfigError: unreadable, malformed, of an unknown type, or not a mapping.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read configuration {str(path)!r}: {error}") from error
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"configuration {str(path)!r}: use a .yaml, .toml or .json file")
    data = data_in(text, path, "configuration")
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {str(path)!r} holds no mapping of keys to values")
    return data


def data_in(text: str, path: Path, what: str) -> object:
    """Return what the text of a file holds: JSON or TOML by its ending, YAML in any other.

    Raises:
        ConfigError: it is malformed, nested too deeply, its references multiply, or a key is given twice.
    """
    try:
        match path.suffix.lower():
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text, object_pairs_hook=_pairs)
            case _:
                return yaml.load(text, _StrictLoader)  # noqa: S506  # a SafeLoader
    except (yaml.YAMLError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"{what} {str(path)!r} is malformed: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{what} {str(path)!r} is nested too deeply") from error
    except ConfigError as error:
        raise ConfigError(f"{what} {str(path)!r}: {error}") from error


def make_config(data: Mapping[str, object]) -> DebateConfig:
    """Validate a mapping.

    Raises:
        ConfigError: one line for each thing wrong, with the key as the user writes it.
    """
    return DebateConfig.model_validate(dict(data))


def with_settings(data: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, Any]:
    """Return the data with settings by their dotted keys laid over it; one that is `None` was not given.

    Raises:
        ConfigError: a section that a setting belongs to is no mapping.
    """
    result = dict(data)
    for key, value in given.items():
        if value is None:
            continue
        section, _, name = key.partition(".")
        if name:
            present = result.get(section) or {}
            if not isinstance(present, Mapping):
                raise ConfigError(f"{section}: give keys and values, not {present!r}")
            value = {**present, name: value}
        result[section] = value
    return result


class _StrictLoader(yaml.SafeLoader):
    """Refuses bombs of references, and a key given twice, of which YAML would silently take the last."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _weight(node, {}) > MAX_YAML_NODES:
            raise ConfigError(f"more than {MAX_YAML_NODES:,} values, references counted as often as used")
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        _refuse_twice(keys)
        return super().construct_mapping(node, deep=deep)


def _weight(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the values of a node, what it refers to counted each time; one within itself is a bomb."""
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
    if twice := repeats(keys):
        raise ConfigError(f"given twice: {', '.join(map(repr, twice))}: leave one out")

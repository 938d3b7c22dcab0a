"""Reading configurations from YAML, TOML or JSON, with errors that say what to do."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from state.config import DebateConfig
from state.errors import ConfigError


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
    data = _parse(text, path)
    if not isinstance(data, dict):
        raise ConfigError(f"configuration {str(path)!r} holds no mapping of keys to values")
    return data


def _parse(text: str, path: Path) -> Any:
    try:
        match path.suffix.lower():
            case ".yaml" | ".yml":
                return yaml.safe_load(text)
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"configuration {str(path)!r} is malformed: {error}") from error
    raise ConfigError(f"configuration {str(path)!r}: use a .yaml, .toml or .json file")


def make_config(data: Mapping[str, Any]) -> DebateConfig:
    """Validate a mapping.

    Raises:
        ConfigError: one line for each thing wrong, with the key as the user writes it.
    """
    try:
        return DebateConfig.model_validate(dict(data))
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error))) from error


def _explain(error: ValidationError) -> Iterator[str]:
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            yield f"unknown key {key!r}{_suggestion(detail['loc'])}"
        else:
            message = detail["msg"].removeprefix("Value error, ")
            yield message if key in message or not key else f"{key}: {message}"


def _suggestion(loc: tuple[int | str, ...]) -> str:
    known = _known_keys(loc[:-1])
    close = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.0)
    return f": did you mean {'.'.join(map(str, (*loc[:-1], close[0])))!r}?" if close else ""


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = DebateConfig
    for part in loc:
        if isinstance(part, int) or part not in model.model_fields:
            continue
        model = next(_models_in(model.model_fields[part].annotation), model)
    return sorted(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)

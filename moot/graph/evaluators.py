"""Who evaluates: models from the command line, or a file in dialectic's form."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from moot.nodes.judging.evaluation import Evaluator
from moot.state import settings as environment
from moot.state.config import slug
from moot.state.config.config_files import load_config
from moot.state.config.model_settings import ModelSettings
from moot.state.errors import ConfigError

OPENROUTER = {"base_url": "https://openrouter.ai/api/v1", "api_key_env": "OPENROUTER_API_KEY"}
PROMPTS = {"systemPromptPath": "system_prompt", "userPromptPath": "user_prompt"}


def evaluators_named(models: Sequence[str], taken: Collection[str] = ()) -> tuple[Evaluator, ...]:
    """Return one evaluator for each model, none under an id that is taken; twice the same model is two."""
    seats: dict[str, Evaluator] = {}
    for model in models:
        name = slug(model) or "evaluator"
        ids = chain([name], (f"{name}-{number}" for number in count(2)))
        key = next(key for key in ids if key not in seats and key not in taken)
        seats[key] = Evaluator(key, model, model)
    return tuple(seats.values())


def read_evaluators(path: Path) -> tuple[Evaluator, ...]:
    """Read evaluators from a file: `agents` (or `evaluators`), `{id, name, model, provider, …}` each.

    Known are `enabled` (false leaves one out), `systemPromptPath` and `userPromptPath` (relative to the
    file), `timeout` (milliseconds) and `provider` (`openai` or `openrouter`); `OPENAI_BASE_URL` wins over the
    provider's own address.

    Raises:
        ConfigError: it cannot be read, or names nobody; the message names the key.
    """
    data = load_config(path)
    rows = data.get("agents", data.get("evaluators"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{str(path)!r}: give `agents`, a list of {{id, name, model, provider}}")
    enabled = [row for row in rows if row.get("enabled", True) is not False]
    if not enabled:
        raise ConfigError(f"{str(path)!r}: no evaluator is enabled")
    seats = tuple(_seat(row, number, path) for number, row in enumerate(enabled, start=1))
    ids = [seat.id for seat in seats]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{str(path)!r}: duplicate evaluator ids in {ids}")
    return seats


def _seat(row: Mapping[str, Any], number: int, path: Path) -> Evaluator:
    model = row.get("model")
    if not isinstance(model, str) or not model.strip():
        raise ConfigError(f"{str(path)!r}: agents[{number - 1}].model: give the model's name")
    prompts = {key: _prompt(row[name], name, path) for name, key in PROMPTS.items() if row.get(name)}
    key = str(row.get("id") or f"evaluator-{number}")
    return Evaluator(key, model, str(row.get("name") or key), settings=_settings(row, path), **prompts)


def _prompt(named: Any, key: str, path: Path) -> str:
    try:
        return (path.parent / str(named)).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: cannot read {str(named)!r}: {error}") from error


def _settings(row: Mapping[str, Any], path: Path) -> ModelSettings:
    given: dict[str, Any] = {}
    provider = str(row.get("provider") or "openai").lower()
    if provider == "openrouter" and environment.base_url() is None:
        given |= OPENROUTER
    if isinstance(row.get("timeout"), int | float):
        given["timeout_s"] = row["timeout"] / 1000
    try:
        return ModelSettings(**given)
    except ValidationError as error:
        raise ConfigError(f"{str(path)!r}: timeout {row['timeout']!r}: give milliseconds above 0") from error

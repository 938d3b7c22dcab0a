"""Who evaluates: models from the command line, or a file in dialectic's form."""

from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from moot.graph.importing.dialectic import PROVIDERS
from moot.nodes.judging.evaluation import Evaluator
from moot.state import settings as environment
from moot.state.config import slug
from moot.state.config.config_files import load_config
from moot.state.config.debaters import free_id
from moot.state.config.model_settings import ModelSettings
from moot.state.errors import ConfigError


class _Agent(BaseModel, coerce_numbers_to_str=True):
    """An evaluator as dialectic's file has it."""

    model: str = Field(pattern=r"\S")
    """The model's name."""
    id: str | None = None
    name: str | None = None
    provider: str | None = None
    timeout: float | None = Field(None, gt=0)
    """Milliseconds."""
    systemPromptPath: str | None = None
    userPromptPath: str | None = None


def evaluators_named(models: Sequence[str], taken: Collection[str] = ()) -> tuple[Evaluator, ...]:
    """Return one evaluator for each model, none under an id that is taken; twice the same model is two."""
    seats: dict[str, Evaluator] = {}
    for model in models:
        key = free_id(slug(model) or "evaluator", {*seats, *taken})
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
    seats = tuple(_seat(row, number, path) for number, row in enumerate(enabled))
    ids = [seat.id for seat in seats]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{str(path)!r}: duplicate evaluator ids in {ids}")
    return seats


def _seat(row: object, number: int, path: Path) -> Evaluator:
    try:
        agent = _Agent.model_validate(row)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        wanted = {"model": "give the model's name", "timeout": "give milliseconds above 0"}
        told = wanted.get(key, error.errors()[0]["msg"])
        raise ConfigError(f"{str(path)!r}: agents[{number}].{key}: {told}") from error
    own_server = environment.variable("OPENAI_BASE_URL") is not None
    reached = {} if own_server else PROVIDERS.get((agent.provider or "").lower(), {})
    timeout = {"timeout_s": agent.timeout / 1000} if agent.timeout else {}
    id_ = agent.id or f"evaluator-{number + 1}"
    return Evaluator(
        id_,
        agent.model,
        agent.name or id_,
        system_prompt=_prompt(agent.systemPromptPath, "systemPromptPath", path),
        user_prompt=_prompt(agent.userPromptPath, "userPromptPath", path),
        settings=ModelSettings.model_validate({**reached, **timeout}),
    )


def _prompt(named: str | None, key: str, path: Path) -> str:
    try:
        return (path.parent / named).read_text(encoding="utf-8") if named else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: cannot read {named!r}: {error}") from error

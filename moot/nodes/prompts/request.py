"""A request to a model: whose model answers, what it is shown, and the form of its answer.

Every `ModelCall` is made here, where calls and configuration meet. The schema of a structured answer says
what may stand in each field, while reading it stays lenient: whoever reads an answer drops or counts a wrong
value, or brings it within its bounds, and the rest of the answer counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, Field, create_model

from moot.nodes.calls import Hints, ModelCall, Purpose, SpeakAs, View
from moot.nodes.text.tokens import TokenCounter, counter, encoding_for
from moot.state.config import DebateConfig, DebaterConfig, JudgeConfig, JudgeSeat
from moot.state.config.memory_config import BlackboardConfig, MemoryConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import JsonObject

Model = TypeVar("Model", bound=BaseModel)

MOST_IDS = 250
"""Ids that are enumerated; OpenAI's strict mode takes 1,000 values in a schema."""
_MESSAGE_ID = r"^m[0-9]{6,9}$"


@dataclass(frozen=True)
class Voice:
    """Whose model answers, and how."""

    model: str
    temperature: float | None
    """`None` leaves it to the provider."""
    fallbacks: tuple[str, ...]
    seed: int | None
    reply: int
    """Tokens reserved for an answer."""


class NamesModel(Protocol):
    """A section of the configuration that names whom to ask."""

    @property
    def model(self) -> str | None: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102


def voice_of(config: DebateConfig, who: DebaterConfig | JudgeSeat | MemoryConfig | NamesModel) -> Voice:
    """Return whose model speaks for a part of the configuration; what that leaves open is the debate's."""
    reply = config.memory.budget.reply
    common = Voice(config.model, config.temperature, config.fallbacks, config.seed, reply)
    if isinstance(who, DebaterConfig):
        temperature = common.temperature if who.temperature is None else who.temperature
        fallbacks = common.fallbacks if who.fallbacks is None else who.fallbacks
        return replace(common, model=config.model_of(who), temperature=temperature, fallbacks=fallbacks)
    if isinstance(who, MemoryConfig):
        temperature = common.temperature if who.summary_temperature is None else who.summary_temperature
        return replace(common, model=who.summary_model or common.model, temperature=temperature)
    if isinstance(who, JudgeSeat):
        panel = voice_of(config, config.judge)
        temperature = panel.temperature if who.temperature is None else who.temperature
        return replace(panel, model=who.model or panel.model, temperature=temperature)
    reply = who.reply if isinstance(who, JudgeConfig | BlackboardConfig) else reply
    return replace(common, model=who.model or common.model, temperature=who.temperature, reply=reply)


def counter_of(voice: Voice, config: DebateConfig) -> TokenCounter:
    """Return what counts a text exactly as a voice's model does."""
    return counter(config.settings(voice.model).encoding or encoding_for(voice.model))


def make_call(
    voice: Voice,
    purpose: Purpose,
    view: View,
    *,
    schema: type[BaseModel] | None = None,
    reply: int | None = None,
    tools: tuple[JsonObject, ...] = (),
    speak_as: SpeakAs | None = None,
    floor: int = 0,
    makes: MemoryKind | Literal[""] = "",
    hints: Hints,
) -> ModelCall:
    """Return the call that shows a view to somebody's model."""
    return ModelCall(
        purpose=purpose,
        model=voice.model,
        messages=view.messages,
        max_tokens=voice.reply if reply is None else reply,
        temperature=voice.temperature,
        seed=voice.seed,
        fallbacks=voice.fallbacks,
        schema=schema,
        tools=tools,
        prompt_tokens=view.total_tokens,
        speak_as=speak_as,
        floor=floor,
        hints={"phase": purpose, **hints},
        view=view,
        makes=makes,
    )


def one_of(values: Iterable[str]) -> Any:
    """Return the type of a text that is one of these; another is dropped by itself alone."""
    return Annotated[str, Field(json_schema_extra={"enum": list(values) or [""]})]


def citation_type(ids: Sequence[str]) -> Any:
    """Return the type of a list of message ids: of these; of their form alone where they are many or none."""
    if 0 < len(ids) <= MOST_IDS:
        return list[one_of(ids)]  # type: ignore[misc]  # made for the debate
    return list[Annotated[str, Field(json_schema_extra={"pattern": _MESSAGE_ID})]]


def between(low: float, high: float, number: type[float] = float) -> Any:
    """Return the type of a number within bounds; another is brought within them by whoever reads it."""
    return Annotated[number, Field(json_schema_extra={"minimum": low, "maximum": high})]


def many(item: Any, least: int, most: int) -> Any:
    """Return the type of a list of so many items; what is beyond that is not read."""
    return Annotated[list[item], Field(json_schema_extra={"minItems": least, "maxItems": most})]


def narrow(model: type[Model], types: Mapping[str, Any], name: str = "") -> type[Model]:
    """Return a schema with other types of some fields; their descriptions and defaults stay."""
    fields: dict[str, Any] = {}
    for key, kind in types.items():
        known = model.model_fields[key]
        default = ... if known.is_required() else known.default
        fields[key] = (Annotated[kind, Field(description=known.description)], default)
    return create_model(name or model.__name__, __base__=model, __doc__=model.__doc__, **fields)

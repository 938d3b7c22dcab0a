"""A request to a model: whose model answers, what it is shown, and the form of its answer.

Every `ModelCall` is made here, where calls and configuration meet.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pydantic import BaseModel

from moot.nodes.calls import Hints, ModelCall, Purpose, SpeakAs, View
from moot.nodes.text.tokens import TokenCounter, counter, encoding_for
from moot.state.config import DebateConfig, DebaterConfig, JudgeConfig, JudgeSeat
from moot.state.config.budgets import MemoryConfig
from moot.state.config.personas import BlackboardConfig
from moot.state.conversation import MemoryKind
from moot.state.entries import JsonObject


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

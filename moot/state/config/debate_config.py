"""The configuration of one debate: validated on entry, frozen into the state, compared by fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from moot.state.at_sight import at_sight
from moot.state.config.config_mistakes import explain, unknown_key
from moot.state.config.debaters import (
    HUMAN,
    ClarificationsConfig,
    DebaterConfig,
    PlannedInterjection,
    may_speak,
)
from moot.state.config.judge_config import JudgeConfig
from moot.state.config.memory_config import BlackboardConfig, MemoryConfig
from moot.state.config.model_settings import OFFLINE, ModelSettings, check_model_name
from moot.state.config.section import Section, protocol_sections, repeats, terms_of, terms_table
from moot.state.errors import ConfigError, InputError

if TYPE_CHECKING:
    from moot.state.conversation import StateValues


class LimitsConfig(Section):
    """Where a debate ends in good order, with a verdict on what was said.

    Limits are looked at before each step. The step that reaches one is finished, and the verdict is then paid
    on top: with small limits, judging can cost more than the limit itself. `judge: {enabled: false}` ends
    without.
    """

    total_tokens: int | None = Field(None, gt=0)
    """Prompt and completion tokens of all calls. Looked at before each step: the step that reaches it is
    finished, and the verdict comes on top."""
    cost_usd: float | None = Field(None, gt=0)
    """Cost of all calls; every model that may be called needs a price, configured or listed. The step that
    reaches it is finished, and the verdict comes on top."""
    wall_clock_s: float | None = Field(None, gt=0)
    """Seconds of running, pauses not counted. The step that reaches it is finished, and the verdict comes on
    top."""
    refusals: Literal["pass", "stop"] = "pass"
    """What a debater's refusal to speak does: its turn passes, as the transcript says, or the run
    stops, until `--reconfigure` gives another model or lets it pass."""
    concurrency: int = Field(8, ge=1, le=256)
    """Model calls at the same time."""
    retry_for: float = Field(0, ge=0)
    """Seconds for which models that are overloaded or out of reach are asked on, once the attempts of a call
    and its fallbacks are used up; 28800 lets a run wait through the night."""


class DebateConfig(Section):
    """All that decides a debate. Everything but the topic has a default.

    Beside these keys stand the sections that protocols bring, which `ProtocolSettings.of` returns: its own
    protocol's, and those of others that are set to anything.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    topic: str | None = None
    """What is argued; the topic given with the run wins."""
    protocol: str = "round-robin"
    """Rules of the debate, a name in the table of protocols."""
    turns: int | None = Field(None, ge=1)
    """Utterances in all, for protocols that count turns; `None` means `rounds` for each debater, else 6."""
    rounds: int | None = Field(None, ge=1)
    """Rounds, for protocols that count rounds."""
    model: str = OFFLINE
    """Model of everybody who names none."""
    fallbacks: tuple[str, ...] = ()
    """Models tried in order when a model fails."""
    temperature: float | None = Field(0.7, ge=0, le=2)
    """Sampling temperature of debaters."""
    seed: int | None = None
    """Sent with every call to models that take one; the offline model is deterministic in it."""
    language: str = ""
    """Language of the debate, such as `German`; empty means the topic's."""
    debaters: tuple[DebaterConfig, ...] = ()
    """Who speaks, in speaking order; where the key is missing, the protocol's usual ones."""
    order: tuple[str, ...] = ()
    """Ids of debaters in the order of their turns, over and over, for `round-robin`; some may come again.
    Empty means once each, in the order of `debaters`."""
    agreement_intensity: float | None = Field(None, ge=0, le=1)
    """How readily debaters agree, from 0, not at all, to 1, wherever they can; `None` says nothing of it."""
    blackboard: BlackboardConfig = Field(default_factory=BlackboardConfig)
    """Who notes what was said."""
    memory: MemoryConfig = Field(default_factory=MemoryConfig)
    """Budgets and summaries."""
    judge: JudgeConfig = Field(default_factory=JudgeConfig)
    """The verdict."""
    clarifications: ClarificationsConfig = Field(default_factory=ClarificationsConfig)
    """What debaters may ask before the first round."""
    interjections: tuple[PlannedInterjection, ...] = ()
    """What is said from the floor at set moments, in the order of `after`."""
    context: str | None = None
    """A folder that tools may search and read, or a text file that everybody is shown."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """Where it stops."""
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    """Settings per model name."""

    _model_name = field_validator("model")(check_model_name)

    @model_validator(mode="before")
    @classmethod
    def _fill_debaters(cls, data: object) -> object:
        if not isinstance(data, dict) or "debaters" in data:
            return data
        return {**data, "debaters": terms_of(data.get("protocol", "round-robin")).debaters}

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("the topic is empty: say what is to be argued")
        return value

    @field_validator("debaters")
    @classmethod
    def _check_debaters(cls, value: tuple[DebaterConfig, ...]) -> tuple[DebaterConfig, ...]:
        if not value:
            raise ValueError("0 debaters: give at least one, or leave the key out for two")
        if twice := repeats([debater.id for debater in value]):
            raise ValueError(f"duplicate debater ids {twice}: give each debater an id of its own")
        return value

    @model_validator(mode="after")
    def _check_people(self) -> DebateConfig:
        if HUMAN in self.model_names():
            raise ValueError(f"only a debater's model can be {HUMAN!r}: everything else needs a real one")
        if twice := repeats([debater.name for debater in self.debaters if debater.is_human]):
            raise ValueError(f"several people are called {', '.join(twice)}: give each a name of their own")
        return self

    @model_validator(mode="after")
    def _check_order(self) -> DebateConfig:
        if self.order and not terms_of(self.protocol).by_order:
            by_order = " or ".join(name for name, terms in terms_table().PROTOCOLS.items() if terms.by_order)
            raise ValueError(f"only {by_order} goes by `order`, not {self.protocol}: leave it out")
        differing = sorted(set(self.order) ^ set(self.names()))
        if self.order and differing:
            raise ValueError(f"order: name every debater and nobody else; this differs in {differing}")
        return self

    @field_validator("interjections")
    @classmethod
    def _check_interjections(cls, value: tuple[PlannedInterjection, ...]) -> tuple[PlannedInterjection, ...]:
        nobody = sorted({each.speaker for each in value if not may_speak(each.speaker)})
        if nobody:
            raise ValueError(f"nobody can speak as {nobody[0]!r}: use a-z, 0-9, - and _")
        return tuple(sorted(value, key=lambda each: each.after))

    @model_validator(mode="after")
    def _check_context(self) -> DebateConfig:
        budget = self.memory.budget
        for name in self.model_names():
            size = self.settings(name).context_size
            if size is not None and budget.total + budget.reply > size:
                raise ValueError(
                    f"memory.budget.total + reply is {budget.total + budget.reply} tokens, more than the "
                    f"context_size {size} of model {name!r}: lower memory.budget.total"
                )
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _explain_mistakes(
        cls, data: object, validate: ModelWrapValidatorHandler[DebateConfig]
    ) -> DebateConfig:
        """Say what is wrong as Moot does, wherever a configuration is made."""
        mistakes: list[str] = []
        if isinstance(data, dict):
            data, mistakes = _with_sections(data, cls)
        try:
            config = validate(data)
        except ValidationError as error:
            raise ConfigError("\n".join([explain(error, cls), *mistakes])) from error
        if mistakes:
            raise ConfigError("\n".join(mistakes))
        return config

    @field_serializer("models")
    def _only_what_was_set(self, models: dict[str, ModelSettings]) -> dict[str, Any]:
        """Keep what is known of a model apart from what was configured, also after a round trip."""
        return {
            name: settings.model_dump(mode="json", exclude_unset=True) for name, settings in models.items()
        }

    def debater(self, debater_id: str) -> DebaterConfig:
        """Return the debater with this id; `KeyError` where there is none."""
        for debater in self.debaters:
            if debater.id == debater_id:
                return debater
        raise KeyError(debater_id)

    def has_person(self, debater_id: str) -> bool:
        """Return whether this is a debater whose turns a person takes."""
        return any(debater.id == debater_id and debater.is_human for debater in self.debaters)

    @at_sight()
    def names(self) -> Mapping[str, str]:
        """Return display names by debater id."""
        return {debater.id: debater.name for debater in self.debaters}

    def model_of(self, debater: DebaterConfig) -> str:
        """Return the model that a debater uses; for a person's the debate's, which then summarises for it."""
        return self.model if debater.is_human else debater.model or self.model

    @at_sight()
    def model_names(self) -> Sequence[str]:
        """Return every model that the debate may call, sorted."""
        named = {self.model_of(d) for d in self.debaters} | {self.judge.model or self.model}
        named |= {seat.model for seat in self.judge.panel if seat.model}
        named |= set(self.fallbacks) | {m for d in self.debaters for m in d.fallbacks or ()}
        others = [self.memory.summary_model, self.blackboard.model]
        for settings in (self.model_extra or {}).values():
            others += settings.model_names()
        return sorted(named | {model for model in others if model})

    def settings(self, model: str) -> ModelSettings:
        """Return the settings of a model, defaults where none are configured."""
        return self.models.get(model) or ModelSettings()

    def turn_order(self) -> tuple[str, ...]:
        """Return the ids of debaters in the order of their turns, one round of them."""
        return self.order or tuple(self.names())

    def total_turns(self) -> int:
        """Return how many utterances a turn-counting protocol gives."""
        return self.turns or (self.rounds or 0) * len(self.turn_order()) or 6

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as JSON types, defaults included, without the topic."""
        return self.model_dump(mode="json", exclude={"topic"})

    def fingerprint(self) -> str:
        """Return 16 hex digits that change when anything in the configuration but the topic does."""
        canonical = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _with_sections(data: dict[str, Any], config: type[BaseModel]) -> tuple[dict[str, Any], list[str]]:
    """Return what was given with the sections of protocols validated, and what is wrong with them."""
    own = terms_of(data.get("protocol", "round-robin")).settings
    known = protocol_sections()
    if data.keys() - config.model_fields.keys() - known.keys():
        terms_table().load_plugged()
        known = protocol_sections()
    kept = {key: value for key, value in data.items() if key in config.model_fields}
    mistakes: list[str] = []
    for key, settings in known.items():
        try:
            section = settings.model_validate(data.get(key, {}))
        except ValidationError as error:
            mistakes.append(explain(error, settings, under=key))
            continue
        if settings is own or section != settings():
            kept[key] = section
    keys = [*config.model_fields, *known]
    return kept, [*mistakes, *(unknown_key(key, keys) for key in data if key not in keys)]


KEPT = 32
"""Configurations kept parsed: one a debate that this process works on, and a few of its past."""


@lru_cache(maxsize=KEPT)
def _parse(canonical: str) -> DebateConfig:
    return DebateConfig.model_validate_json(canonical)


@at_sight(KEPT)
def _parse_cached(*stored: object) -> DebateConfig:
    keys = len(stored) // 2
    return _parse(json.dumps(dict(zip(stored[:keys], stored[keys:], strict=True)), sort_keys=True))


def frozen_config(state: StateValues) -> DebateConfig:
    """Return the state's configuration, validated once a process.

    The very same values as before are known at sight, for none is ever changed in place: nodes ask some
    thirty times a turn, and to write the configuration out, by which an equal one is known, takes 0.3 ms.

    Raises:
        InputError: the process that began the debate died before the state had one.
    """
    stored = state.get("config")
    if not stored:
        raise InputError("this debate never began, nothing of it was paid: delete it and start it again")
    return _parse_cached(*stored.keys(), *stored.values())


def differing_keys(one: object, other: object, prefix: str = "") -> list[str]:
    """Return the dotted keys in which two JSON values differ, sorted."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        nested = [differing_keys(one.get(key), other.get(key), f"{prefix}{key}.") for key in keys]
        return [key for found in nested for key in found]
    return [] if one == other else [prefix.rstrip(".")]

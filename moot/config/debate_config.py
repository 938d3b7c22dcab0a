"""Configuration of one debate: validated at the start, frozen into the state, compared by fingerprint."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import pydantic

from moot.config import model_settings, participants, section
from moot.config.memory_config import BlackboardConfig, MemoryConfig
from moot.state.entries import memoize_by_identity
from moot.state.errors import ConfigError, InputError
from moot.state.verdict import UNDECIDED

if TYPE_CHECKING:
    from moot.state.conversation import StateValues


DEFAULT_SETTINGS = model_settings.ModelSettings()
"""Settings used for a model that has no configured settings."""
OPTION_CHARS = 200
"""Maximum length of an option, in characters."""


class LimitsConfig(section.Section):
    """Limits on a debate's tokens, cost and running time. A debate that reaches a limit ends with a verdict.

    Limits are checked before each step. The step that reaches a limit is finished, and the verdict is made
    afterwards: with small limits it can cost more than the limit itself. `judge: {enabled: false}` omits it.
    """

    total_tokens: int | None = pydantic.Field(default=None, gt=0)
    """Maximum number of tokens in all prompts and completions of a debate. `None`: no limit. The current
    step is finished when the limit is reached, and the verdict costs extra."""
    cost_usd: float | None = pydantic.Field(default=None, gt=0)
    """Maximum cost of all model calls in a debate, in US dollars. `None`: no limit. Every model needs a
    price, configured or listed. The current step is finished when the limit is reached, and the verdict costs
    extra."""
    wall_clock_s: float | None = pydantic.Field(default=None, gt=0)
    """Maximum running time of a debate in seconds, not counting pauses. `None`: no limit. The current step is
    finished when the limit is reached, and the verdict takes extra time."""
    refusals: Literal["pass", "stop"] = "pass"
    """Action to take if a debater's model refuses to reply. `pass` skips the turn and records this in the
    transcript. `stop` ends the run, which can be resumed with another model."""
    concurrency: int = pydantic.Field(default=8, ge=1, le=256)
    """Maximum number of model calls that one debate makes at the same time. Lower it for a local server or a
    small rate limit. Raise it for councils with many debaters."""
    retry_for: float = pydantic.Field(default=0, ge=0)
    """Number of seconds to keep retrying a call after all models have failed, including the fallback models.
    Only temporary failures are retried. Set it for unattended runs: 28800 retries for eight hours."""


class DebateConfig(section.Section):
    """Complete configuration of a debate. Every field except the topic has a default.

    Sections of protocols are additional keys: those of the debate's own protocol, and any others that are
    set. `ProtocolSettings.of` returns them.
    """

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)

    topic: str | None = None
    """Topic that the debaters discuss. `@FILE` reads it from a file. A topic passed to the run
    overrides it."""
    protocol: str = "round-robin"
    """Name of the protocol, which sets the rules of the debate. `moot run --help` lists the protocols."""
    turns: int | None = pydantic.Field(default=None, ge=1)
    """Total number of turns of all debaters, if the protocol counts turns. `None`: `rounds` for each debater,
    or 6 in total if `rounds` is not set."""
    rounds: int | None = pydantic.Field(default=None, ge=1)
    """Number of rounds in the debate, if the protocol counts rounds. `None`: the protocol's default."""
    model: str = model_settings.OFFLINE
    """Default model for participants without a model of their own."""
    fallbacks: tuple[str, ...] = ()
    """Fallback models, tried in this order if the configured model fails. Models of another provider also
    help during an outage."""
    temperature: float | None = pydantic.Field(default=0.7, ge=0, le=2)
    """Sampling temperature of the debaters' models. `None`: the provider's default."""
    seed: int | None = None
    """Random seed for all calls to models that accept a seed. Set it to make runs as repeatable as the
    provider allows. The offline model repeats them exactly."""
    language: str = ""
    """Language in which the debaters write, such as `German`. Empty: the language of the topic."""
    debaters: tuple[participants.DebaterConfig, ...] = ()
    """Debaters that take part, in speaking order. If omitted, the protocol's default debaters take part."""
    order: tuple[str, ...] = ()
    """Debater ids in the order in which they speak in a round. The `round-robin` protocol uses this order. A
    repeated id gives a debater more turns. Empty: each debater once, in the order of `debaters`."""
    agreement_intensity: float | None = pydantic.Field(default=None, ge=0, le=1)
    """Debaters' readiness to agree, from 0 (never) to 1 (wherever possible). `None`: no instruction. Raise
    it for a consensus. Lower it if debaters give in too soon."""
    options: tuple[str, ...] = ()
    """Options from which the decision is chosen, such as `[merge, hold]`. The decision is one of the options
    or `undecided`. Empty: the decision is a sentence."""
    openings: Literal["independent", "sequential"] = "independent"
    """How the debaters write their first messages. Applies to protocols that take turns. `independent`: at
    the same time, so that nobody sees another's. `sequential`: one after the other. Debates stored without
    this setting are sequential."""
    stop: tuple[Literal["agreement", "stable"], ...] = ()
    """Conditions that end the debate early. `agreement`: all debaters give the same answer. `stable`: no
    debater changed its answer in its last two messages. Each message then ends with an answer line. Answers
    that cannot be compared never end a debate."""
    decide: Literal["judge", "vote", "weighted-vote"] | None = None
    """How the debate's decision is reached. `judge`: by the judge. `vote`: each debater gives a final answer
    alone, and the most frequent one wins. `weighted-vote`: answers count by their confidence. The judge
    decides ties. `None`: the protocol's default, a vote in `vote` and `escalate`, else the judge."""
    calibration: dict[str, tuple[tuple[float, float], ...]] = pydantic.Field(default_factory=dict)
    """Measured accuracy of each model's stated confidence, keyed by model name. Each value is a list of
    `[stated, measured]` pairs from 0 to 100. `weighted-vote` interpolates between the pairs. Evaluations
    measure them."""
    revisit: date | None = None
    """Date on which the decision should be reviewed, such as 2027-03-01. `moot list` reminds of it."""
    blackboard: BlackboardConfig = pydantic.Field(default_factory=BlackboardConfig)
    """Settings for claim extraction, reflections and summaries of side discussions."""
    memory: MemoryConfig = pydantic.Field(default_factory=MemoryConfig)
    """Settings for the debate's memory, such as token budgets, summaries and retrieval."""
    judge: participants.JudgeConfig = pydantic.Field(default_factory=participants.JudgeConfig)
    """Settings for the judge or the panel of judges."""
    clarifications: participants.ClarificationsConfig = pydantic.Field(
        default_factory=participants.ClarificationsConfig
    )
    """Settings for the questions that debaters may ask a person before the first round."""
    interjections: tuple[participants.PlannedInterjection, ...] = ()
    """Prepared messages that are inserted into the debate after a given number of turns."""
    context: str | tuple[str, ...] | None = None
    """Path of a folder that tools may search, or of a text file that all participants see. Tools may also
    read the files in the folder. A list holds several files and at most one folder."""
    limits: LimitsConfig = pydantic.Field(default_factory=LimitsConfig)
    """Limits on the debate's tokens, cost, running time and concurrent model calls."""
    models: dict[str, model_settings.ModelSettings] = pydantic.Field(default_factory=dict)
    """Settings for individual models, keyed by model name."""
    mcp_servers: dict[str, model_settings.McpServerConfig] = pydantic.Field(default_factory=dict)
    """MCP servers whose tools debaters may call, keyed by a short name. A debater calls the tool `search` of
    the server `docs` if its `tools` contain `docs__search`."""

    _fence: str = pydantic.PrivateAttr(default="")

    _model_name = pydantic.field_validator("model")(model_settings.check_model_name)

    @pydantic.field_validator("topic")
    @classmethod
    def _check_topic(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("the topic is empty: give a topic")
        return value

    @pydantic.field_validator("options")
    @classmethod
    def _check_options(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        options = tuple(option.strip() for option in value)
        if len(options) == 1:
            raise ValueError(f"{options[0]!r} is the only option: give two or more options, or none")
        if wrong := [option for option in options if not option or len(option) > OPTION_CHARS]:
            raise ValueError(
                f"option {wrong[0][:OPTION_CHARS]!r} is empty or too long: use 1 to {OPTION_CHARS} characters"
            )
        if twice := section.duplicates([option.casefold() for option in options]):
            raise ValueError(f"duplicate options {twice}: give each option once")
        if UNDECIDED in map(str.casefold, options):
            raise ValueError(
                f"{UNDECIDED!r} is always a possible decision and cannot be listed as an option: leave it out"
            )
        return options

    @pydantic.field_validator("stop", mode="before")
    @classmethod
    def _one_condition(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @pydantic.field_validator("calibration")
    @classmethod
    def _check_calibration(
        cls, value: dict[str, tuple[tuple[float, float], ...]]
    ) -> dict[str, tuple[tuple[float, float], ...]]:
        for model, pairs in value.items():
            confidences = [pair[0] for pair in pairs]
            if not pairs or confidences != sorted(set(confidences)):
                raise ValueError(
                    f"{model}: give one or more [stated, measured] pairs, in ascending order of stated "
                    "confidence, and each stated confidence only once"
                )
            if not all(0 <= number <= 100 for pair in pairs for number in pair):
                raise ValueError(
                    f"{model}: every confidence in the [stated, measured] pairs must be between 0 and 100"
                )
        return value

    @pydantic.field_validator("mcp_servers")
    @classmethod
    def _check_servers(
        cls, value: dict[str, model_settings.McpServerConfig]
    ) -> dict[str, model_settings.McpServerConfig]:
        if wrong := [name for name in value if not model_settings.SERVER_NAME.fullmatch(name)]:
            raise ValueError(f"{wrong[0]!r} is not a valid name: use a-z, 0-9 and -, at most 20 characters")
        return value

    @pydantic.field_validator("debaters")
    @classmethod
    def _check_debaters(
        cls, value: tuple[participants.DebaterConfig, ...]
    ) -> tuple[participants.DebaterConfig, ...]:
        if not value:
            raise ValueError(
                "the list has no debaters: give at least one, or omit `debaters` to use the "
                "protocol's default debaters"
            )
        if twice := section.duplicates([debater.id for debater in value]):
            raise ValueError(f"duplicate debater ids {twice}: give each debater a different id")
        folded = [unicodedata.normalize("NFKC", debater.name).casefold() for debater in value]
        if twice := section.duplicates(folded):
            raise ValueError(f"several debaters are called {twice[0]!r}: give each a different name")
        return value

    @pydantic.model_validator(mode="after")
    def _check_people(self) -> DebateConfig:
        if participants.HUMAN in self.model_names():
            raise ValueError(
                f"the model {participants.HUMAN!r} stands for a person and is allowed only for debaters: use "
                "the name of a language model"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _check_order(self) -> DebateConfig:
        protocols = section.default_protocols()
        rules = protocols.find_protocol(self.protocol)
        if self.order and rules and not rules.uses_order:
            uses_order = " or ".join(name for name, spec in protocols.PROTOCOLS.items() if spec.uses_order)
            raise ValueError(
                f"protocol {self.protocol!r} does not use `order`: remove it, or use {uses_order}"
            )
        differing = sorted(set(self.order) ^ set(self.names()))
        if self.order and differing:
            raise ValueError(
                f"order: the ids {differing} are missing or unknown: list the id of every debater, and "
                "nothing else"
            )
        return self

    @pydantic.field_validator("interjections")
    @classmethod
    def _check_interjections(
        cls, value: tuple[participants.PlannedInterjection, ...]
    ) -> tuple[participants.PlannedInterjection, ...]:
        nobody = sorted({each.speaker for each in value if not participants.can_interject(each.speaker)})
        if nobody:
            raise ValueError(f"{nobody[0]!r} is not a valid speaker id: use a-z, 0-9, - and _")
        return tuple(sorted(value, key=lambda each: each.after))

    @pydantic.model_validator(mode="after")
    def _check_context(self) -> DebateConfig:
        budget = self.memory.budget
        for name in self.model_names():
            size = self.settings(name).context_size
            if size is not None and budget.total + budget.reply > size:
                raise ValueError(
                    f"memory.budget.total and memory.budget.reply add up to {budget.total + budget.reply} "
                    f"tokens, but the context_size of model {name!r} is {size}: lower memory.budget.total"
                )
        return self

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _explain_mistakes(
        cls, data: Any, validate: pydantic.ModelWrapValidatorHandler[Self], info: pydantic.ValidationInfo
    ) -> Self:
        """Validate the configuration and its protocol sections, and report all errors together."""
        mistakes: list[str] = []
        if isinstance(data, dict):
            data, mistakes = _with_sections(data, cls, info)
        try:
            config = validate(data)
        except pydantic.ValidationError as error:
            raise ConfigError("\n".join([section.explain(error, cls), *mistakes])) from error
        if mistakes:
            raise ConfigError("\n".join(mistakes))
        return config

    @pydantic.field_serializer("models", "mcp_servers")
    def _only_what_was_set(
        self, sections: dict[str, model_settings.ModelSettings] | dict[str, model_settings.McpServerConfig]
    ) -> object:
        """Serialize only the fields that were set explicitly."""
        return {name: each.model_dump(mode="json", exclude_unset=True) for name, each in sections.items()}

    def debater(self, debater_id: str) -> participants.DebaterConfig:
        """Return the configuration of the debater with this id. An unknown id is a `KeyError`."""
        for debater in self.debaters:
            if debater.id == debater_id:
                return debater
        raise KeyError(debater_id)

    def has_person(self, debater_id: str) -> bool:
        """Return True if a person takes this debater's turns."""
        return any(debater.id == debater_id and debater.is_human for debater in self.debaters)

    @memoize_by_identity()
    def names(self) -> Mapping[str, str]:
        """Return the debaters' display names, keyed by debater id."""
        return {debater.id: debater.name for debater in self.debaters}

    def lacks_model(self) -> bool:
        """Return True if nobody chose a model, so that the offline model would write placeholders."""
        models = [each.model for each in self.debaters if not each.is_human]
        if self.judge.enabled:
            models += [each.model or self.judge.model for each in self.judge.judges()]
        return "model" not in self.model_fields_set and not all(models)

    def model_of(self, debater: participants.DebaterConfig) -> str:
        """Return the model that a debater uses. For a person it is the debate's default model."""
        return self.model if debater.is_human else debater.model or self.model

    @memoize_by_identity()
    def context_paths(self) -> tuple[str, ...]:
        """Return the paths of all context files and of the context folder, without empty ones."""
        return tuple(filter(None, (self.context,) if isinstance(self.context, str) else self.context or ()))

    def model_names(self) -> Sequence[str]:
        """Return the names of all models that the debate may call, in sorted order."""
        names = {self.model_of(d) for d in self.debaters} | {self.judge.model or self.model}
        names |= {panel_judge.model for panel_judge in self.judge.panel if panel_judge.model}
        names |= set(self.fallbacks) | {m for d in self.debaters for m in d.fallbacks or ()}
        others = [self.memory.summary_model, self.blackboard.model]
        for settings in (self.model_extra or {}).values():
            others += settings.model_names()
        return sorted(names | {model for model in others if model})

    def settings(self, model: str) -> model_settings.ModelSettings:
        """Return the settings of a model, or the default settings if none are configured."""
        return self.models.get(model) or DEFAULT_SETTINGS

    def turn_order(self) -> tuple[str, ...]:
        """Return the ids of the debaters in their speaking order within a round."""
        return self.order or tuple(self.names())

    def total_turns(self) -> int:
        """Return the total number of turns of all debaters, for protocols that count turns."""
        return self.turns or (self.rounds or 0) * len(self.turn_order()) or 6

    def calibrated(self, model: str, confidence: float) -> float:
        """Return the measured accuracy for a model's stated confidence.

        Both are numbers from 0 to 100. Between two measured pairs the accuracy is interpolated linearly.
        Without pairs it is `confidence`.
        """
        pairs = self.calibration.get(model)
        if not pairs:
            return confidence
        if confidence <= pairs[0][0]:
            return pairs[0][1]
        for (low, low_accuracy), (high, high_accuracy) in pairwise(pairs):
            if confidence <= high:
                return low_accuracy + (high_accuracy - low_accuracy) * (confidence - low) / (high - low)
        return pairs[-1][1]

    def to_json(self) -> dict[str, Any]:
        """Return the configuration with its default values as JSON data, without the topic."""
        return self.model_dump(mode="json", exclude={"topic"})

    @property
    def fence(self) -> str:
        """Return the word that delimits quoted text in this debate's prompts.

        The word is chosen when the debate begins, and stored with it. All prompts of the debate use the same
        word, even after a resume, in a replay or in a fork.
        """
        return self._fence or fence_for(self.topic or "")

    def with_fence(self, fence: str) -> Self:
        """Return a copy of the configuration whose prompts delimit quoted text with this word."""
        fenced = self.model_copy()
        fenced._fence = fence
        return fenced

    def fingerprint(self) -> str:
        """Return a hash of the configuration without the topic, as 16 hexadecimal digits."""
        canonical = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]


FENCE_SOUNDS = ("bdfgklmnprstv", "aeiou", "lmnrst", "bdfgklmnprstv", "aeiou", "lmnrst")
"""Letters of which the delimiter word for quoted text consists. Each string holds the letters for one of the
six positions. Words of these sounds take two to three tokens, random letters four."""


@lru_cache(maxsize=256)
def fence_for(topic: str, secret: str = "", others: str = "") -> str:
    """Return a six-letter word that delimits quoted text in prompts.

    The word does not occur in the topic and in `others`. It is derived from a hash of the topic and the
    secret, so nobody can guess it without the secret. Debates stored by older versions have no secret.
    """
    lower, number = f"{topic}\n{others}".casefold(), 0
    while True:
        digest = hashlib.sha256(f"{number}\n{secret}{topic}".encode("utf-8", "replace")).digest()
        fence = "".join(letters[byte % len(letters)] for letters, byte in zip(FENCE_SOUNDS, digest))  # noqa: B905  # 6 of 32 bytes
        if fence not in lower:
            return fence
        number += 1


def _with_sections(
    data: dict[str, Any], config: type[pydantic.BaseModel], info: pydantic.ValidationInfo
) -> tuple[dict[str, Any], list[str]]:
    """Return the data with validated sections of protocols, and a list of error messages."""
    protocols = section.default_protocols()
    rules = section.protocol_spec(data.get("protocol", "round-robin"), protocols)
    known = section.protocol_sections(protocols.PROTOCOLS)
    if data.keys() - config.model_fields.keys() - known.keys():
        protocols.load_plugins()
        known = section.protocol_sections(protocols.PROTOCOLS)
    kept: dict[str, Any] = {"debaters": rules.debaters}
    kept |= {key: value for key, value in data.items() if key in config.model_fields}
    mistakes: list[str] = []
    for key, settings in known.items():
        try:
            validated = settings.model_validate(data.get(key, {}), context=info.context)
        except pydantic.ValidationError as error:
            mistakes.append(section.explain(error, settings, under=key))
            continue
        if settings is rules.settings or validated != settings():
            kept[key] = validated
    keys = [*config.model_fields, *known]
    unknown = (
        []
        if (info.context or {}).get("stored")
        else [section.unknown_key(key, keys) for key in data if key not in keys]
    )
    return kept, [*mistakes, *unknown]


CACHED_CONFIGS = 32
"""Maximum number of parsed configurations in the cache."""


@lru_cache(maxsize=CACHED_CONFIGS)
def _parse(canonical: str) -> DebateConfig:
    return DebateConfig.model_validate_json(canonical, context={"stored": True})


@memoize_by_identity(CACHED_CONFIGS)
def _parse_cached(*stored: object) -> DebateConfig:
    keys = len(stored) // 2
    settings = dict(zip(map(str, stored[:keys]), stored[keys:], strict=True))
    return _parse(json.dumps(settings, sort_keys=True))


def read_stored(stored: Mapping[str, object]) -> DebateConfig:
    """Parse a stored configuration into a `DebateConfig`.

    It may be one that a run cannot use. Unknown protocols and unknown keys are left out, so that a debate
    stays readable if a plug-in is missing. Results are cached by identity: nodes ask some thirty times a
    turn, and comparing configurations by value takes 0.3 ms.

    Raises:
        ConfigError: A value is invalid. The message names the key.
    """
    if section.default_protocols().find_protocol(str(stored.get("protocol") or "round-robin")) is None:
        # Not cached: the protocol may be registered later.
        return DebateConfig.model_validate(dict(stored), context={"stored": True})
    return _parse_cached(*stored.keys(), *stored.values())


def frozen_config(state: StateValues) -> DebateConfig:
    """Return the configuration stored in a debate's state.

    It may be one that a run cannot use. `runnable_config` checks this.

    Raises:
        InputError: The state has no configuration, because the process died before the debate began.
        ConfigError: A value is invalid.
    """
    stored = state.get("config")
    if not stored:
        raise InputError(
            "this debate never started, and no model was called: delete the debate and start it again"
        )
    return _with_fence(read_stored(stored), state.get("fence") or fence_for(state.get("topic") or ""))


@memoize_by_identity(2 * CACHED_CONFIGS)  # equal topics have the same fence object
def _with_fence(config: DebateConfig, fence: str) -> DebateConfig:
    return config.with_fence(fence)


def runnable_config(state: StateValues) -> DebateConfig:
    """Return a debate's stored configuration after checking that a run can use it.

    Raises:
        InputError: The state has no configuration.
        ConfigError: The protocol is not installed, or a value is invalid.
    """
    config = frozen_config(state)
    if section.default_protocols().find_protocol(config.protocol) is None:
        raise ConfigError(
            f"protocol {config.protocol!r} is not installed here, so this debate cannot be run: "
            "install the protocol's package, or register it with "
            "`moot.protocols.registry.register`. You can still show, report and delete the debate"
        )
    return config


def differing_keys(one: object, other: object, prefix: str = "") -> list[str]:
    """Return the sorted keys at which two JSON objects differ, such as `judge.model`."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        nested = [differing_keys(one.get(key), other.get(key), f"{prefix}{key}.") for key in keys]
        return [key for nested_keys in nested for key in nested_keys]
    return [] if one == other else [prefix.rstrip(".")]

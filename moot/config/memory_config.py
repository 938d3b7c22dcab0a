"""Configuration of a debate's memory: token budgets, window, summaries, retrieval and claims."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from moot.config.section import Section
from moot.state.entries import JsonObject

WORDS = "words"
"""Value of `memory.retrieval.embeddings` for retrieval that compares words only."""

SHARES = {"system": 0.25, "summary": 0.125, "messages": 0.625}
"""Default share of the token budget for each prompt section."""

NO_SUMMARY = "none"
"""Value of `memory.summarizer` that disables the rolling summary."""

MINIMUM = {"total": 400, "system": 100, "summary": 50, "messages": 150}
"""Minimum token budget of the whole prompt and of each prompt section. A smaller budget cannot hold the
rules, a summary and one truncated message."""


class Budget(Section):
    """Token limits for a whole prompt and for each of its sections.

    Prompts are counted exactly and never exceed these limits.
    """

    total: int = 8000
    """Maximum number of tokens in the whole prompt. With a higher value, prompts contain more full messages
    and each call costs more."""
    system: int = 2000
    """Maximum number of tokens for the rules, the persona and the instruction in a prompt. The topic and
    messages use the rest, so a higher value leaves less for them. Raise it for long personas."""
    summary: int = 1000
    """Maximum number of tokens in a summary. The summary is the rolling one or that of a debater's
    perspective. Raise it if summaries lose details."""
    messages: int = 5000
    """Maximum number of tokens that messages and claims may use in a prompt. The messages are recent or
    retrieved ones."""
    reply: int = Field(default=1000, ge=16)
    """Number of tokens reserved for the model's reply. They are not part of `total`. Raise it if replies are
    cut off."""
    turn_suffix: int = Field(default=600, ge=50)
    """Maximum number of tokens in the part of a prompt that is specific to one debater. This part comes last.
    Debaters share all other parts. These tokens count towards the sections above. A larger part lowers the
    share that a provider caches."""
    phases: dict[str, Annotated[int, Field(ge=1000)]] = Field(default_factory=dict)
    """Maximum prompt size in tokens for individual phases of the debate, keyed by phase. For example,
    `{respond: 6000}`. Topic, background and pinned messages are not counted, and `total` still applies. The
    phases of a dialogue between opening and closing have 4,000 by default, all others `total`."""

    @model_validator(mode="before")
    @classmethod
    def _share_out(cls, data: object) -> object:
        """Divide the remaining tokens among the prompt sections without a configured limit."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        limits = {name: data[name] for name in SHARES if isinstance(data.get(name), int)}
        total = data.setdefault("total", 8000 if len(limits) < len(SHARES) else sum(limits.values()))
        if isinstance(total, int):
            open_shares = {name: share for name, share in SHARES.items() if name not in limits}
            remaining = total - sum(limits.values())
            for name, share in open_shares.items():
                data[name] = int(remaining * share / sum(open_shares.values()))
            if "turn_suffix" not in data:
                data["turn_suffix"] = max(50, min(600, total // 8))
        return data

    @model_validator(mode="after")
    def _check_parts(self) -> "Budget":
        for name, minimum in MINIMUM.items():
            if getattr(self, name) < minimum:
                raise ValueError(
                    f"memory.budget.{name} is {getattr(self, name)} tokens, which is too low: use at least "
                    f"{minimum}"
                )
        parts_total = self.system + self.summary + self.messages
        if parts_total > self.total:
            raise ValueError(
                f"memory.budget.total is {self.total} tokens, but system, summary and messages add up to "
                f"{parts_total}: raise the total, or lower one of these three budgets"
            )
        if self.turn_suffix > self.total // 2:
            raise ValueError(
                f"memory.budget.turn_suffix is {self.turn_suffix} tokens, which is more than half of "
                "memory.budget.total: lower turn_suffix"
            )
        return self


class PerspectiveConfig(Section):
    """Settings for summaries of a debater's perspective.

    A perspective consists of the debater's proposals and the critiques of them.
    """

    enabled: bool = True
    """True if debaters' perspectives are summarised. If this is disabled, prompts include as much of the
    debater's unsummarised perspective as the token budget allows."""
    threshold_chars: int | None = Field(default=None, ge=0)
    """Number of characters above which a debater's perspective is summarised. A perspective consists of the
    debater's proposals and their critiques, and is checked at the start of a round. `None`: it is summarised
    if its messages do not fit the prompt that would show them."""
    threshold_tokens: int | None = Field(default=None, ge=0)
    """Number of tokens above which a debater's perspective is summarised. A perspective consists of the
    debater's proposals and their critiques, and is checked at the start of a round. If set, `threshold_chars`
    is ignored."""
    max_chars: int = Field(default=2500, ge=100)
    """Maximum length of a perspective summary in characters. `memory.budget.summary` is a second limit."""
    max_tokens: int | None = Field(default=None, ge=50)
    """Maximum length of a perspective summary in tokens. If set, `max_chars` is ignored."""
    method: str = "llm"
    """Name of the method that summarises debaters' perspectives. `llm`, or any other value that
    `memory.summarizer` accepts. `rule-based` makes no model call."""
    mode: Literal["fresh", "rolling"] = "fresh"
    """How the summary of a debater's perspective is updated. `fresh` writes the summary from scratch.
    `rolling` adds new messages to the old summary, which costs less in long debates."""
    prompt: str = ""
    """Prompt for summaries of debaters' perspectives. It replaces the built-in prompt. `@FILE` reads it from
    a file."""

    def is_exceeded(self, chars: float, tokens: float, *, fits: bool) -> bool:
        """Return True if a debater's proposals and their critiques are long enough to be summarised.

        Without a threshold, the answer depends on whether the messages fit the prompt that would show them.
        """
        if self.threshold_tokens is not None:
            return tokens > self.threshold_tokens
        return not fits if self.threshold_chars is None else chars > self.threshold_chars

    def with_overrides(self, debater_overrides: "PerspectiveConfig | None") -> "PerspectiveConfig":
        """Return a copy of the settings with a debater's own overrides applied."""
        overrides = debater_overrides.model_dump(exclude_unset=True) if debater_overrides else {}
        # A debater's limit in characters replaces the debate's limit in tokens.
        cleared_limits = {
            f"{name}_tokens": None for name in ("threshold", "max") if f"{name}_chars" in overrides
        }
        return self.model_copy(update={**cleared_limits, **overrides})


def _without_nulls(settings: object) -> object:
    return (
        {key: value for key, value in settings.items() if value is not None}
        if isinstance(settings, dict)
        else settings
    )


PerspectiveOverride = Annotated[
    PerspectiveConfig,
    BeforeValidator(_without_nulls),
    PlainSerializer(lambda settings: settings.model_dump(exclude_unset=True), return_type=JsonObject),
]
"""Summary settings that override `memory.perspectives` for one debater or for the judge. Missing and `null`
fields keep the values of `memory.perspectives`."""


class RetrievalConfig(Section):
    """Settings for adding relevant older messages to prompts.

    Prompts would otherwise leave these messages out.
    """

    enabled: bool = True
    """True if the prompts for debaters' turns include relevant earlier messages. Questions about a debate
    always use retrieval."""
    top_k: int = Field(default=8, ge=1, le=50)
    """Maximum number of messages retrieved for a prompt, not counting their neighbours."""
    # 500 find more (LoCoMo: .74, not .63). No provider caches them: 450 make prompts 11 % dearer.
    max_tokens: int = Field(default=250, ge=16)
    """Maximum number of tokens that retrieved messages may use in a turn's prompt. These tokens count
    towards `memory.budget.turn_suffix`. Raise both if old details matter."""
    embeddings: str | None = None
    """Import path `module:attribute` of a LangChain `Embeddings` object, or of a function that returns one.
    `words`: retrieval compares words only. `None`: it also compares meaning by static English word vectors if
    the extra `moot[semantic]` is installed. Set a path if debaters mix languages."""

    @field_validator("embeddings")
    @classmethod
    def _check_embeddings(cls, value: str | None) -> str | None:
        if value not in (None, WORDS) and not re.fullmatch(r"[\w.]+:\w+", value):
            raise ValueError(
                f"{value!r} is neither {WORDS!r} nor an import path of the form 'module:attribute'"
            )
        return value


class MemoryConfig(Section):
    """Settings for a debate's memory, such as the rolling summary and the window of recent messages."""

    budget: Budget = Field(default_factory=Budget)
    """Token limits for a whole prompt and for each of its sections."""
    keep_recent: int = Field(default=50, ge=1)
    """Number of recent messages to keep in the message window when older ones are removed. Fewer messages
    are kept if the token budget does not allow them."""
    summarize_every: int = Field(default=50, ge=1)
    """Number of new messages after which the oldest messages are summarised. The summary replaces them in the
    window. A lower value keeps the summary more current and makes more calls."""
    summarizer: str = "rule-based"
    """Name of the method that writes the rolling summary. Use `rule-based` (no model call), `llm`,
    `hierarchical`, or the name of a plug-in. `none` or `off` disables the summary; window and retrieval
    remain."""
    summary_model: str | None = None
    """Name of the model that writes summaries. `None`: the debate's. A cheaper one saves cost in long
    debates."""
    summary_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of the model that writes summaries. `None`: the debate's."""
    summary_prompt: str = ""
    """Prompt for summaries that a model writes. It replaces the built-in prompt. `@FILE` reads it from a
    file."""
    mode: Literal["rolling", "fresh"] = "rolling"
    """How the rolling summary is updated when messages leave the window. `rolling` adds these messages to the
    previous summary. `fresh` summarises all removed messages again, which costs more each time."""
    layout: Literal["shared", "per-speaker"] = "shared"
    """Order in which the parts of a prompt appear. `shared` starts with what all debaters share, so that a
    provider's prefix cache applies. `per-speaker` starts with the debater's persona. In the long form, it
    also shows the debater's own messages in the assistant role."""
    perspectives: PerspectiveConfig = Field(default_factory=PerspectiveConfig)
    """Settings for summaries of debaters' perspectives and of the final round."""
    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)
    """Settings for adding relevant older messages to prompts. Prompts would otherwise leave these messages
    out."""
    cross_debate: bool = False
    """True if prompts remind debaters of their arguments in earlier debates. It applies to debaters with an
    `identity`, and only debates in the same database count."""

    @field_validator("summarizer", mode="before")
    @classmethod
    def _read_off(cls, value: object) -> object:
        """Convert the YAML values `off` and `null` to `none`."""
        return NO_SUMMARY if value in (False, None, "off") else value


class BlackboardConfig(Section):
    """Settings for claim extraction, reflections and summaries of side discussions."""

    extraction: Literal["auto", "llm", "none"] = "auto"
    """When a model extracts claims from new messages. One call extracts the claims of a batch of messages.
    `llm`: in every protocol. `auto`: in `dialogue` only. `none`: never. The `offline` model extracts no
    claims."""
    model: str | None = None
    """Name of the model for claim extraction, reflections and summaries of side discussions. `None`: the
    debate's. A cheaper model saves cost, but weak models attribute claims to the wrong debater."""
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    """Sampling temperature for claim extraction, reflections and summaries of side discussions. `None`: the
    provider's default."""
    reply: int = Field(default=1500, ge=200)
    """Minimum number of tokens reserved for the reply of the extraction model. This also applies to
    reflections and summaries of side discussions. Raise it if extraction fails because replies are cut
    off."""
    confidence: float = Field(default=0.5, ge=0, le=1)
    """Minimum confidence at which Moot records an extracted stance, from 0 to 1. Raise it if wrong stances
    are recorded. Lower it if stances are missing."""
    verify_changes: bool = True
    """True if a second model call checks each change of position on the main question. Changes on other
    claims are not checked. Switch it off to save calls."""
    reflection_threshold: int = Field(default=15, ge=1)
    """Score above which recent events make a model reflect on the debate. A new disagreement counts 3, a
    concession 4, a change of mind 5. Lower it for more reflections."""

    @field_validator("extraction", mode="before")
    @classmethod
    def _read_off(cls, value: object) -> object:
        """Convert the YAML values `off` and `null` to `none`."""
        return "none" if value in (False, None, "off") else value

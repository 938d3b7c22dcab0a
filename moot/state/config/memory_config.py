"""Budgets and thresholds of a debate's memory: window, summaries, retrieval, blackboard."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from moot.state.config.section import Section
from moot.state.entries import JsonObject

SHARES = {"system": 0.25, "summary": 0.125, "messages": 0.625}
"""What each section gets of `total` where it is not given."""

NO_SUMMARY = "none"
"""In the place of a summariser: no rolling summary is made."""

MINIMUM = {"total": 400, "system": 100, "summary": 50, "messages": 150}
"""Below these no view can hold the rules, a summary and one cut message, in tokens."""


class Budget(Section):
    """How many tokens a view may have, section by section; exact counts, never exceeded."""

    total: int = 8000
    """Whole prompt, tokens."""
    system: int = 2000
    """Rules, persona contract and instruction; what they leave is the topic's and the window's."""
    summary: int = 1000
    """Rolling and perspective summaries."""
    messages: int = 5000
    """Window, blackboard view and retrieved memories."""
    reply: int = Field(1000, ge=16)
    """Reserve for the answer, outside `total`."""
    tail: int = Field(600, ge=50)
    """What changes from speaker to speaker, at the end of a shared prompt; within the sections above."""

    @model_validator(mode="before")
    @classmethod
    def _share_out(cls, data: object) -> object:
        """Give the sections that are not named their share of what is left of `total`."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        given = {name: data[name] for name in SHARES if isinstance(data.get(name), int)}
        total = data.setdefault("total", 8000 if len(given) < len(SHARES) else sum(given.values()))
        if isinstance(total, int):
            open_shares = {name: share for name, share in SHARES.items() if name not in given}
            room = total - sum(given.values())
            for name, share in open_shares.items():
                data[name] = int(room * share / sum(open_shares.values()))
            if "tail" not in data:
                data["tail"] = max(50, min(600, total // 8))
        return data

    @model_validator(mode="after")
    def _check_parts(self) -> Budget:
        for name, least in MINIMUM.items():
            if getattr(self, name) < least:
                raise ValueError(
                    f"memory.budget.{name} is {getattr(self, name)} tokens, too small for its parts: "
                    f"give at least {least}"
                )
        parts = self.system + self.summary + self.messages
        if parts > self.total:
            raise ValueError(
                f"memory.budget.total is {self.total} tokens, but system + summary + messages are {parts}: "
                "raise the total or lower a part"
            )
        if self.tail > self.total // 2:
            raise ValueError(f"memory.budget.tail is {self.tail} tokens: give at most half of the total")
        return self


class PerspectiveConfig(Section):
    """Summaries of what one debater has at stake: its own proposals and the critiques it received."""

    enabled: bool = True
    """Without, a debater sees its whole perspective, as far as the view's budget goes."""
    threshold_chars: int = Field(5000, ge=0)
    """A perspective longer than this is summarised as a round begins; characters."""
    threshold_tokens: int | None = Field(None, ge=0)
    """The same in tokens; stands for `threshold_chars` where it is given."""
    max_chars: int = Field(2500, ge=100)
    """Length of the summary, characters; `memory.budget.summary` wins."""
    max_tokens: int | None = Field(None, ge=50)
    """The same in tokens; stands for `max_chars` where it is given."""
    method: str = "llm"
    """`llm`, or any other method of `memory.summarizer`."""
    mode: Literal["fresh", "rolling"] = "fresh"
    """`fresh` summarises the whole perspective each time; `rolling` the old summary and what is new."""
    prompt: str = ""
    """Stands for the built-in prompt; a file's text on the command line."""

    def is_passed(self, chars: float, tokens: float) -> bool:
        """Return whether a perspective of this length is over the threshold."""
        if self.threshold_tokens is not None:
            return tokens > self.threshold_tokens
        return chars > self.threshold_chars

    def with_own(self, own: PerspectiveConfig | None) -> PerspectiveConfig:
        """Return these settings with what a debater sets for itself in their place."""
        set_there = own.model_dump(exclude_unset=True) if own else {}
        # A limit in one unit replaces the same limit in the other.
        freed = {f"{name}_tokens": None for name in ("threshold", "max") if f"{name}_chars" in set_there}
        return self.model_copy(update={**freed, **set_there})


def _without_nulls(own: object) -> object:
    return {key: value for key, value in own.items() if value is not None} if isinstance(own, dict) else own


OwnPerspective = Annotated[
    PerspectiveConfig,
    BeforeValidator(_without_nulls),
    PlainSerializer(lambda own: own.model_dump(exclude_unset=True), return_type=JsonObject),
]
"""One debater's own settings: what is left out, or `null`, is as in the debate."""


class RetrievalConfig(Section):
    """What comes back into a debater's view of what has left the window."""

    enabled: bool = True
    """Whether anything is brought back in debate turns; questions always retrieve."""
    top_k: int = Field(8, ge=1, le=50)
    """Memories brought back at most, their neighbours not counted."""
    max_tokens: int = Field(250, ge=16)
    """Their room in the view's tail, whose budget wins; tokens."""
    embeddings: str | None = None
    """`module:attribute` of a LangChain `Embeddings`, or of what makes one; `None` compares words alone."""

    @field_validator("embeddings")
    @classmethod
    def _check_embeddings(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[\w.]+:\w+", value):
            raise ValueError(f"{value!r} is not of the form 'module:attribute'")
        return value


class MemoryConfig(Section):
    """Three tiers: full transcript, rolling summary, window of recent messages."""

    budget: Budget = Field(default_factory=Budget)
    """Tokens of a view."""
    keep_recent: int = Field(50, ge=1)
    """Messages that stay in the window after it is compacted; the token budget wins."""
    summarize_every: int = Field(50, ge=1)
    """The window grows by this many messages before it is compacted and summarised."""
    summarizer: str = "rule-based"
    """Method of the rolling summary: `rule-based`, `llm`, `hierarchical`, or an installed plug-in's name;
    `none`, or `off`, for no summary: window and retrieval remain."""
    summary_model: str | None = None
    """Model of the `llm` summariser; `None` means the debate's own."""
    summary_temperature: float | None = Field(None, ge=0, le=2)
    """Temperature of the `llm` summariser; `None` means the debate's own."""
    summary_prompt: str = ""
    """Stands for what the built-in prompt of model-made summaries asks for; a file's text on the command
    line."""
    mode: Literal["rolling", "fresh"] = "rolling"
    """`rolling` folds what left the window into the old summary; `fresh` summarises all of it anew, which
    costs more with every compaction."""
    layout: Literal["shared", "per-speaker"] = "shared"
    """`shared` puts what all debaters share first, so that a provider's prefix cache pays for most of it."""
    perspectives: PerspectiveConfig = Field(default_factory=PerspectiveConfig)
    """Summaries of single debaters' perspectives, and the judge's of the final round."""
    rivals: bool = True
    """Whether a council's member who refines is shown what the others propose, as far as there is room."""
    preserve_errors: int = Field(300, ge=0)
    """Tokens, about, of a tool's error that summaries by rule keep whole; together errors take a third."""
    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)
    """What comes back of what has left the window."""
    cross_debate: bool = False
    """Debaters with an `identity` recall what they argued in earlier debates of the same database."""

    @field_validator("summarizer", mode="before")
    @classmethod
    def _read_off(cls, value: object) -> object:
        """Take YAML's `off` and `null` for what they mean."""
        return NO_SUMMARY if value in (False, None, "off") else value


class BlackboardConfig(Section):
    """How the blackboard is kept."""

    extraction: Literal["auto", "rule-based", "llm"] = "auto"
    """Who reads what was said: a model in one call a step, or the rules; `auto` means a model in `dialogue`
    alone. A call that fails is replaced by the rules."""
    model: str | None = None
    """Model of extraction, reflections and crux cards; `None` means the debate's."""
    temperature: float | None = Field(0.0, ge=0, le=2)
    """Sampling temperature of these calls."""
    reply: int = Field(1500, ge=200)
    """Reserve for their answers, tokens; minutes get 400 and four for each that they read, if more."""
    confidence: float = Field(0.5, ge=0, le=1)
    """How sure a model must be of what somebody said for it to be noted."""
    second_look: bool = True
    """Whether a model looks again at what would change how things stand: one more call where there is any."""
    reflect_at: int = Field(15, ge=1)
    """A reflection is due once 3·new disagreements + 4·concessions + 5·shifts pass this."""

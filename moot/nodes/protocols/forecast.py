"""What a debate will take, before it runs: calls, tokens and the critical path, in closed form.

A forecast counts calls exactly where the configuration decides them; where the debate decides, it says how
many there are at least and at most. Token figures are estimates: *expected* goes by the words asked for,
*most* by the budgets. Tools, retries, and answers that are asked for again with more room, come on top.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from moot.nodes.calls import Purpose
from moot.nodes.memory.window import WindowLimits
from moot.state.config import DebateConfig

TOKENS_PER_WORD = 1.35
"""English, o200k."""
CHARS_PER_TOKEN = 4.5
WITHOUT_CALLS = frozenset({"rule-based", "semantic", "retrieval"})
"""Methods of summaries that call no model; a plugged-in one is taken for one that does."""
RULES_TOKENS, DEBATER_TOKENS = 200, 15
"""What the shared rules take, and each debater's line in them."""
FRAME_TOKENS = 450
"""Rules, debaters, contract and instruction of a view."""
JUDGE_FRAME_TOKENS = 500
"""Rubric and what the verdict must hold."""
SCORE_TOKENS = 60
"""One score with its reason and citations."""
OPINION_TOKENS = 600
"""The rest of a verdict."""
_FINDINGS_TOKENS = 250.0
"""What a model notes of one debater's words."""
_INSIGHTS_TOKENS = 300.0
"""One pass of reflections."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of one call."""

    expected: float
    most: int


@dataclass(frozen=True)
class Batch:
    """Calls that are made at the same time, and how many times in a row that happens."""

    purpose: Purpose
    phase: str
    calls: int
    """Calls in one batch."""
    prompt: Tokens
    """Of one call, the mean over all times."""
    reply: Tokens
    times: int = 1
    """As planned."""
    least: int | None = None
    """Times at least; `None` for as many as planned."""
    most: int | None = None
    """Times at most; `None` for as many as planned."""

    @property
    def times_at_least(self) -> int:
        """Times that are certain."""
        return self.times if self.least is None else self.least

    @property
    def times_at_most(self) -> int:
        """Times that there can be."""
        return self.times if self.most is None else self.most

    @property
    def all_calls(self) -> int:
        """Calls over all planned times."""
        return self.calls * self.times


@dataclass(frozen=True)
class Forecast:
    """What a run will take."""

    batches: tuple[Batch, ...]
    """In the order of their first time; batches follow each other, the calls of one overlap."""
    concurrency: int

    @property
    def calls(self) -> int:
        """Model calls in all, as planned."""
        return sum(batch.all_calls for batch in self.batches)

    @property
    def calls_at_least(self) -> int:
        """Model calls that are certain."""
        return sum(batch.calls * batch.times_at_least for batch in self.batches)

    @property
    def calls_at_most(self) -> int:
        """Model calls that there can be, whatever is said."""
        return sum(batch.calls * batch.times_at_most for batch in self.batches)

    @property
    def critical_path(self) -> int:
        """Calls that must follow one another, as planned."""
        return sum(self._in_a_row(batch) * batch.times for batch in self.batches)

    @property
    def critical_path_at_most(self) -> int:
        """Calls that may have to follow one another."""
        return sum(self._in_a_row(batch) * batch.times_at_most for batch in self.batches)

    def _in_a_row(self, batch: Batch) -> int:
        return -(-batch.calls // self.concurrency)

    def calls_by_purpose(self) -> dict[str, int]:
        """Return the planned calls by what they are made for."""
        counted: dict[str, int] = {}
        for batch in filter(lambda batch: batch.all_calls, self.batches):
            counted[batch.purpose] = counted.get(batch.purpose, 0) + batch.all_calls
        return counted

    def seconds(self, latency_s: float) -> float:
        """Return how long the run takes where every call takes `latency_s`, our own work not counted."""
        return self.critical_path * latency_s

    def seconds_at_most(self, latency_s: float) -> float:
        """Return how long it can take where every call takes `latency_s`."""
        return self.critical_path_at_most * latency_s

    def expected(self, of: Callable[[Batch], Tokens]) -> int:
        """Return the tokens of all planned calls."""
        return round(sum(of(batch).expected * batch.all_calls for batch in self.batches))

    def most(self, of: Callable[[Batch], Tokens]) -> int:
        """Return the tokens of all calls that there can be, each at its budget."""
        return sum(of(batch).most * batch.calls * batch.times_at_most for batch in self.batches)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as JSON types; keys that `usage` has too mean the same there."""
        return {
            "calls": self.calls,
            "calls_at_least": self.calls_at_least,
            "calls_at_most": self.calls_at_most,
            "prompt_tokens": self.expected(lambda batch: batch.prompt),
            "prompt_tokens_at_most": self.most(lambda batch: batch.prompt),
            "completion_tokens": self.expected(lambda batch: batch.reply),
            "completion_tokens_at_most": self.most(lambda batch: batch.reply),
            "critical_path_calls": self.critical_path,
            "critical_path_calls_at_most": self.critical_path_at_most,
            "concurrency": self.concurrency,
            "calls_by_purpose": self.calls_by_purpose(),
            "batches": [_batch_json(batch) for batch in self.batches],
        }


def make_forecast(config: DebateConfig, batches: Iterable[Batch]) -> Forecast:
    """Build a forecast of the batches that can have any calls."""
    some = tuple(batch for batch in batches if batch.calls * batch.times_at_most)
    return Forecast(some, config.limits.concurrency)


def words_to_tokens(words: float, config: DebateConfig) -> Tokens:
    """Return the tokens of an answer that is asked to stay within `words`."""
    reserve = config.memory.budget.reply
    return Tokens(min(words * TOKENS_PER_WORD, reserve), reserve)


def prompt_of(material: float, config: DebateConfig, *, frame: float = FRAME_TOKENS) -> Tokens:
    """Return the tokens of a prompt that shows the topic and so many tokens of material."""
    total = config.memory.budget.total
    return Tokens(min(frame + topic_tokens(config) + material, total), total)


def topic_tokens(config: DebateConfig) -> float:
    """Return about how many tokens the topic has; 60 where it is not known yet."""
    return len(config.topic) / CHARS_PER_TOKEN if config.topic else 60.0


def judge_batch(config: DebateConfig, material: float, *, criteria: int, orders: int) -> Batch:
    """Return the batch of the verdict: every judge, in every order of presentation.

    Args:
        config: the debate's.
        material: tokens of evidence.
        criteria: criteria of the rubric.
        orders: orders of presentation.
    """
    seats = len(config.judge.seats()) if config.judge.enabled else 0
    scores = SCORE_TOKENS * criteria * len(config.debaters)
    reply = Tokens(min(scores + OPINION_TOKENS, config.judge.reply), config.judge.reply)
    return Batch(
        "judge", "verdict", seats * orders, prompt_of(material, config, frame=JUDGE_FRAME_TOKENS), reply
    )


def rolling_batch(
    config: DebateConfig, *, entries: int, tokens: float, more: tuple[int, float] = (0, 0.0)
) -> list[Batch]:
    """Return the batches of rolling summaries by model: at each compaction notes, and from them a summary.

    The first notes are the summary.

    Args:
        config: the debate's.
        entries: utterances in all.
        tokens: their expected tokens in all.
        more: utterances, with their tokens, that may come on top.
    """
    times = _compactions(config, entries, tokens)
    most = _compactions(config, entries + more[0], tokens + more[1])
    if config.memory.summarizer in WITHOUT_CALLS or not most:
        return []
    new = min(tokens / max(1, times), config.memory.budget.total - 500)
    reply = Tokens(config.memory.budget.summary * 0.65, config.memory.budget.summary)
    notes = prompt_of(min(times * reply.expected, new), config, frame=250)
    return [
        Batch("summary", "rolling notes", 1, prompt_of(new, config, frame=250), reply, times, most=most),
        Batch("summary", "rolling summary", 1, notes, reply, max(0, times - 1), most=most - 1),
    ]


def _compactions(config: DebateConfig, entries: int, tokens: float) -> int:
    """Return how often the window is compacted."""
    limits = window_limits(config)
    by_tokens = (tokens - limits.high_tokens) / (limits.high_tokens - limits.low_tokens)
    by_count = (entries - limits.high_messages) / (limits.high_messages - limits.low_messages)
    return max(0, math.ceil(max(by_tokens, by_count)))


def window_limits(config: DebateConfig) -> WindowLimits:
    """Return the window's limits, with about what the rules leave of their section."""
    rules = RULES_TOKENS + topic_tokens(config) + DEBATER_TOKENS * len(config.debaters)
    shared = config.memory.layout == "shared"
    most = config.memory.budget.system
    return WindowLimits.of(config.memory, int(min(rules, most)) if shared else None)


def window_tokens(turns: int, each: float, config: DebateConfig) -> float:
    """Return how many tokens of summary and window a turn sees, the mean over all turns.

    The window grows by `each` a turn up to its high-water mark; from there on it swings between the marks.
    """
    limits = window_limits(config)
    high = min(limits.high_tokens, limits.high_messages * each)
    low = min(limits.low_tokens, limits.low_messages * each)
    growing = min(turns, max(1, int(high / each)))
    later = turns - growing
    return (
        growing * (growing - 1) / 2 * each + later * ((high + low) / 2 + config.memory.budget.summary)
    ) / turns


def reading_batches(
    config: DebateConfig,
    steps: int,
    tokens: float,
    *,
    least: int | None = None,
    most: int | None = None,
    by_model: bool = False,
) -> list[Batch]:
    """Return what comes with any protocol: questions to a person first, after each step notes by model.

    With notes by model come reflections, where enough has happened: after every step, at most.

    Args:
        config: the debate's.
        steps: steps in which debaters speak, as planned.
        tokens: expected tokens of what is said in one of them.
        least: steps at least, where there can be fewer.
        most: steps at most, where there can be more.
        by_model: whether `auto` means that a model reads.
    """
    wanted, reading = config.clarifications, config.blackboard
    asking = len(speaking(config)) if wanted.enabled else 0
    question = Tokens(min(80.0 * wanted.max_per_debater, 800), 800)
    batches = [Batch("clarify", "clarify", asking, prompt_of(0, config), question, wanted.rounds, least=1)]
    if reading.extraction == "llm" or (by_model and reading.extraction == "auto"):
        notes = Tokens(min(_FINDINGS_TOKENS * len(config.debaters), reading.reply), reading.reply)
        insights = Tokens(min(_INSIGHTS_TOKENS, reading.reply), reading.reply)
        shown = prompt_of(tokens, config)
        batches += [
            Batch("extract", "record", 1, shown, notes, steps, least, most),
            Batch("reflect", "reflection", 1, shown, insights, 0, 0, steps if most is None else most),
        ]
    return batches


def speaking(config: DebateConfig) -> list[str]:
    """Return the debaters for whom a model is called."""
    return [debater.id for debater in config.debaters if not debater.is_human]


def _batch_json(batch: Batch) -> dict[str, Any]:
    return {
        "purpose": batch.purpose,
        "phase": batch.phase,
        "calls": batch.calls,
        "times": batch.times,
        "times_at_least": batch.times_at_least,
        "times_at_most": batch.times_at_most,
        "prompt_tokens": round(batch.prompt.expected),
        "completion_tokens": round(batch.reply.expected),
    }

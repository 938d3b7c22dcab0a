"""What a dialogue takes: openings, minirounds and closings; crux rooms come on top, where they open."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.protocols.forecast import (
    Batch,
    Forecast,
    Tokens,
    judge_batch,
    make_forecast,
    prompt_of,
    reading_batches,
    rolling_batch,
    speaking,
    words_to_tokens,
)
from state.config import DebateConfig

_BOARD = 300
"""Tokens of the blackboard in a view."""
_FINDINGS = 250.0
"""Tokens of what a model notes of one message."""


def dialogue_forecast(config: DebateConfig, words: Mapping[str, int]) -> Forecast:
    """Return the forecast of the main floor; how many rooms open is not known before.

    Args:
        config: the debate's.
        words: what each stage's speeches are asked to stay within.
    """
    aspects = len(config.dialogue.aspects) or config.dialogue.max_aspects
    minirounds, people = config.dialogue.minirounds, len(config.debaters)
    times = {
        "opening": 1,
        "take": aspects,
        "respond": aspects * minirounds,
        "reply": aspects * minirounds,
        "closing": 1,
    }
    said = {stage: words_to_tokens(words[stage], config) for stage in times}
    one_round = people * (said["take"].expected + said["respond"].expected) * (1 + minirounds) / 2
    seen = {"opening": 0.0, "take": _BOARD, "closing": _BOARD * people}
    turns = [
        Batch(
            "turn",
            stage,
            len(speaking(config)),
            prompt_of(seen.get(stage, _BOARD + one_round), config),
            said[stage],
            n,
        )
        for stage, n in times.items()
    ]
    steps, tokens = sum(times.values()), sum(times[stage] * people * said[stage].expected for stage in times)
    orders = 1 if config.judge.swap is False or people < 2 else 2
    return make_forecast(
        config,
        [
            *_asking(config),
            *turns,
            *_reading(config, steps, tokens / steps),
            *rolling_batch(config, entries=steps * people, tokens=tokens),
            judge_batch(config, tokens, criteria=5, orders=orders),
        ],
    )


def _asking(config: DebateConfig) -> list[Batch]:
    """Return the call that splits the topic, where the configuration does not."""
    reply = Tokens(150.0, config.blackboard.reply)
    return [] if config.dialogue.aspects else [Batch("extract", "aspects", 1, prompt_of(0, config), reply)]


def _reading(config: DebateConfig, steps: int, tokens: float) -> list[Batch]:
    """Return what reads along: by model, unless the rules are wanted."""
    batches = reading_batches(config, steps, tokens)
    if config.blackboard.extraction != "auto":
        return batches
    expected = min(_FINDINGS * len(config.debaters), config.blackboard.reply)
    reply = Tokens(expected, config.blackboard.reply)
    return [*batches, Batch("extract", "record", 1, prompt_of(tokens, config), reply, steps)]

"""What a dialogue takes: openings, minirounds and closings as planned, and the crux rooms that may open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moot.nodes.protocols.dialogue.crux_rooms import WORDS as CRUX_WORDS
from moot.nodes.protocols.dialogue.dialogue_settings import DialogueConfig
from moot.nodes.protocols.forecast import (
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
from moot.state.config import DebateConfig

_BOARD = 300
"""Tokens of the blackboard in a view."""
_CARD = 300.0
"""Tokens of a crux card."""


def dialogue_forecast(config: DebateConfig, words: Mapping[str, int]) -> Forecast:
    """Return the forecast: as planned no room opens, at most as many as the configuration allows.

    A model may split the topic into fewer aspects than it is allowed to, but not into more.

    Args:
        config: the debate's.
        words: what each stage's speeches are asked to stay within.
    """
    aspects = aspects_at_most(config)
    fewest = len(DialogueConfig.of(config).aspects) or 1
    people, models = len(config.debaters), len(speaking(config))
    times, least = _stages(config, aspects), _stages(config, fewest)
    said = {stage: words_to_tokens(words[stage], config) for stage in times}
    heard = (
        (said["take"].expected + said["respond"].expected) * (1 + DialogueConfig.of(config).minirounds) / 2
    )
    seen = {"opening": 0.0, "take": _BOARD, "closing": _BOARD * people}
    shown = {stage: prompt_of(seen.get(stage, _BOARD + people * heard), config) for stage in times}
    turns = [
        Batch("turn", stage, models, shown[stage], said[stage], n, least[stage]) for stage, n in times.items()
    ]
    steps, tokens = sum(times.values()), sum(times[stage] * people * said[stage].expected for stage in times)
    rooms = rooms_at_most(config)
    in_rooms = rooms * _room_steps(config)
    orders = 1 if config.judge.swap is False or people < 2 else 2
    reserve = config.memory.budget.reply
    return make_forecast(
        config,
        [
            *_asking(config),
            *turns,
            *_rooms(config, rooms),
            *reading_batches(
                config,
                steps,
                tokens / steps,
                least=sum(least.values()),
                most=steps + in_rooms,
                by_model=True,
            ),
            *rolling_batch(
                config,
                entries=steps * people,
                tokens=tokens,
                more=(2 * in_rooms, (steps * people + 2 * in_rooms) * reserve),
            ),
            judge_batch(config, tokens, criteria=5, orders=orders),
        ],
    )


def aspects_at_most(config: DebateConfig) -> int:
    """Return how many aspects there are, or may be named by a model."""
    return len(DialogueConfig.of(config).aspects) or DialogueConfig.of(config).max_aspects


def steps_at_most(config: DebateConfig) -> int:
    """Return how many steps the main floor takes."""
    return sum(_stages(config, aspects_at_most(config)).values())


def rooms_at_most(config: DebateConfig) -> int:
    """Return how many crux rooms can open: a pair's next one waits until it has cooled down."""
    crux, people = DialogueConfig.of(config).crux, len(config.debaters)
    each = -(-aspects_at_most(config) // (crux.cooldown + 1))
    return min(crux.max_rooms, people * (people - 1) // 2 * each) if crux.enabled else 0


def _stages(config: DebateConfig, aspects: int) -> dict[str, int]:
    """Return how many times each stage of the main floor comes."""
    exchanges = aspects * DialogueConfig.of(config).minirounds
    return {"opening": 1, "take": aspects, "respond": exchanges, "reply": exchanges, "closing": 1}


def _room_steps(config: DebateConfig) -> int:
    """Return the steps of one room that is not settled before its cap: positions, then two a cycle."""
    return 1 + 2 * DialogueConfig.of(config).crux.cycles


def _asking(config: DebateConfig) -> list[Batch]:
    """Return the call that splits the topic, where the configuration does not."""
    reply = Tokens(150.0, config.blackboard.reply)
    return (
        []
        if DialogueConfig.of(config).aspects
        else [Batch("extract", "aspects", 1, prompt_of(0, config), reply)]
    )


def _rooms(config: DebateConfig, rooms: int) -> Iterable[Batch]:
    """Return what rooms may take that follow one another: speeches of two, and a card a cycle."""
    said = words_to_tokens(CRUX_WORDS, config)
    pair, steps = min(2, len(speaking(config))), _room_steps(config)
    seen = prompt_of(_BOARD + steps * said.expected, config)
    yield Batch("turn", "crux rooms", pair, seen, said, 0, most=rooms * steps)
    if config.blackboard.extraction != "rule-based":
        card = Tokens(min(_CARD, config.blackboard.reply), config.blackboard.reply)
        yield Batch(
            "reflect", "crux cards", 1, seen, card, 0, most=rooms * DialogueConfig.of(config).crux.cycles
        )

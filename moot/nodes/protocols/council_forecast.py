"""What a council will take: n proposals, R·n·(n-1) critiques, R·n refinements, summaries and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from moot.nodes.memory.perspective import perspective_settings
from moot.nodes.protocols.council.council_settings import TerminationConfig
from moot.nodes.protocols.council.council_views import CRITIQUE_WORDS, PROPOSAL_WORDS
from moot.nodes.protocols.forecast import (
    CHARS_PER_TOKEN,
    WITHOUT_CALLS,
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
from moot.state.config.budgets import PerspectiveConfig

ROUNDS = 3
"""Rounds where none are configured."""

CONVERGENCE_WORDS = 200
DESIGN_CRITERIA = 7


def council_forecast(config: DebateConfig) -> Forecast:
    """Return the forecast of all rounds; a council that converges takes at least the first."""
    n, models, rounds = len(config.debaters), len(speaking(config)), rounds_of(config)
    fewest = rounds if TerminationConfig.of(config).type == "fixed" else 1
    proposal, critique = words_to_tokens(PROPOSAL_WORDS, config), words_to_tokens(CRITIQUE_WORDS, config)
    received = proposal.expected + (n - 1) * critique.expected
    past = _past_tokens(config, rounds)
    criticising = prompt_of(proposal.expected + past, config)
    rolling = rolling_batch(
        config,
        entries=utterances_of(config),
        tokens=n * proposal.expected + rounds * n * received,
    )
    return make_forecast(
        config,
        [
            *reading_batches(config, 1 + 2 * rounds, n * (n - 1) * critique.expected, least=1 + 2 * fewest),
            Batch("turn", "propose", models, prompt_of(0, config), proposal),
            Batch("turn", "critique", models * (n - 1), criticising, critique, rounds, fewest),
            Batch("turn", "refine", models, prompt_of(received + past, config), proposal, rounds, fewest),
            *_perspectives(config, rounds),
            *rolling,
            *_convergence(config, rounds),
            *_verdict(config),
        ],
    )


def rounds_of(config: DebateConfig) -> int:
    """Return the rounds that a council runs: as configured, and more until `turns` utterances are reached."""
    n, rounds = len(config.debaters), config.rounds or ROUNDS
    return max(rounds, -(-((config.turns or 0) - n) // (n * n)))


def utterances_of(config: DebateConfig) -> int:
    """Return what is said in all rounds: the proposals, then critiques and refinements of each."""
    n = len(config.debaters)
    return n + rounds_of(config) * n * n


def _past_tokens(config: DebateConfig, rounds: int) -> float:
    """Return the mean length of a debater's own past in a prompt: its summary, once there is one."""
    before = [_perspective_chars(config, round_no) for round_no in range(1, rounds + 1)]
    settings = config.memory.perspectives
    shown = [
        min(chars, settings.max_chars) if settings.enabled and chars > settings.threshold_chars else chars
        for chars in before
    ]
    return sum(shown) / len(shown) / CHARS_PER_TOKEN


def _perspective_chars(config: DebateConfig, round_no: int) -> float:
    """Return the expected length of one debater's perspective as a round begins, characters."""
    n = len(config.debaters)
    proposal = words_to_tokens(PROPOSAL_WORDS, config).expected
    critique = words_to_tokens(CRITIQUE_WORDS, config).expected
    return CHARS_PER_TOKEN * (round_no * proposal + (round_no - 1) * (n - 1) * critique)


def _perspectives(config: DebateConfig, rounds: int) -> Iterable[Batch]:
    """Return the batches of perspective summaries: all debaters at once as a round after the first begins."""
    planned = [_round_summaries(config, round_no) for round_no in range(2, rounds + 1)]
    for calls, same in groupby(planned):
        times = len(list(same))
        least = times if TerminationConfig.of(config).type == "fixed" else 0
        yield from (_summary_batch(config, "perspective", batch, times, least) for batch in calls)


def _round_summaries(config: DebateConfig, round_no: int) -> tuple[int, ...]:
    """Return the calls in each batch of one round's summaries: notes of the parts, then the summaries."""
    condensing = merging = 0
    for debater in config.names():
        settings = perspective_settings(config, debater)
        chars = _perspective_chars(config, round_no)
        if settings.mode == "rolling" and round_no > 2:
            new = chars - _perspective_chars(config, round_no - 1)
        else:
            new = chars
        if _is_due(chars, settings):
            parts = parts_of(new / CHARS_PER_TOKEN, config)
            condensing += parts if parts > 1 else 0
            merging += 1
    return (condensing, merging) if condensing else (merging,)


def _is_due(chars: float, settings: PerspectiveConfig) -> bool:
    if not settings.enabled or settings.method in WITHOUT_CALLS:
        return False
    if settings.threshold_tokens is not None:
        return chars / CHARS_PER_TOKEN > settings.threshold_tokens
    return chars > settings.threshold_chars


def parts_of(tokens: float, config: DebateConfig) -> int:
    """Return into how many calls the input of one summary is split."""
    room = config.memory.budget.total - 500
    return max(1, int(-(-tokens // max(room, 64))))


def _summary_batch(
    config: DebateConfig, phase: str, calls: int, times: int, least: int | None = None
) -> Batch:
    settings = config.memory.perspectives
    length = settings.max_tokens or settings.max_chars / CHARS_PER_TOKEN
    reply = Tokens(min(length, config.memory.budget.summary), config.memory.budget.summary)
    threshold = settings.threshold_tokens or settings.threshold_chars / CHARS_PER_TOKEN
    return Batch("summary", phase, calls, prompt_of(1.5 * threshold, config, frame=250), reply, times, least)


def _convergence(config: DebateConfig, rounds: int) -> Sequence[Batch]:
    if TerminationConfig.of(config).type != "convergence":
        return []
    material = len(config.debaters) * words_to_tokens(PROPOSAL_WORDS, config).expected
    reply = words_to_tokens(CONVERGENCE_WORDS, config)
    prompt, times = prompt_of(material, config, frame=150), rounds - 1
    return [Batch("evaluate", "convergence", 1, prompt, reply, times, min(1, times))]


def _verdict(config: DebateConfig) -> Sequence[Batch]:
    n, settings = len(config.debaters), config.memory.perspectives
    proposals = n * words_to_tokens(PROPOSAL_WORDS, config).expected
    critiques = n * (n - 1) * words_to_tokens(CRITIQUE_WORDS, config).expected
    is_summarised = config.judge.enabled and _is_due(CHARS_PER_TOKEN * (proposals + critiques), settings)
    own = [_summary_batch(config, "judge's summary", 1, 1)] if is_summarised else []
    length = settings.max_chars / CHARS_PER_TOKEN if is_summarised else critiques
    orders = 2 if config.judge.swap else 1
    return [*own, judge_batch(config, proposals + length, criteria=DESIGN_CRITERIA, orders=orders)]

"""Calibration: a judging model measured on debates that people judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moot.graph.preflight import check_config
from moot.nodes.driving.answering import Answering, Place, run_flow
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judging.agreement import rate_of
from moot.nodes.judging.calibration import PUBLISHED, Benchmark, benchmark
from moot.nodes.judging.human_data import Session, read_sessions
from moot.nodes.judging.quiz import Sat, sit_quiz
from moot.nodes.prompts.request import voice_of
from moot.state.config import DebateConfig
from moot.state.errors import InputError, JudgeFailed
from moot.state.verdict import Rate


@dataclass(frozen=True)
class Measured:
    """How a judge did."""

    settings: dict[str, Benchmark]
    """`debate` and `consultancy`, those that the file has."""
    flips: Rate
    """Sessions whose likelier answer changed with the order of the answers."""
    failed: dict[str, str]
    """Sessions that the judge gave no answer on, and why."""
    model: str
    usage: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "model": self.model,
            "settings": self.settings,
            "published_human_accuracy": dict(PUBLISHED),
            "flips": self.flips,
            "failed": self.failed,
            "usage": self.usage,
        }


def measure_judge(
    path: Path,
    config: DebateConfig,
    environment: Environment,
    *,
    limit: int | None = None,
    swap: bool = True,
) -> Measured:
    """Let the configured judge say which answer is right, session by session.

    Args:
        path: human-judged sessions, see `moot.nodes.judging.human_data`.
        config: whose judge and limits count.
        environment: models.
        limit: only the first so many sessions that people finished judging.
        swap: whether each is judged in both orders of the answers.

    Raises:
        InputError: the file cannot be read, or nobody judged anything in it.
        JudgeFailed: the judge gave no answer at all.
    """
    check_config(config, environment)
    sessions = [session for session in read_sessions(path) if session.judgements and session.speeches][:limit]
    if not sessions:
        raise InputError(f"{str(path)!r} holds no session that people finished judging")
    sat, usage = call_from_sync(_sit, sessions, config, environment, swap)
    if not sat.distributions:
        raise JudgeFailed(f"the judge answered none of {len(sessions)}: {next(iter(sat.failed.values()))}")
    model = voice_of(config, config.judge).model
    return Measured(_settings(sessions, sat), rate_of(sat.flipped, sat.both), dict(sat.failed), model, usage)


async def _sit(
    sessions: Sequence[Session], config: DebateConfig, environment: Environment, swap: bool
) -> tuple[Sat, dict[str, float]]:
    answering = Answering(environment, config, Place())
    flow = sit_quiz(sessions, config, environment.count_for(config), swap=swap)
    return await run_flow(flow, answering), answering.spent.totals


def _settings(sessions: Sequence[Session], sat: Sat) -> dict[str, Benchmark]:
    groups = {
        "debate": [session for session in sessions if session.debate],
        "consultancy": [session for session in sessions if not session.debate],
    }
    return {name: benchmark(sat.distributions, group) for name, group in groups.items() if group}

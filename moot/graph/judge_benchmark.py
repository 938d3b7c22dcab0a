"""Calibration: a judging model measured on debates that people judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moot.graph.preflight import check_config
from moot.nodes.driving.answering import run_to_end
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.judging.agreement import rate_of
from moot.nodes.judging.calibration import PUBLISHED, Benchmark, benchmark, read_sessions
from moot.nodes.judging.quiz import sit_quiz
from moot.nodes.prompts.request import voice_of
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim
from moot.state.errors import InputError, JudgeFailed
from moot.state.verdict import Rate


@dataclass(frozen=True)
class BenchmarkResult:
    """How a judge did."""

    settings: dict[str, Benchmark]
    """`debate` and `consultancy`, those that the file has."""
    flips: Rate
    """Sessions whose likelier answer changed with the order of the answers."""
    failed: Mapping[str, str]
    """Sessions that the judge gave no answer on, and why."""
    model: str
    usage: Mapping[str, float]

    def to_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "model": self.model,
            "settings": self.settings,
            "published_human_accuracy": PUBLISHED,
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
) -> BenchmarkResult:
    """Let the configured judge say which answer is right, session by session.

    The sessions are human-judged ones, see `moot.nodes.judging.calibration`; `limit` takes only the first so
    many that people finished judging, and `swap` has each judged in both orders of the answers.

    Raises:
        InputError: the file cannot be read, or nobody judged anything in it.
        JudgeFailed: the judge gave no answer at all.
    """
    claim = Claim.of_operator(config)
    check_config(claim, environment)
    sessions = [session for session in read_sessions(path) if session.judgements and session.speeches][:limit]
    if not sessions:
        raise InputError(f"{str(path)!r} holds no session that people finished judging")
    flow = sit_quiz(sessions, config, environment.count_for(config), swap=swap)
    sat, asked = call_from_sync(run_to_end, flow, environment, claim)
    if not sat.distributions:
        raise JudgeFailed(f"the judge answered none of {len(sessions)}: {next(iter(sat.failed.values()))}")
    groups = {
        "debate": [session for session in sessions if session.debate],
        "consultancy": [session for session in sessions if not session.debate],
    }
    return BenchmarkResult(
        settings={name: benchmark(sat.distributions, group) for name, group in groups.items() if group},
        flips=rate_of(sat.flipped, sat.both),
        failed=sat.failed,
        model=voice_of(config, config.judge).model,
        usage=asked.spent,
    )

"""Concurrent calls of a council, and its resume after a failure in any phase."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from benchmarks.council import council_config
from moot.api import open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.config_files import make_config
from moot.documents import DebateDocument
from moot.models.registry import Models
from moot.runtime.environment import Environment
from tests.support.fakes import NOW
from tests.support.waiting import LONG_TIMEOUT_S
from tests.unit.test_dry_run import estimate_of, obliging

ROOT = Path(__file__).resolve().parents[2]

TOPIC = "Design a rate limiter."
CONFIG = {
    "protocol": "council",
    "rounds": 2,
    "termination": {"type": "convergence", "threshold": 0.9},
    "memory": {"perspectives": {"threshold_chars": 0}},
}
CALLS = 3 + 6 + 3 + 1 + 3 + 3 + 3 + 1 + 1 + 3
"""Calls to propose, critique, refine, check, summarise, critique, refine, check, judge and test the draft."""


BATCHES = (3, 6, 3, 1, 3, 3, 3, 1, 3, 3, 3, 1, 1, 3)
"""Concurrent calls: proposals; critiques, refinements, check, summaries, twice; last round; judge; tests."""


class BatchModel:
    """Model that replies to a batch of calls after all of them have arrived."""

    def __init__(self, batches: Sequence[int]) -> None:
        self.batch_kinds: list[set[str]] = []
        """Kinds of calls in each batch that arrived completely."""
        self._batches = list(batches)
        self._open: list[ModelCall] = []
        self._batch_event = asyncio.Event()

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Wait for the other calls of the batch, then reply."""
        self._open.append(call)
        batch_event = self._batch_event
        if len(self._open) == self._batches[len(self.batch_kinds)]:
            self.batch_kinds.append({str(each.hints.get("phase", each.purpose)) for each in self._open})
            self._open, self._batch_event = [], asyncio.Event()
            batch_event.set()
        await asyncio.wait_for(batch_event.wait(), LONG_TIMEOUT_S)
        return obliging(call)


@pytest.mark.slow
def test_calls_of_a_phase_run_concurrently(tmp_path: Path) -> None:
    config = council_config(3).model_copy(update={"memory": make_config(CONFIG).memory})
    model = BatchModel(BATCHES)
    with open_debates(
        str(tmp_path / "d.sqlite"), environment=Environment(complete=model.complete)
    ) as debates:
        assert debates.start(TOPIC, config).run()["status"] == "done"
    planned = estimate_of(config)
    assert (len(model.batch_kinds), sum(BATCHES)) == (14, planned.calls_at_least) == (14, 37)
    assert all(len(kinds) == 1 for kinds in model.batch_kinds)


@pytest.mark.slow
def test_council_benchmark_reports_calls_and_times() -> None:
    command = [sys.executable, "-m", "benchmarks.council", "--json", "--latency", "0.01"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    measured = json.loads(done.stdout)
    assert measured["planned_calls"] - 1 <= measured["calls"] <= measured["planned_calls"], (
        "a run may make one call fewer"
    )
    assert measured["critical_path_s"] == pytest.approx(0.13)
    assert measured["waiting_s"] <= measured["wall_s"]


def test_summaries_and_critiques_run_concurrently(tmp_path: Path) -> None:
    model = ConcurrencyMeter()
    _run(tmp_path, model)
    assert model.peaks["summary"] == 3
    assert model.peaks["critique"] == 6


class ConcurrencyMeter:
    """Model that records the peak number of concurrent calls of each kind."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at
        self.calls: list[ModelCall] = []
        self.peaks: Counter[str] = Counter()
        self._open: Counter[str] = Counter()

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Reply, or fail at the call number `fails_at`."""
        if len(self.calls) == self.fails_at:
            raise RuntimeError("the process is gone")
        self.calls.append(call)
        kind = str(call.hints.get("phase")) if call.purpose == "turn" else call.purpose
        self._open[kind] += 1
        self.peaks[kind] = max(self.peaks[kind], self._open[kind])
        for _ in range(50):
            await asyncio.sleep(0.001)
        self._open[kind] -= 1
        return obliging(call)


def _run(folder: Path, model: ConcurrencyMeter) -> DebateDocument:
    config: DebateConfig = make_config(CONFIG)
    environment = Environment(complete=model.complete, clock=lambda: NOW)
    with open_debates(str(folder / "moot.sqlite"), environment=environment) as debates:
        stored = debates.rows()
        debate = debates.get(stored[0].id) if stored else debates.start(TOPIC, config)
        return debate.run()


def _comparable(document: Mapping[str, Any]) -> dict[str, Any]:
    receipts = [{**receipt, "checkpoint": ""} for receipt in document["receipts"]]
    kept = ("transcript", "summaries", "verdict", "verdicts", "solution", "status", "blackboard", "errors")
    return {"receipts": receipts, **{key: document[key] for key in kept}}


@pytest.mark.parametrize(
    "fails_at", [0, 10, 17, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 5, 12, 14, 23, 25))]
)
def test_council_that_failed_in_any_phase_resumes_to_the_same_result(fails_at: int, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    expected = _run(whole, ConcurrencyMeter())
    failing_model = ConcurrencyMeter(fails_at)
    with pytest.raises(RuntimeError, match="the process is gone"):
        _run(stopped, failing_model)
    resumed_model = ConcurrencyMeter()
    document = _run(stopped, resumed_model)
    assert _comparable(document) == _comparable(expected)
    assert len(resumed_model.calls) <= CALLS
    assert document["usage"]["calls"] == CALLS

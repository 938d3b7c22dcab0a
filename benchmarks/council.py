"""Does a council's wall time follow its critical path? Measured against a server on loopback.

    python -m benchmarks.council [--rounds 3] [--latency 0.2] [--json]

Prints calls, peak concurrency by phase, wall from the first request to the last answer, and its ratio to the
critical path that the plan gives.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import moot.models.offline  # noqa: F401  # the server's, which fills schemas with it: not to be timed
from moot.api import open_debates
from moot.debates.dry_run import estimate
from moot.documents import DebateDocument
from moot.state.config import DebateConfig
from tests.support.openai_answers import Act
from tests.support.openai_process import serve_openai

TOPIC = "Design a rate limiter for a public API with 10,000 requests a second, fair to small customers."
ROLES = ("architect", "performance", "testing")


@dataclass(frozen=True)
class Measured:
    """What one run took."""

    calls: int
    planned_calls: int
    wall_s: float
    """From the first request to the last answer."""
    waiting_s: float
    """How long of that any request was in work: what the machine took beside is not in it."""
    critical_path_s: float
    peak_critiques: int
    """Most requests in work while critiques were."""
    document: DebateDocument

    @property
    def ratio(self) -> float:
        """Wall over critical path."""
        return self.wall_s / self.critical_path_s


def council_config(rounds: int = 3) -> DebateConfig:
    """Return a council of three on a model that a server must answer."""
    debaters = [{"name": role.title(), "role": role} for role in ROLES]
    return DebateConfig.model_validate(
        {
            "protocol": "council",
            "topic": TOPIC,
            "rounds": rounds,
            "termination": {"type": "fixed"},
            "model": "test-model",
            "debaters": debaters,
            "limits": {"concurrency": 8},
        }
    )


def slow_reply(request: dict[str, Any], number: int) -> Act | None:
    """Answer speeches as long as the prompts ask for, so that perspectives pass their threshold."""
    if "response_format" in request:
        return None
    prompt = request["messages"][-1]["content"]
    words = 180 if "Criticise " in prompt else 380
    said = " ".join(f"point{number}x{index}" if index % 7 == 0 else "holds" for index in range(words))
    return Act(text=f"The design {number} {said}.")


def measure(config: DebateConfig, latency_s: float, folder: Path) -> Measured:
    """Run a council against a server that takes `latency_s` a call."""
    planned = estimate(config)
    if planned is None:
        raise ValueError(f"{config.protocol!r} has no estimate")
    record = folder / "requests.jsonl"
    with serve_openai(
        "--latency", latency_s, "--record", record, "--plan-function", "benchmarks.council:slow_reply"
    ) as base_url:
        os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="none")
        with open_debates(str(folder / "council.sqlite")) as debates:
            document = debates.start(TOPIC, config).run()
    requests = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    spans = sorted((request["started"], request["ended"]) for request in requests)
    return Measured(
        len(requests),
        planned.calls,
        max(ended for _, ended in spans) - spans[0][0],
        _covered(spans),
        planned.seconds(latency_s),
        max(request["concurrent"] for request in requests if _is_critique(request)),
        document,
    )


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return how long at least one of some spans lasted; they are sorted by their beginnings."""
    total, until = 0.0, spans[0][0]
    for started, ended in spans:
        total += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return total


def _is_critique(request: Mapping[str, Any]) -> bool:
    return "Criticise " in request["body"]["messages"][-1]["content"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description="A council's wall time against its critical path.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds a call")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(council_config(options.rounds), options.latency, Path(folder))
    if options.json:
        figures = {key: value for key, value in asdict(measured).items() if key != "document"}
        print(json.dumps({**figures, "ratio": measured.ratio}))
        return
    print(f"calls                 {measured.calls} (planned {measured.planned_calls})")
    print(f"peak in critiques     {measured.peak_critiques}")
    print(f"critical path         {measured.critical_path_s:.2f} s")
    print(f"requests in work      {measured.waiting_s:.2f} s")
    print(f"wall, first to last   {measured.wall_s:.2f} s")
    print(f"ratio                 {measured.ratio:.2f}")


if __name__ == "__main__":
    main()

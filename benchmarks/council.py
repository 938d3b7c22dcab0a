"""Measure a council's concurrency: compare the wall time with the critical path.

    python -m benchmarks.council [--rounds 3] [--latency 0.2] [--json]

A local server answers the calls. The benchmark prints the number of calls, the peak concurrency of the
critiques, the wall time from the first request to the last answer, and its ratio to the estimated critical
path.
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

import moot.models.offline  # noqa: F401  # the server needs it; its import must not be timed
from moot.api import open_debates
from moot.config import DebateConfig
from moot.debates.dry_run import estimate
from moot.documents import DebateDocument
from tests.support.openai_answers import ServerReply
from tests.support.openai_process import serve_openai

TOPIC = "Design a rate limiter for a public API with 10,000 requests a second, fair to small customers."
ROLES = ("architect", "performance", "testing")


@dataclass(frozen=True)
class CouncilRun:
    """Figures of one run."""

    calls: int
    planned_calls: int
    wall_s: float
    """From the first request to the last answer."""
    waiting_s: float
    """Seconds with at least one request in progress. Time without a request is Moot's own work."""
    critical_path_s: float
    peak_critiques: int
    """Most concurrent requests during the critiques."""
    document: DebateDocument

    @property
    def ratio(self) -> float:
        """Wall time divided by the critical path."""
        return self.wall_s / self.critical_path_s


def council_config(rounds: int = 3) -> DebateConfig:
    """Return the configuration of a council of three on the model of the local server."""
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


def long_reply(request: dict[str, Any], number: int) -> ServerReply | None:
    """Return a message as long as the prompt asks for, so that perspectives pass their threshold."""
    if "response_format" in request:
        return None
    prompt = request["messages"][-1]["content"]
    words = 180 if "Criticise " in prompt else 380
    text = " ".join(f"point{number}x{index}" if index % 7 == 0 else "holds" for index in range(words))
    return ServerReply(text=f"The design {number} {text}.")


def measure(config: DebateConfig, latency_s: float, folder: Path) -> CouncilRun:
    """Run a council against a server that takes `latency_s` seconds for a call."""
    planned = estimate(config)
    if planned is None:
        raise ValueError(f"{config.protocol!r} has no estimate")
    record = folder / "requests.jsonl"
    with serve_openai(
        "--latency", latency_s, "--record", record, "--plan-function", "benchmarks.council:long_reply"
    ) as base_url:
        os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="none")
        with open_debates(str(folder / "council.sqlite")) as debates:
            document = debates.start(TOPIC, config).run()
    requests = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    spans = sorted((request["started"], request["ended"]) for request in requests)
    return CouncilRun(
        len(requests),
        planned.calls,
        max(ended for _, ended in spans) - spans[0][0],
        _busy_seconds(spans),
        planned.seconds(latency_s),
        max(request["concurrent"] for request in requests if _is_critique(request)),
        document,
    )


def _busy_seconds(spans: Sequence[tuple[float, float]]) -> float:
    """Return the seconds covered by at least one span. The spans are sorted by start."""
    total, until = 0.0, spans[0][0]
    for started, ended in spans:
        total += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return total


def _is_critique(request: Mapping[str, Any]) -> bool:
    return "Criticise " in request["body"]["messages"][-1]["content"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="A council's wall time against its critical path.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds for each call")
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
    print(f"requests in progress  {measured.waiting_s:.2f} s")
    print(f"wall time             {measured.wall_s:.2f} s")
    print(f"ratio                 {measured.ratio:.2f}")


if __name__ == "__main__":
    main()

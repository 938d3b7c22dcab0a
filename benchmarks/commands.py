"""Measure how long users wait for a first request, a council, many debates and the offline model.

    python -m benchmarks.commands [--times 3] [--debates 20] [--python PATH] [--quick]

The time until the first request is compared with a LangGraph graph of one node that calls the same model.
Each command runs in a new process against a local server that takes 200 ms for a call. The overlap of many
debates is the time that concurrency saved, divided by the time that it could save at most.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.council import TOPIC, council_config
from moot.api import open_debates
from moot.config import DebateConfig
from moot.debates.dry_run import estimate
from moot.plugins.evals.planned_debates import PlannedDebate, run_many
from tests.support.openai_process import serve_openai

LATENCY_S = 0.2
TURNS = 10
SINGLE_NODE_GRAPH = """
import asyncio
from typing import TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
class State(TypedDict): text: str
async def speak(state): return {"text": (await ChatOpenAI(model="test-model").ainvoke("Hello")).content}
graph = StateGraph(State).add_node(speak).set_entry_point("speak").set_finish_point("speak").compile()
asyncio.run(graph.ainvoke({"text": ""}))
"""
"""Smallest program that calls a model in a LangGraph graph."""
MOOT = "from moot.cli import main; main()"
LONG_REPLIES = ("--plan-function", "benchmarks.council:long_reply")


def request_times(record: Path) -> list[float]:
    """Return the sorted arrival times of the recorded requests, in seconds of the wall clock."""
    return sorted(json.loads(line)["started"] for line in record.read_text(encoding="utf-8").splitlines())


def time_command(
    folder: Path, *words: str, plan: Sequence[str] = (), python: str = sys.executable, code: str = MOOT
) -> tuple[float, float]:
    """Run `moot` or other code in a new process; return the seconds to its first request and to its end."""
    record = folder / f"{time.time_ns()}.jsonl"
    with serve_openai("--latency", LATENCY_S, "--record", record, *plan) as base_url:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "none",
            "MOOT_DB": f"{record}.db",
        }
        run = [python, "-c", code, *words]
        began = time.time()
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        ended = time.time()
    return request_times(record)[0] - began, ended - began


def run_in_parallel(folder: Path, debates: int) -> tuple[float, float]:
    """Run debates at the same time in this process; return the wall seconds and the processor seconds."""
    config = DebateConfig.model_validate({"model": "test-model", "turns": TURNS, "judge": {"enabled": False}})
    planned = [PlannedDebate(f"d{n}", f"Should city {n} ban cars?", config) for n in range(debates)]
    with serve_openai("--latency", LATENCY_S) as base_url:
        os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="none")
        with open_debates(str(folder / "many.sqlite")) as store:
            began, worked = time.perf_counter(), time.process_time()
            errors = [error for _, error in run_many(store, planned, debates) if error]
            assert not errors, errors  # noqa: S101  # the time of failed debates means nothing
            return time.perf_counter() - began, time.process_time() - worked


def throughput(folder: Path, turns: int) -> float:
    """Return the turns of the offline model per second of processor time."""
    config = DebateConfig.model_validate({"turns": turns, "judge": {"enabled": False}})
    with open_debates(str(folder / "offline.sqlite")) as debates:
        debate, worked = debates.start(TOPIC, config), time.process_time()
        debate.run()
        return turns / (time.process_time() - worked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description="Waiting times of commands and debates.")
    parser.add_argument("--times", type=int, default=3, help="runs of each command; the median counts")
    parser.add_argument("--debates", type=int, default=20, help="debates at the same time")
    parser.add_argument("--python", default=sys.executable, help="interpreter with Moot, without its tests")
    parser.add_argument("--quick", action="store_true", help="one run of each command, four debates")
    options = parser.parse_args(arguments)
    times, debates = (1, 4) if options.quick else (options.times, options.debates)
    planned = estimate(council_config())
    assert planned is not None  # noqa: S101  # a council has an estimate
    critical = planned.seconds(LATENCY_S)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "council.json").write_text(json.dumps(council_config().to_json()))
        simple = ("run", TOPIC, "-m", "test-model", "--turns", "1", "--no-judge", "-q")
        pairs = [
            (
                time_command(folder, *simple, python=options.python)[0],
                time_command(folder, python=options.python, code=SINGLE_NODE_GRAPH)[0],
            )
            for _ in range(times)
        ]
        first, plain = map(statistics.median, zip(*pairs, strict=True))
        print(f"`moot run` to the first request: {first:.2f} s (target ≤ 1.0)")
        print(f"    a LangGraph graph with one node: {plain:.2f} s")
        council = ("run", TOPIC, "-c", str(folder / "council.json"), "-q")
        walls = (
            time_command(folder, *council, plan=LONG_REPLIES, python=options.python)[1] for _ in range(times)
        )
        wall = statistics.median(walls)
        target = 1.25 * critical + 1.2
        print(
            f"cold council, 3 members, 3 rounds: {wall:.1f} s, critical path {critical:.1f} s "
            f"(target ≤ {target:.1f})"
        )
        took, worked = run_in_parallel(folder, debates)
        alone = TURNS * LATENCY_S
        share = (debates * alone - took) / (debates * alone - alone)
        times_taken = f"{took:.1f} s, one after another {debates * alone:.0f} s, processor {worked:.1f} s"
        print(f"{debates} debates of {TURNS} calls at once: {times_taken}")
        print(f"    {100 * share:.0f} % of the calls' waiting overlaps (target ≥ 90)")
        per_second = throughput(folder, 60 if options.quick else 300)
        print(f"offline model: {per_second:.0f} turns a second of processor time (target ≥ 80)")


if __name__ == "__main__":
    main()

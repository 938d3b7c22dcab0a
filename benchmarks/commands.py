"""What users wait for: the first request, a cold council, many debates at once, the offline model.

    python -m benchmarks.commands [--times 3] [--debates 20] [--python PATH] [--quick]

The first request is set beside that of a graph of one node that asks the same model, with the same packages.
Commands are cold processes against a server on loopback that takes 200 ms a call. What a request waits for
others is not the machine's: overlap is the share of the waiting that could be spared and was.
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
from moot.api import PlannedDebate, open_debates, run_many
from moot.debates.dry_run import estimate
from moot.state.config import DebateConfig
from tests.support.openai_process import serve_openai

LATENCY_S = 0.2
TURNS = 10
BARE = """
import asyncio
from typing import TypedDict
from langchain_openai import ChatOpenAI
from langgraph.graph import StateGraph
class State(TypedDict): said: str
async def speak(state): return {"said": (await ChatOpenAI(model="test-model").ainvoke("Hello")).content}
graph = StateGraph(State).add_node(speak).set_entry_point("speak").set_finish_point("speak").compile()
asyncio.run(graph.ainvoke({"said": ""}))
"""
"""The least that asks a model in a graph."""
MOOT = "from moot.cli import main; main()"
LENGTHY = ("--plan-function", "benchmarks.council:slow_reply")


def start_times(record: Path) -> list[float]:
    """Return when each recorded request came in, seconds of the wall clock, sorted."""
    return sorted(json.loads(line)["started"] for line in record.read_text(encoding="utf-8").splitlines())


def command(
    folder: Path, *words: str, plan: Sequence[str] = (), python: str = sys.executable, code: str = MOOT
) -> tuple[float, float]:
    """Run a cold `moot`, or other code; return the seconds to its first request, and to its end."""
    record = folder / f"{time.time_ns()}.jsonl"
    with serve_openai("--latency", LATENCY_S, "--record", record, *plan) as base_url:
        there = {
            **os.environ,
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "none",
            "MOOT_DB": f"{record}.db",
        }
        run = [python, "-c", code, *words]
        began = time.time()
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=there)
        ended = time.time()
    return start_times(record)[0] - began, ended - began


def run_in_parallel(folder: Path, debates: int) -> tuple[float, float]:
    """Return the wall seconds of debates run at the same time in this process, and the processor's."""
    config = DebateConfig.model_validate({"model": "test-model", "turns": TURNS, "judge": {"enabled": False}})
    planned = [PlannedDebate(f"d{n}", f"Should city {n} ban cars?", config) for n in range(debates)]
    with serve_openai("--latency", LATENCY_S) as base_url:
        os.environ.update(OPENAI_BASE_URL=base_url, OPENAI_API_KEY="none")
        with open_debates(str(folder / "many.sqlite")) as there:
            began, worked = time.perf_counter(), time.process_time()
            errors = [error for _, error in run_many(there, planned, debates) if error]
            assert not errors, errors  # noqa: S101  # or there is nothing to measure
            return time.perf_counter() - began, time.process_time() - worked


def throughput(folder: Path, turns: int) -> float:
    """Return the offline model's turns a second of processor time."""
    config = DebateConfig.model_validate({"turns": turns, "judge": {"enabled": False}})
    with open_debates(str(folder / "offline.sqlite")) as debates:
        debate, worked = debates.start(TOPIC, config), time.process_time()
        debate.run()
        return turns / (time.process_time() - worked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print one block."""
    parser = argparse.ArgumentParser(description="What users wait for.")
    parser.add_argument("--times", type=int, default=3, help="of each command: the median counts")
    parser.add_argument("--debates", type=int, default=20)
    parser.add_argument("--python", default=sys.executable, help="where Moot is installed, without its tests")
    parser.add_argument("--quick", action="store_true", help="once, four debates")
    given = parser.parse_args(arguments)
    times, debates = (1, 4) if given.quick else (given.times, given.debates)
    planned = estimate(council_config())
    assert planned is not None  # noqa: S101  # a council has one
    critical = planned.seconds(LATENCY_S)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "council.json").write_text(json.dumps(council_config().to_json()))
        simple = ("run", TOPIC, "-m", "test-model", "--turns", "1", "--no-judge", "-q")
        both = [
            (
                command(folder, *simple, python=given.python)[0],
                command(folder, python=given.python, code=BARE)[0],
            )
            for _ in range(times)
        ]
        first, least = map(statistics.median, zip(*both, strict=True))
        print(f"`moot run` to the first request: {first:.2f} s (target ≤ 1.0)")
        print(f"    a graph of one node to the same: {least:.2f} s")
        council = ("run", TOPIC, "-c", str(folder / "council.json"), "-q")
        walls = (command(folder, *council, plan=LENGTHY, python=given.python)[1] for _ in range(times))
        wall = statistics.median(walls)
        most = 1.25 * critical + 1.2
        print(f"a cold council of 3 × 3: {wall:.1f} s, critical path {critical:.1f} s (target ≤ {most:.1f})")
        took, worked = run_in_parallel(folder, debates)
        alone = TURNS * LATENCY_S
        share = (debates * alone - took) / (debates * alone - alone)
        told = f"{took:.1f} s, one after another {debates * alone:.0f} s, processor {worked:.1f} s"
        print(f"{debates} debates of {TURNS} calls at once: {told}")
        print(f"    {100 * share:.0f} % of the calls' waiting overlaps (target ≥ 90)")
        per_second = throughput(folder, 60 if given.quick else 300)
        print(f"offline model: {per_second:.0f} turns a second of processor time (target ≥ 80)")


if __name__ == "__main__":
    main()

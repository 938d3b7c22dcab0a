"""Measure time and file size per turn of long debates, compared with two plain LangGraph loops.

    python -m benchmarks.growth [--turns 10000] [--plain-turns 1000]

The benchmark runs a debate with `VariedMessages`, a plain loop with a `DeltaChannel`, and a plain loop with
ordinary reducers. For each it prints the time and the growth of the SQLite file over the second and the last
tenth of the turns, and the time to load the state. It then prints the ratios with their targets, and the time
of `moot resume --turns 1` after all turns and after ten turns. The garbage collector has the threshold that
the command line sets.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import operator
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Annotated, Any

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from benchmarks.varied_messages import VariedMessages
from moot.cli import ALLOCATIONS
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.state.conversation import SNAPSHOT_FREQUENCY
from moot.state.reducers import append
from moot.storage.checkpoints import open_saver

THREAD = "00000000-0000-0000-0000-000000000001"
TURNS_PER_SWITCH = 100
TEXT = "A message of eight hundred characters, as a debater would write it, more or less. " * 10


@dataclass
class Growth:
    """Time and file size of a run, measured at intervals."""

    name: str
    path: Path
    turns: int
    marks: list[tuple[int, float, float, int]] = field(default_factory=list)
    """Turn, wall seconds and processor seconds until then, and bytes of the files."""
    load_s: float = 0.0

    def add_mark(self, turn: int, wall_s: float, cpu_s: float) -> None:
        """Add the time of the turns since the last mark, and the current size of the files."""
        sizes = sum(f.stat().st_size for f in self.path.parent.glob(self.path.name + "*") if f.is_file())
        _, wall, cpu, _ = self.marks[-1] if self.marks else (0, 0.0, 0.0, 0)
        self.marks.append((turn, wall + wall_s, cpu + cpu_s, sizes))

    def span(self, start: float, end: float) -> tuple[float, float, float]:
        """Return wall ms, processor ms and kilobytes per turn between two shares of the run."""
        first = min(self.marks, key=lambda mark: abs(mark[0] - start * self.turns))
        last = min(self.marks, key=lambda mark: abs(mark[0] - end * self.turns))
        turns = last[0] - first[0]
        wall, cpu, size = ((last[column] - first[column]) / turns for column in (1, 2, 3))
        return wall * 1000, cpu * 1000, size / 1000

    def report(self) -> str:
        """Return one line of figures."""
        early_ms, early_cpu, early_kb = self.span(0.1, 0.2)
        late_ms, late_cpu, late_kb = self.span(0.9, 1.0)
        return (
            f"{self.name:<22} {self.turns:>6} turns  {self.marks[-1][3] / 1e6:8.1f} MB  "
            f"ms/turn {early_ms:6.2f} → {late_ms:6.2f} (× {late_ms / early_ms:4.2f})  "
            f"cpu {early_cpu:6.2f} → {late_cpu:6.2f} (× {late_cpu / early_cpu:4.2f})  "
            f"KB/turn {early_kb:7.1f} → {late_kb:7.1f} (× {late_kb / early_kb:4.2f})  "
            f"load {self.load_s:5.2f} s"
        )


async def run_alternately(*runs: tuple[Growth, AsyncIterator[int]]) -> None:
    """Run some turns of each in turn, so that changes in the speed of the machine affect all of them."""
    active = list(runs)
    while active:
        for growth, turns in [*active]:
            wall, cpu = time.perf_counter(), time.process_time()
            done = None
            for _ in range(max(1, min(TURNS_PER_SWITCH, growth.turns // 10))):
                done = await anext(turns, None)
                if done is None:
                    break
            if done is None:
                active.remove((growth, turns))
            else:
                growth.add_mark(done, time.perf_counter() - wall, time.process_time() - cpu)


async def run_moot(growth: Growth) -> AsyncIterator[int]:
    """Run a debate with varied messages, and yield the number of turns after each turn."""
    path, turns = growth.path, growth.turns
    config: Any = {"configurable": {"thread_id": THREAD}}
    async with open_saver(str(path)) as saver:
        # The name of the offline model lets `moot resume` continue the same database.
        graph = build_graph(saver, models={"offline": VariedMessages()})
        stream = graph.astream(
            {"topic": "Should a small team run its own database servers?"},
            config,
            context=DebateConfig(turns=turns, seed=1),
            stream_mode="custom",
            durability="sync",
        )
        done = 0
        async for event in stream:
            if event["event"] == "entry":
                done += 1
                yield done
        started = time.perf_counter()
        snapshot = await graph.aget_state(config)
        growth.load_s = time.perf_counter() - started
        worst = max(receipt["total_tokens"] for receipt in snapshot.values["receipts"])
        assert worst <= snapshot.values["config"]["memory"]["budget"]["total"], worst  # noqa: S101  # the benchmark must not run over budget
        assert len(snapshot.values["receipts"]) == turns  # noqa: S101  # every turn has its receipt
        print(f"largest prompt: {worst} tokens of {snapshot.values['config']['memory']['budget']['total']}")


def time_resume(path: Path, times: int) -> float:
    """Return the median seconds of `moot resume --turns 1`, including the start of the process."""
    command = [sys.executable, "-c", "from moot.cli import main; main()", "resume", THREAD]
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run([*command, "--turns", "1", "--quiet", "--db", str(path)], check=True, stdout=DEVNULL)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def ratios(ours: Growth, plain_loop: Growth) -> Iterator[str]:
    """Yield the lines of the ratios with their targets."""
    (_, second, _), (_, last, kb) = ours.span(0.1, 0.2), ours.span(0.9, 1)
    relative = ours.span(0.1, 1)[1] / plain_loop.span(0.1, 1)[1]
    yield f"processor time per turn, relative to the plain loop: × {relative:.1f} (target ≤ 6)"
    own = plain_loop.span(0.9, 1)[1] / plain_loop.span(0.1, 0.2)[1]
    yield f"processor time per turn, last tenth relative to second: × {last / second:.2f} (target ≤ 1.05)"
    yield f"    plain loop: × {own:.2f}"
    yield f"KB per turn at the end: {kb:.1f} (target ≤ 15)"


def _loop(state_type: type, append_message: Callable[[int], Any]) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(state_type)
    builder.add_node("turn", lambda state: {"transcript": append_message(state["n"]), "n": state["n"] + 1})
    builder.add_edge(START, "turn")
    builder.add_conditional_edges("turn", lambda state: "turn" if state["n"] < state["turns"] else END)
    return builder


class PlainState(TypedDict):
    """State with a transcript that has an ordinary reducer."""

    transcript: Annotated[list[dict[str, Any]], operator.add]
    n: int
    turns: int


class DeltaState(TypedDict):
    """State with a transcript in a delta channel."""

    transcript: Annotated[
        list[dict[str, Any]], DeltaChannel(append, list, snapshot_frequency=SNAPSHOT_FREQUENCY)
    ]
    n: int
    turns: int


async def run_plain_loop(growth: Growth, state_type: type) -> AsyncIterator[int]:
    """Run a LangGraph loop that appends a message each turn; yield the number of turns after each."""
    builder = _loop(state_type, lambda n: [{"id": f"m{n:06d}", "speaker": "ada", "content": TEXT}])
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 10**9}
    async with AsyncSqliteSaver.from_conn_string(str(growth.path)) as saver:
        graph = builder.compile(checkpointer=saver)
        values = {"n": 0, "turns": growth.turns, "transcript": []}
        done = 0
        async for _ in graph.astream(values, config, stream_mode="updates", durability="sync"):
            done += 1
            yield done
        started = time.perf_counter()
        await graph.aget_state(config)
        growth.load_s = time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000, help="turns of Moot and of the delta loop")
    parser.add_argument("--plain-turns", type=int, default=1_000, help="turns with plain reducers")
    parser.add_argument("--keep", type=Path, help="leave the database files in this folder")
    options = parser.parse_args(arguments)
    gc.set_threshold(ALLOCATIONS)
    with tempfile.TemporaryDirectory() as folder:
        home = options.keep or Path(folder)
        ours = Growth("Moot", home / "moot.sqlite", options.turns)
        delta = Growth("DeltaChannel loop", home / "delta.sqlite", options.turns)
        plain = Growth("plain-reducer loop", home / "plain.sqlite", options.plain_turns)
        asyncio.run(run_alternately((ours, run_moot(ours)), (delta, run_plain_loop(delta, DeltaState))))
        asyncio.run(run_alternately((plain, run_plain_loop(plain, PlainState))))
        print("\n".join([*(each.report() for each in (ours, delta, plain)), *ratios(ours, delta)]))
        ten = Growth("Moot", home / "ten.sqlite", 10)
        asyncio.run(run_alternately((ten, run_moot(ten))))
        times = 3 if options.turns > 1_000 else 1
        took, at_ten = (time_resume(home / file, times) for file in ("moot.sqlite", "ten.sqlite"))
        times_taken = f"{took:.1f} s, after ten turns {at_ten:.1f} s: × {took / at_ten:.2f} (target ≤ 2.5)"
        print(f"`moot resume --turns 1`: {times_taken}")


if __name__ == "__main__":
    main()

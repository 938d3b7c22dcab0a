"""What ten thousand turns cost: time and file size a turn, beside two plain LangGraph loops in the same run.

    python -m benchmarks.growth [--turns 10000] [--plain-turns 1000]

Prints, for Moot with `SpeechModel`, a bare `DeltaChannel` loop beside it and a loop with plain reducers:
time and growth of the SQLite file over the second and the last tenth of the turns, and how long a state takes
to load; then the ratios that have targets, and `moot resume --turns 1` beside the same at ten turns. All run
with the collector of cycles as the command line sets it.
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

from benchmarks.speeches import SpeechModel
from moot.cli import ALLOCATIONS
from moot.graph.debate import build_graph
from moot.state.config import DebateConfig
from moot.state.conversation import SNAPSHOT_FREQUENCY
from moot.state.reducers import append
from moot.storage.checkpoints import open_saver

THREAD = "00000000-0000-0000-0000-000000000001"
STRIDE = 100
TEXT = "A message of eight hundred characters, as a debater would write it, more or less. " * 10


@dataclass
class Growth:
    """Time and file size of a run, taken every so many turns."""

    name: str
    path: Path
    turns: int
    marks: list[tuple[int, float, float, int]] = field(default_factory=list)
    """Turn, its own wall clock and processor seconds so far, bytes."""
    load_s: float = 0.0

    def mark(self, turn: int, wall_s: float, cpu_s: float) -> None:
        """Note what the turns since the last mark took, and the size after them."""
        sizes = sum(f.stat().st_size for f in self.path.parent.glob(self.path.name + "*") if f.is_file())
        _, wall, cpu, _ = self.marks[-1] if self.marks else (0, 0.0, 0.0, 0)
        self.marks.append((turn, wall + wall_s, cpu + cpu_s, sizes))

    def span(self, start: float, end: float) -> tuple[float, float, float]:
        """Return milliseconds, processor milliseconds and kilobytes a turn between two shares of the run."""
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


async def alternating(*runs: tuple[Growth, AsyncIterator[int]]) -> None:
    """Run each for a hundred turns, then the next, and so on: a machine is not as fast all the time."""
    going = list(runs)
    while going:
        for growth, turns in [*going]:
            wall, cpu = time.perf_counter(), time.process_time()
            done = None
            for _ in range(max(1, min(STRIDE, growth.turns // 10))):
                done = await anext(turns, None)
                if done is None:
                    break
            if done is None:
                going.remove((growth, turns))
            else:
                growth.mark(done, time.perf_counter() - wall, time.process_time() - cpu)


async def moot(growth: Growth) -> AsyncIterator[int]:
    """Run a Moot debate of varied speeches; yield after each turn how many there were."""
    path, turns = growth.path, growth.turns
    config: Any = {"configurable": {"thread_id": THREAD}}
    async with open_saver(str(path)) as saver:
        # Under the offline model's name, so that `moot resume` can go on with the same database.
        graph = build_graph(saver, models={"offline": SpeechModel()})
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
        assert worst <= snapshot.values["config"]["memory"]["budget"]["total"], worst  # noqa: S101  # the claim
        assert len(snapshot.values["receipts"]) == turns  # noqa: S101  # nothing lost
        print(f"largest prompt: {worst} tokens of {snapshot.values['config']['memory']['budget']['total']}")


def resuming(path: Path, times: int) -> float:
    """Return the median seconds of `moot resume --turns 1`, process and all."""
    command = [sys.executable, "-c", "from moot.cli import main; main()", "resume", THREAD]
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run([*command, "--turns", "1", "--quiet", "--db", str(path)], check=True, stdout=DEVNULL)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def ratios(ours: Growth, bare_loop: Growth) -> Iterator[str]:
    """Yield the ratios that have a target."""
    (_, second, _), (_, last, kb) = ours.span(0.1, 0.2), ours.span(0.9, 1)
    beside = ours.span(0.1, 1)[1] / bare_loop.span(0.1, 1)[1]
    yield f"processor time a turn, beside the bare loop's: × {beside:.1f} (target ≤ 6)"
    own = bare_loop.span(0.9, 1)[1] / bare_loop.span(0.1, 0.2)[1]
    yield f"processor time a turn, last beside second tenth: × {last / second:.2f} (target ≤ 1.05)"
    yield f"    the bare loop's: × {own:.2f}"
    yield f"KB a turn at the end: {kb:.1f} (target ≤ 15)"


def _loop(state_type: type, append_message: Callable[[int], Any]) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(state_type)
    builder.add_node("turn", lambda state: {"transcript": append_message(state["n"]), "n": state["n"] + 1})
    builder.add_edge(START, "turn")
    builder.add_conditional_edges("turn", lambda state: "turn" if state["n"] < state["turns"] else END)
    return builder


class PlainState(TypedDict):
    """A transcript with an ordinary reducer."""

    transcript: Annotated[list[dict[str, Any]], operator.add]
    n: int
    turns: int


class DeltaState(TypedDict):
    """A transcript as a delta channel."""

    transcript: Annotated[
        list[dict[str, Any]], DeltaChannel(append, list, snapshot_frequency=SNAPSHOT_FREQUENCY)
    ]
    n: int
    turns: int


async def bare(growth: Growth, state_type: type) -> AsyncIterator[int]:
    """Run a LangGraph loop of one node that appends a message a turn; yield how many there were."""
    builder = _loop(state_type, lambda n: [{"id": f"m{n:06d}", "speaker": "ada", "content": TEXT}])
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 10**9}
    async with AsyncSqliteSaver.from_conn_string(str(growth.path)) as saver:
        graph = builder.compile(checkpointer=saver)
        given = {"n": 0, "turns": growth.turns, "transcript": []}
        done = 0
        async for _ in graph.astream(given, config, stream_mode="updates", durability="sync"):
            done += 1
            yield done
        started = time.perf_counter()
        await graph.aget_state(config)
        growth.load_s = time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all three and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--plain-turns", type=int, default=1_000)
    parser.add_argument("--keep", type=Path, help="leave the database files in this folder")
    options = parser.parse_args(arguments)
    gc.set_threshold(ALLOCATIONS)
    with tempfile.TemporaryDirectory() as folder:
        home = options.keep or Path(folder)
        ours = Growth("Moot", home / "moot.sqlite", options.turns)
        delta = Growth("bare DeltaChannel loop", home / "delta.sqlite", options.turns)
        plain = Growth("plain-reducer loop", home / "plain.sqlite", options.plain_turns)
        asyncio.run(alternating((ours, moot(ours)), (delta, bare(delta, DeltaState))))
        asyncio.run(alternating((plain, bare(plain, PlainState))))
        print("\n".join([*(each.report() for each in (ours, delta, plain)), *ratios(ours, delta)]))
        ten = Growth("Moot", home / "ten.sqlite", 10)
        asyncio.run(alternating((ten, moot(ten))))
        times = 3 if options.turns > 1_000 else 1
        took, at_ten = (resuming(home / file, times) for file in ("moot.sqlite", "ten.sqlite"))
        told = f"{took:.1f} s, at ten turns {at_ten:.1f} s: × {took / at_ten:.2f} (target ≤ 2.5)"
        print(f"`moot resume --turns 1`: {told}")


if __name__ == "__main__":
    main()

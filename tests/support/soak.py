"""`make soak`: interrupt debates at random moments for a limited time. A lost result gives exit code 1.

    python -m tests.support.soak [--seconds 600] [--seed N] [--part kills [--count 300]]

Without `--part` all parts run: workers for half of the time, then the other parts in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

from tests.support.killing import SCENARIOS, KillRunner, Scenario, ScenarioResult, failing_plan
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.postgres_proxy import PostgresProxy, postgres_proxy
from tests.support.postgres_server import new_database, postgres_server, restart
from tests.support.transcripts import message_texts
from tests.support.waiting import LONG_TIMEOUT_S
from tests.support.worker_fleet import Fleet, enqueue_debates, planned_debates, run_without_workers
from tests.support.writer_log import epochs_do_not_overlap, writers_by_debate

KILLS_PER_SCENARIO = 4
"""Kills in each scenario. With more kills fewer scenarios would run."""


class Soak:
    """Runs the parts, and counts the faults and the problems."""

    def __init__(self, folder: Path, server: str, seed: int) -> None:
        self.folder, self.server, self.rng = folder, server, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self._whole: dict[str, ScenarioResult] = {}
        self._numbers = count()

    def run_killed(self, scenario: Scenario, backend: str) -> None:
        """Kill the commands of a scenario at random moments."""
        run = KillRunner(self._new_folder(), self.rng).run(
            scenario, self._database(backend), kills=KILLS_PER_SCENARIO
        )
        self.done += Counter(scenarios=1, kills=len(run.kills))
        self._compare(f"{scenario.name} on {backend}, killed", scenario, run)
        again = run.repeated_calls(self._uninterrupted(scenario))
        if again:
            self.problems.append(f"{scenario.name} on {backend}: {again} finished calls repeated")

    def run_with_faults(self, scenario: Scenario, backend: str) -> None:
        """Run a scenario in which 20 % of the calls fail."""
        faults: list[ServerReply] = []
        plan = failing_plan(0.2, self.rng.randrange(10**9), faults)
        run = KillRunner(self._new_folder(), self.rng, plan=plan).run(scenario, self._database(backend))
        self.done += Counter(faulty=1, faults=len(faults), exits_3=run.failed_runs)
        self._compare(f"{scenario.name} on {backend}, with faults", scenario, run)

    def run_on_full_disk(self, scenario: Scenario, backend: str) -> None:
        """Run a scenario with limits on the size of files, so that writes fail at random places."""
        runner = KillRunner(self._new_folder(), self.rng)
        run = runner.run(scenario, self._database("SQLite"), disk_full=KILLS_PER_SCENARIO)
        self.done += Counter(full=run.disk_full_exits)
        self._compare(f"{scenario.name}, with a full disk", scenario, run)

    def resume_twice(self, _: Scenario, backend: str) -> None:
        """Resume one debate twice at the same moment. Only one process may continue it."""
        moot, db = Moot(self._new_folder()), self._database(backend)
        words = ("run", "Should we?", "--turns", "8", "--id", "d", "--no-judge", "-m", "m")
        with OpenAIServer(latency=0.1) as server:
            key: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "MOOT_DB": db}
            with moot.start(*words, **key) as first:
                while len(server.requests) < 2:
                    time.sleep(0.01)
                first.kill()
            processes = [moot.start("resume", "d", **key) for _ in range(2)]
            codes = sorted(each.wait(LONG_TIMEOUT_S) for each in processes)
        self.done += Counter(double_resumes=1)
        if codes not in ([0, 5], [0, 0]):  # the second may start after the first has finished
            self.problems.append(f"two resumes on {backend} ended with {codes}")
        if max(Counter(each.body for each in server.requests).values()) > 2:
            self.problems.append(f"two resumes on {backend} both made the same call")

    def run_workers(self, debates: int, seconds: float) -> None:
        """Run debates with workers over a slow network, and stop one for longer than its lease.

        Every 3 s, kill a worker, cut the network, make it silent, or crash the database server.
        """
        url, folder, each = new_database(self.server), self._new_folder(), planned_debates(debates)
        with OpenAIServer() as server, _openai_environment(server):
            expected = run_without_workers(each, str(folder / "alone.sqlite"))
        queue, until, stopped = enqueue_debates(each, url), time.monotonic() + seconds, ""
        with OpenAIServer(latency=0.3) as server, postgres_proxy(self.server) as network:
            network.delay_s = 0.002
            fleet = Fleet(folder, network.url(url), server)
            for _ in range(4):
                fleet.start("-q")
            since = time.monotonic()
            while queue.entries() and time.monotonic() < until:
                time.sleep(3)
                busy = [
                    name for name in fleet.running if name != stopped and fleet.last_written_debates(name)
                ]
                busy = [name for name in busy if fleet.running[name].poll() is None]
                if busy and not stopped:
                    stopped = self.rng.choice(busy)
                    fleet.signal(stopped, signal.SIGSTOP)
                    since = time.monotonic()
                elif busy:
                    self._disturb(fleet, busy, network)
                if stopped and time.monotonic() - since > 35:
                    fleet.signal(stopped, signal.SIGCONT)
            left = len(queue.entries())
            fleet.stop_all()
        self.done += Counter(workers=debates - left, epochs=sum(map(len, writers_by_debate(url).values())))
        if left:
            self.problems.append(f"{left} of {debates} debates not finished after {seconds:.0f} s of workers")
        if not epochs_do_not_overlap(url):
            self.problems.append("a debate had two writers at once")
        with _open_debates(url) as store:
            for row in store.rows():
                if row.status == "done" and message_texts(store.get(row.id).document()) != expected[row.name]:
                    self.problems.append(f"{row.name} differs from the run without workers")

    def _disturb(self, fleet: Fleet, busy: Sequence[str], network: PostgresProxy) -> None:
        fault = self.rng.choice(("workers_killed", "networks_cut", "networks_silent", "crashes"))
        self.done[fault] += 1
        if fault == "workers_killed":
            fleet.signal(self.rng.choice(busy), signal.SIGKILL)
            fleet.start("-q")
        elif fault == "crashes":
            restart(self.server, "immediate")
        else:
            (network.cut if fault == "networks_cut" else network.silence)()
            time.sleep(self.rng.uniform(0, 5))
            network.restore()

    def _compare(self, what: str, scenario: Scenario, run: ScenarioResult) -> None:
        self.problems += [f"{what}: {each}" for each in run.problems]
        if not run.problems:
            lost = run.changed_debates(self._uninterrupted(scenario))
            self.problems += [f"{what}: {name} differs from the uninterrupted run" for name in lost]

    def _uninterrupted(self, scenario: Scenario) -> ScenarioResult:
        if scenario.name not in self._whole:
            folder = self._new_folder()
            result = KillRunner(folder, self.rng).run(scenario, str(folder / "whole.sqlite"))
            assert not result.problems, result.problems
            self._whole[scenario.name] = result
        return self._whole[scenario.name]

    def _new_folder(self) -> Path:
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def _database(self, backend: str) -> str:
        return new_database(self.server) if backend == "Postgres" else str(self._new_folder() / "moot.sqlite")


@contextmanager
def _openai_environment(server: OpenAIServer) -> Iterator[None]:
    os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    yield
    del os.environ["OPENAI_BASE_URL"]


@contextmanager
def _open_debates(url: str) -> Iterator[Any]:
    from moot import open_debates

    with open_debates(url) as debates:
        yield debates


def main() -> int:
    """Run the parts until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--part", choices=("kills", "faulty", "full", "double_resumes", "workers"))
    parser.add_argument(
        "--count", type=int, default=10**9, help="number of faults of the part after which to stop"
    )
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="moot-soak-") as folder, postgres_server() as server:
        soak = Soak(Path(folder), server, options.seed)
        if options.part in (None, "workers"):
            debates = options.count if options.part else int(options.seconds / 25)
            soak.run_workers(debates, options.seconds / (1 if options.part else 2))
        turns = [(each, backend) for each in SCENARIOS.values() for backend in ("SQLite", "Postgres")]
        soak.rng.shuffle(turns)
        parts = {
            "kills": soak.run_killed,
            "faulty": soak.run_with_faults,
            "full": soak.run_on_full_disk,
            "double_resumes": soak.resume_twice,
        }
        names = [options.part] if options.part else [*parts]
        for number, (scenario, backend) in enumerate(cycle(turns)):
            if time.monotonic() > until or soak.done[options.part] >= options.count:
                break
            parts[names[number % len(names)]](scenario, backend)
            print(json.dumps({**soak.done, "problems": soak.problems}), file=sys.stderr, flush=True)
        print(json.dumps({"seed": options.seed, **soak.done, "problems": soak.problems}, indent=2))
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())

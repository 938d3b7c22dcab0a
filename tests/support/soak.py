"""`make soak`: whatever can stop a debate, at random moments, for a bounded time; exits with 1 on a loss.

    python -m tests.support.soak [--seconds 600] [--seed N] [--part kills [--count 300]]

Without a part each has its turn: half of the time workers, then one after another of the rest.
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
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

from tests.support.killing import SCENARIOS, KillRunner, RuleResult, Scenario, failing
from tests.support.moot_command import Moot
from tests.support.openai_server import Act, OpenAIServer
from tests.support.patience import LONG_TIMEOUT_S
from tests.support.postgres_server import new_database, postgres_server
from tests.support.transcripts import message_texts
from tests.support.worker_fleet import Fleet, enqueue_debates, plan_debate, run_alone
from tests.support.writer_log import epochs_do_not_overlap, writers

KILLS = 4
"""Of one scenario: more, and fewer scenarios would have their turn."""


class Soak:
    """Counts what was done and what went wrong."""

    def __init__(self, folder: Path, server: str, seed: int) -> None:
        """Begin."""
        self.folder, self.server, self.rng = folder, server, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._whole: dict[str, RuleResult] = {}
        self._numbers = count()

    def killed(self, scenario: Scenario, backend: str) -> None:
        """Kill a scenario at random moments."""
        run = KillRunner(self._new(), self.rng).run(scenario, self._database(backend), kills=KILLS)
        self.done += Counter(scenarios=1, kills=len(run.kills))
        self._hold(f"{scenario.name} on {backend}, killed", scenario, run)
        again = run.called_again(self._uninterrupted(scenario))
        if again:
            self.wrong.append(f"{scenario.name} on {backend}: {again} finished calls paid again")

    def faulty(self, scenario: Scenario, backend: str) -> None:
        """Have 20 % of a scenario's calls fail."""
        faults: list[Act] = []
        plan = failing(0.2, self.rng.randrange(10**9), faults)
        run = KillRunner(self._new(), self.rng, plan=plan).run(scenario, self._database(backend))
        self.done += Counter(faulty=1, faults=len(faults), exits_3=run.failed)
        self._hold(f"{scenario.name} on {backend}, with faults", scenario, run)

    def filled(self, scenario: Scenario, backend: str) -> None:
        """Leave a scenario's processes so little room in files that writing fails, anywhere."""
        killing = KillRunner(self._new(), self.rng)
        run = killing.run(scenario, self._database("SQLite"), full=KILLS)
        self.done += Counter(full=run.full)
        self._hold(f"{scenario.name}, without room", scenario, run)

    def resumed_twice(self, _: Scenario, backend: str) -> None:
        """Resume one debate twice at one moment: one proceeds."""
        moot, db = Moot(self._new()), self._database(backend)
        words = ("run", "Should we?", "--turns", "8", "--id", "d", "--no-judge", "-m", "m")
        with OpenAIServer(latency=0.1) as server:
            key: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "MOOT_DB": db}
            with moot.start(*words, **key) as first:
                while len(server.requests) < 2:
                    time.sleep(0.01)
                first.kill()
            both = [moot.start("resume", "d", **key) for _ in range(2)]
            codes = sorted(each.wait(LONG_TIMEOUT_S) for each in both)
        self.done += Counter(double_resumes=1)
        if codes not in ([0, 5], [0, 0]):  # the second may have come when the first was done
            self.wrong.append(f"two resumes on {backend} ended with {codes}")
        if max(Counter(each.body for each in server.requests).values()) > 2:
            self.wrong.append(f"two resumes on {backend} both paid")

    def worked(self, debates: int, seconds: float) -> None:
        """Have workers run debates, one killed every 3 s, one stopped past its lease."""
        url, folder, each = new_database(self.server), self._new(), plan_debate(debates)
        with OpenAIServer() as server, _pointing_at(server):
            serially = run_alone(each, str(folder / "alone.sqlite"))
        queue, until, stopped = enqueue_debates(each, url), time.monotonic() + seconds, ""
        with OpenAIServer(latency=0.3) as server:
            fleet = Fleet(folder, url, server)
            for _ in range(4):
                fleet.start("-q")
            since = time.monotonic()
            while queue.entries() and time.monotonic() < until:
                time.sleep(3)
                able = [name for name in fleet.running if name != stopped and fleet.writing(name)]
                able = [name for name in able if fleet.running[name].poll() is None]
                if able and not stopped:
                    stopped = self.rng.choice(able)
                    fleet.signal(stopped, signal.SIGSTOP)
                    since = time.monotonic()
                elif able:
                    fleet.signal(self.rng.choice(able), signal.SIGKILL)
                    self.done["workers_killed"] += 1
                    fleet.start("-q")
                if stopped and time.monotonic() - since > 35:
                    fleet.signal(stopped, signal.SIGCONT)
            left = len(queue.entries())
            fleet.stop_all()
        self.done += Counter(workers=debates - left, epochs=sum(map(len, writers(url).values())))
        if left:
            self.wrong.append(f"{left} of {debates} debates not over after {seconds:.0f} s of workers")
        if not epochs_do_not_overlap(url):
            self.wrong.append("two writers of one debate")
        with _opened(url) as there:
            for row in there.rows():
                if row.status == "done" and message_texts(there.get(row.id).document()) != serially[row.name]:
                    self.wrong.append(f"{row.name} is not what it is alone")

    def _hold(self, what: str, scenario: Scenario, run: RuleResult) -> None:
        self.wrong += [f"{what}: {each}" for each in run.wrong]
        if not run.wrong:
            lost = run.lost(self._uninterrupted(scenario))
            self.wrong += [f"{what}: {name} is not what it is uninterrupted" for name in lost]

    def _uninterrupted(self, scenario: Scenario) -> RuleResult:
        if scenario.name not in self._whole:
            folder = self._new()
            made = KillRunner(folder, self.rng).run(scenario, str(folder / "whole.sqlite"))
            assert not made.wrong, made.wrong
            self._whole[scenario.name] = made
        return self._whole[scenario.name]

    def _new(self) -> Path:
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def _database(self, backend: str) -> str:
        return new_database(self.server) if backend == "Postgres" else str(self._new() / "moot.sqlite")


@contextmanager
def _pointing_at(server: OpenAIServer) -> Iterator[None]:
    os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k")
    yield
    del os.environ["OPENAI_BASE_URL"]


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    from moot import open_debates

    with open_debates(url) as debates:
        yield debates


def main() -> int:
    """Run until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--part", choices=("kills", "faulty", "full", "double_resumes", "workers"))
    parser.add_argument("--count", type=int, default=10**9, help="of a part, to stop after")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="moot-soak-") as folder, postgres_server() as server:
        soak = Soak(Path(folder), server, options.seed)
        if options.part in (None, "workers"):
            debates = options.count if options.part else int(options.seconds / 25)
            soak.worked(debates, options.seconds / (1 if options.part else 2))
        turns = [(each, backend) for each in SCENARIOS.values() for backend in ("SQLite", "Postgres")]
        soak.rng.shuffle(turns)
        parts = {
            "kills": soak.killed,
            "faulty": soak.faulty,
            "full": soak.filled,
            "double_resumes": soak.resumed_twice,
        }
        wanted = [options.part] if options.part else [*parts]
        for number, (scenario, backend) in enumerate(cycle(turns)):
            if time.monotonic() > until or soak.done[options.part] >= options.count:
                break
            parts[wanted[number % len(wanted)]](scenario, backend)
            print(json.dumps({**soak.done, "wrong": soak.wrong}), file=sys.stderr, flush=True)
        print(json.dumps({"seed": options.seed, **soak.done, "wrong": soak.wrong}, indent=2))
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

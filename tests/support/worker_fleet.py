"""Workers on one Postgres database, each a process that can be killed or suspended."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moot import DebateConfig, open_debates
from moot.api import PlannedDebate, create_planned_debate, run_many
from moot.work_queue import WorkQueue
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer
from tests.support.transcripts import message_texts
from tests.support.warm_process import WarmProcess
from tests.support.writer_log import keep_log, writers

CONFIG = DebateConfig.model_validate(
    {"model": "m", "turns": 3, "openings": "sequential", "seed": 1, "judge": {"enabled": False}}
)


def plan_debate(number: int) -> list[PlannedDebate]:
    """Return so many debates."""
    return [PlannedDebate(f"d{n}", f"Should city {n} ban cars?", CONFIG) for n in range(number)]


def run_alone(debates: Sequence[PlannedDebate], db: str) -> dict[str, Any]:
    """Return what debates say that are run in this process, by name."""
    with open_debates(db) as there:
        errors = [error for _, error in run_many(there, debates, 4) if error]
        assert not errors, errors
        return {row.name: message_texts(there.get(row.id).document()) for row in there.rows()}


def enqueue_debates(debates: Sequence[PlannedDebate], url: str) -> WorkQueue:
    """Put debates into the queue of a database that keeps a log of its writers."""
    with open_debates(url) as there:
        queue = WorkQueue(url)
        assert queue.add([create_planned_debate(there, each).id for each in debates]) == len(debates)
        assert queue.add([row.id for row in there.rows()]) == 0
    keep_log(url)
    return queue


@dataclass
class Fleet:
    """Workers of one database."""

    folder: Path
    url: str
    server: OpenAIServer
    running: dict[str, WarmProcess] = field(default_factory=dict)

    def start(self, *words: str) -> str:
        """Start a worker and return its name, which the log of writers has."""
        name = f"w{len(self.running)}"
        model: Any = {"OPENAI_BASE_URL": self.server.base_url, "OPENAI_API_KEY": "k"}
        self.running[name] = Moot(self.folder).start(
            "worker", "--workers", "2", *words, PGAPPNAME=name, MOOT_DB=self.url, **model
        )
        return name

    def writing(self, name: str) -> list[str]:
        """Return the debates that a worker was the last to write."""
        return [debate for debate, log in writers(self.url).items() if log[-1][1] == {name}]

    def signal(self, name: str, number: int) -> None:
        """Send a worker a signal."""
        self.running[name].send_signal(number)

    def stop_all(self) -> None:
        """End all that still run."""
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

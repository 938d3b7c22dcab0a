"""Workers on one Postgres database. Each is a process that a test can kill or suspend."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, open_debates
from moot.plugins.evals.planned_debates import PlannedDebate, create_planned_debate, run_many
from moot.plugins.postgres.work_queue import WorkQueue
from tests.support.moot_command import Moot
from tests.support.openai_server import OpenAIServer, RecordedRequest
from tests.support.transcripts import message_texts
from tests.support.warm_process import WarmProcess
from tests.support.writer_log import epochs_do_not_overlap, install_writer_log, writers_by_debate

CONFIG = DebateConfig.model_validate(
    {"model": "m", "turns": 3, "openings": "sequential", "seed": 1, "judge": {"enabled": False}}
)


def planned_debates(number: int) -> list[PlannedDebate]:
    """Return a number of planned debates."""
    return [PlannedDebate(f"d{n}", f"Should city {n} ban cars?", CONFIG) for n in range(number)]


def run_without_workers(debates: Sequence[PlannedDebate], db: str) -> dict[str, Any]:
    """Run debates in this process, and return the messages of each by its name."""
    with open_debates(db) as store:
        errors = [error for _, error in run_many(store, debates, 4) if error]
        assert not errors, errors
        return {row.name: message_texts(store.get(row.id).document()) for row in store.rows()}


@dataclass(frozen=True)
class SerialRun:
    """What debates said and asked when one process ran them, for comparison with workers."""

    messages: dict[str, Any]
    requests: set[bytes]

    def check(self, url: str, requests: Sequence[RecordedRequest], repeated: int = 0) -> None:
        """Check that workers left the same debates in a database, and repeated no more than some requests."""
        assert epochs_do_not_overlap(url)
        with open_debates(url) as store:
            found = {row.name: message_texts(store.get(row.id).document()) for row in store.rows()}
        assert found == self.messages
        assert {request.body for request in requests} == self.requests
        assert len(requests) <= len(self.requests) + repeated, "a finished call was repeated"


def run_serially(debates: Sequence[PlannedDebate], db: Path, monkeypatch: pytest.MonkeyPatch) -> SerialRun:
    """Run debates in this process, with a server of their own."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with OpenAIServer() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        messages = run_without_workers(debates, str(db))
        return SerialRun(messages, {request.body for request in model.requests})


def enqueue_debates(debates: Sequence[PlannedDebate], url: str) -> WorkQueue:
    """Put debates into the queue of a database, and install the writer log."""
    with open_debates(url) as store:
        queue = WorkQueue(url)
        assert queue.add([create_planned_debate(store, each).id for each in debates]) == len(debates)
        assert queue.add([row.id for row in store.rows()]) == 0
    install_writer_log(url)
    return queue


@dataclass
class Fleet:
    """Workers of one database."""

    folder: Path
    url: str
    server: OpenAIServer
    running: dict[str, WarmProcess] = field(default_factory=dict)

    def start(self, *words: str, **variables: str) -> str:
        """Start a worker and return its name in the writer log."""
        name = f"w{len(self.running)}"
        model: Any = {"OPENAI_BASE_URL": self.server.base_url, "OPENAI_API_KEY": "k", **variables}
        self.running[name] = Moot(self.folder).start(
            "worker", "--workers", "2", *words, PGAPPNAME=name, MOOT_DB=self.url, **model
        )
        return name

    def last_written_debates(self, name: str) -> list[str]:
        """Return the debates whose last writer is a worker."""
        return [debate for debate, log in writers_by_debate(self.url).items() if log[-1][1] == {name}]

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a worker."""
        self.running[name].send_signal(number)

    def stop_all(self) -> None:
        """Kill all workers."""
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

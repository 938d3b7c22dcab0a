"""Runs of nodes that failed: why, and what was paid for them.

An exception takes a node's update with it, so neither can reach the state at once. Rows are never changed.
The debate takes each up once, at a step's boundary: the error that its state then holds has the row's id, so
nothing is counted twice, whatever dies in between.
"""

import json
from dataclasses import asdict, dataclass, fields

from moot.state.sql import DebateTable, Sql


@dataclass(frozen=True)
class FailedRun:
    """One run of a node that failed for good."""

    run: str
    """UUID."""
    step: int
    node: str
    error: str
    at: str
    """UTC time, ISO 8601."""
    usage: dict[str, float]
    """What its failed calls used, and its seconds; calls that were answered are in the journal."""


_COLUMNS = ", ".join(field.name for field in fields(FailedRun))


class FailedRuns(DebateTable):
    """Failed runs by debate, in the debate's own database."""

    name = "moot_failed_runs"
    columns = """
        debate TEXT NOT NULL, run TEXT PRIMARY KEY, step BIGINT NOT NULL, node TEXT NOT NULL,
        error TEXT NOT NULL, at TEXT NOT NULL, usage TEXT NOT NULL"""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        if not sql.read_only:
            sql.execute("CREATE INDEX IF NOT EXISTS moot_failed_runs_debate ON moot_failed_runs (debate)")

    def add(self, debate: str, failed: FailedRun) -> None:
        """Keep a failed run."""
        values = {**asdict(failed), "usage": json.dumps(failed.usage)}
        self._sql.execute(
            f"INSERT INTO moot_failed_runs (debate, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  # constants of ours
            [debate, *values.values()],
        )

    def of(self, debate: str) -> list[FailedRun]:
        """Return the failed runs of a debate, the oldest first."""
        rows = self._sql.execute(
            f"SELECT {_COLUMNS} FROM moot_failed_runs WHERE debate = ? ORDER BY at, run",  # noqa: S608  # constants of ours
            (debate,),
        )
        return [
            FailedRun(run, step, node, error, at, json.loads(usage))
            for run, step, node, error, at, usage in rows
        ]

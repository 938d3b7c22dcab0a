"""Runs of nodes that failed: why, and what was paid for them.

An exception takes a node's update with it, so neither can reach the state at once. Rows are never changed.
The debate takes each up once, at a step's boundary: the error that its state then holds has the row's id, so
nothing is counted twice, whatever dies in between.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from moot.state.conversation import Problem, StateValues, step_no
from moot.state.entries import JsonObject
from moot.state.reducers import add_up
from moot.state.sql import DebateTable, Sql


@dataclass(frozen=True)
class FailedRun:
    """One run of a node that failed for good."""

    problem: Problem
    """What the state's `errors` will say of it."""
    usage: dict[str, float]
    """What its failed calls used, and its seconds; calls that were answered are in the journal."""


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
        self._insert({"debate": debate, **failed.problem, "usage": json.dumps(failed.usage)})

    def of(self, debate: str) -> list[FailedRun]:
        """Return the failed runs of a debate, the oldest first."""
        rows = self._execute(
            "SELECT step, node, error, at, run, usage FROM moot_failed_runs WHERE debate = ? "
            "ORDER BY at, run",
            (debate,),
        )
        return [
            FailedRun(Problem(step=step, node=node, error=error, at=at, run=run), json.loads(usage))
            for step, node, error, at, run, usage in rows
        ]


def failures_update(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return the update that takes up the failed runs which a state has not taken up yet, `{}` for none.

    A run of a later step than the state's is left: it is another branch's.
    """
    taken = {error.get("run") for error in state.get("errors") or ()} if failed else set()
    at = step_no(state)
    new = [each for each in failed if each.problem["run"] not in taken and each.problem["step"] <= at]
    if not new:
        return {}
    return {"usage": add_up({}, [each.usage for each in new]), "errors": [each.problem for each in new]}


def with_failures(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return the state's values as they will be once all failed runs are taken up."""
    update = failures_update(state, failed)
    if not update:
        return dict(state)
    return {
        **state,
        "usage": add_up(dict(state.get("usage") or {}), [update["usage"]]),
        "errors": [*(state.get("errors") or ()), *update["errors"]],
    }

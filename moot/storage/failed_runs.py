"""Failed runs of a debate's graph nodes, and their part of the debate's state."""

import json
from collections.abc import Sequence

from moot.state.conversation import ErrorRecord, FailedRun, StateValues, step_number
from moot.state.entries import JsonObject
from moot.state.reducers import add_totals
from moot.storage.sqlite import DebateTable, Sql, stored_number, stored_text


class FailedRuns(DebateTable):
    """Table of failed runs of graph nodes, with the error and the usage of each."""

    name = "moot_failed_runs"
    columns = """
        debate TEXT NOT NULL, run TEXT PRIMARY KEY, step BIGINT NOT NULL, node TEXT NOT NULL,
        error TEXT NOT NULL, at TEXT NOT NULL, usage TEXT NOT NULL"""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        index = "moot_failed_runs_debate"
        sql.create(index, f"CREATE INDEX IF NOT EXISTS {index} ON moot_failed_runs (debate)")

    def add(self, debate: str, failed: FailedRun) -> None:
        """Store a failed run of a debate, with its error and usage."""
        self._insert({"debate": debate, **failed.record, "usage": json.dumps(failed.usage)})

    def of(self, debate: str) -> list[FailedRun]:
        """Return all failed runs of a debate, oldest first."""
        rows = self._execute(
            "SELECT step, node, error, at, run, usage FROM moot_failed_runs WHERE debate = ? "
            "ORDER BY at, run",
            (debate,),
        )
        return [
            FailedRun(
                ErrorRecord(
                    step=int(stored_number(step)),
                    node=stored_text(node),
                    error=stored_text(error),
                    at=stored_text(stopped_at),
                    run=stored_text(run),
                ),
                stored_usage(usage),
            )
            for step, node, error, stopped_at, run, usage in rows
        ]


def stored_usage(text: str) -> dict[str, float]:
    """Return the usage stored in a row, without damaged values."""
    try:
        stored = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        return {}
    numbers = stored.items() if isinstance(stored, dict) else ()
    return {key: value for key, value in numbers if isinstance(value, int | float)}


def failures_update(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return an update with the errors and usage of failed runs that the state lacks, or `{}`.

    Runs of later steps than the state's are left out, because they belong to another branch.
    """
    recorded_runs = {error.get("run") for error in state.get("errors") or ()} if failed else set()
    step = step_number(state)
    new_runs = [
        each for each in failed if each.record["run"] not in recorded_runs and each.record["step"] <= step
    ]
    if not new_runs:
        return {}
    return {
        "usage": add_totals({}, [each.usage for each in new_runs]),
        "errors": [each.record for each in new_runs],
    }


def with_failures(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return a copy of a debate's state with the errors and usage of failed runs."""
    update = failures_update(state, failed)
    if not update:
        return dict(state)
    return {
        **state,
        "usage": add_totals(dict(state.get("usage") or {}), [update["usage"]]),
        "errors": [*(state.get("errors") or ()), *update["errors"]],
    }

"""Keeps the catalogue true to what the nodes do, wherever the debate runs."""

from moot.state.catalogue import TOPIC_CHARS, DebateRow, row_amounts
from moot.state.conversation import StateValues
from moot.state.entries import JsonObject
from moot.state.errors import DebateExists
from moot.state.failed_runs import FailedRun, with_failures
from moot.state.records import Records
from moot.state.reducers import add_up

_WATCHED = frozenset({"status", "turn_count", "config"})
_DECIDED = frozenset({"status", "verdict", "config"})
"""Of what a node updates, what may change who argues or who has won."""


def is_noted(state: StateValues, update: StateValues) -> bool:
    """Return whether a node's update changes what the catalogue shows."""
    return bool(_WATCHED & update.keys()) or ("step" in update and not state.get("step"))


def note_progress(records: Records, debate: str, state: StateValues, update: StateValues, now: str) -> None:
    """Write status, turns and spending to the catalogue; `open`'s update adds a debate that is missing.

    A debate stays `new` up to its first step: what a node returns is stored only after this.
    """
    values = _values(state, update)
    if "config" in update:
        topic = str(update.get("topic") or state.get("topic") or "")[:TOPIC_CHARS]
        row = DebateRow(
            id=debate,
            name=debate,
            topic=topic,
            protocol=update["config"]["protocol"],
            parent="",
            created_at=now,
            updated_at=now,
            **{**values, "status": "new"},
        )
        try:
            records.catalogue.add(row)
        except DebateExists:
            records.catalogue.update(debate, topic=topic, protocol=row.protocol)
    begun = "step" in update or state.get("step")
    if not begun and records.catalogue.is_new(debate):
        del values["status"]
    records.catalogue.update(debate, **values, updated_at=now)
    if not state.get("step") or _DECIDED & update.keys():
        records.outcomes.note(debate, state, update)


def _values(state: StateValues, update: StateValues) -> JsonObject:
    spent: dict[str, float] = add_up(state.get("usage") or {}, [update.get("usage") or {}])
    return {
        "status": update.get("status") or state.get("status") or "running",
        "turns": update.get("turn_count", state.get("turn_count", 0)),
        **row_amounts(spent),
    }


def note_failure(records: Records, debate: str, state: StateValues, failed: FailedRun) -> None:
    """Keep a failed run, and write to the catalogue that the debate failed and what it has used."""
    records.failed.add(debate, failed)
    values = _values(with_failures(state, records.failed.of(debate)), {"status": "failed"})
    records.catalogue.update(debate, **values, updated_at=failed.problem["at"])

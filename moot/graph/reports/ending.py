"""Why a debate ended, and how far its proposals agreed on the way there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moot.graph.reports.fields import as_count, as_dict, as_dicts, as_number, as_text, as_texts

NOTES = {
    "running": "Still running: this is what has been said so far.",
    "paused": "Paused: this is what has been said so far.",
    "waiting": "Waiting for an answer from a person.",
    "limit": "Ended at one of its limits.",
    "failed": "Ended by a failure: see the notes at the end.",
}


@dataclass(frozen=True)
class Check:
    """What was found at the end of one round."""

    round: int
    agreement: str
    in_dispute: tuple[str, ...]


@dataclass(frozen=True)
class Convergence:
    """How far a council's proposals agreed, round by round."""

    checks: tuple[Check, ...]
    threshold: str
    """Agreement at which the council ends, `""` where that is not known."""


def read_convergence(document: dict[str, Any]) -> Convergence:
    """Read the checks of a document; there are none unless it ended on convergence, or might have."""
    termination = as_dict(as_dict(document.get("config")).get("termination"))
    return Convergence(
        checks=tuple(_check(raw) for raw in as_dicts(document.get("convergence"))),
        threshold=_share(termination.get("threshold"), none=""),
    )


def _check(raw: dict[str, Any]) -> Check:
    agreement = _share(raw.get("agreement"), none="not found out")
    return Check(as_count(raw.get("round")), agreement, as_texts(raw.get("in_dispute")))


def _share(value: Any, *, none: str) -> str:
    number = as_number(value)
    return none if number is None else f"{number:.2f}"


def status_note(document: dict[str, Any]) -> str:
    """Say in a sentence how a debate stands, and why it ended; `""` where nothing is to be said of it."""
    status, because = as_text(document.get("status")), as_text(document.get("ended_because")).strip()
    if not because:
        return NOTES.get(status, "")
    return f"Ended at one of its limits: {because}." if status == "limit" else f"Ended: {because}."

"""Round records: what each debater did in a round, written as the round goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.nodes.blackboard.bounds import SHORT, noted
from moot.nodes.blackboard.notes import Notes
from moot.state.blackboard import RoundPosition, RoundRecord

_EVIDENCE = 2
SUMMARY = 240
"""Characters of a round's summary."""


def round_update(
    known: Sequence[RoundRecord],
    notes: Sequence[Notes],
    *,
    round_no: int,
    phase: str,
    claims: Sequence[str],
    shifted: Sequence[str],
    names: Mapping[str, str],
) -> RoundRecord:
    """Return what a step adds to its round's record; the channel folds it into what the round has already.

    Args:
        known: the records so far, of which only the last is read.
        notes: one for each entry of the step.
        round_no: the step's round.
        phase: the step's phase.
        claims: ids of claims first contested in the step.
        shifted: ids of debaters whose position shifted in it.
        names: display names.
    """
    current = known[-1] if known and known[-1]["round"] == round_no else None
    positions = {note.speaker: _position(note) for note in notes}
    everyone = {**(current["positions"] if current else {}), **positions}
    shifts = [f"{note.speaker}: {note.shift or note.position}" for note in notes if note.speaker in shifted]
    disputes = len(claims) + (len(current["new_disagreements"]) if current else 0)
    changes = len(shifts) + (len(current["shifts"]) if current else 0)
    return {
        "round": round_no,
        "phase": phase,
        "positions": positions,
        "summary": _summary(everyone, disputes, changes, names),
        "new_disagreements": list(claims),
        "shifts": shifts,
    }


def _position(notes: Notes) -> RoundPosition:
    return {
        "position": notes.position,
        "key_argument": notes.argument if notes.argument != notes.position else "",
        "evidence": list(notes.evidence[:_EVIDENCE]),
        "engaged": list(notes.engaged),
    }


def _summary(
    positions: Mapping[str, RoundPosition], disputes: int, changes: int, names: Mapping[str, str]
) -> str:
    counted = [
        f"{number} {word}{'s' if number > 1 else ''}"
        for number, word in ((disputes, "new disagreement"), (changes, "change of mind"))
        if number
    ]
    counted = [text.replace("change of minds", "changes of mind") for text in counted]
    room = max(40, (SUMMARY - 40) // max(1, len(positions)))
    said = [noted(f"{names.get(who, who)}: {row['position']}", room) for who, row in positions.items()]
    return noted("; ".join([*counted, *said]), SUMMARY) or noted(f"{len(positions)} spoke", SHORT)

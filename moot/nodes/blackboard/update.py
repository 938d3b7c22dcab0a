"""One pass of the blackboard: from notes of a step's entries to the update of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moot.nodes.blackboard.bounds import READ_AT_ONCE, SOURCES, keep_newest
from moot.nodes.blackboard.claims import ClaimsDraft, abandon_open, enter_room, update_claims
from moot.nodes.blackboard.ledger import SAME, LedgerDraft, update_ledger
from moot.nodes.blackboard.notes import Notes
from moot.nodes.blackboard.rooms import with_entries
from moot.nodes.blackboard.rounds import round_update
from moot.nodes.text.likeness import likeness
from moot.state.blackboard import LedgerRow
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, kind_of
from moot.state.progress import BoardProgress

NOTHING_READ: BoardProgress = {
    "through": -1,
    "progress": -1,
    "disagreements": 0,
    "concessions": 0,
    "shifts": 0,
    "message_ids": [],
}


def progress_of(state: ConversationState) -> BoardProgress:
    """Return how far the blackboard has come, every field filled in."""
    return {**NOTHING_READ, **state.get("board_progress", {})}


def unread(state: ConversationState, config: DebateConfig) -> list[Entry]:
    """Return the debaters' entries that the blackboard has not read yet, the newest of a long import."""
    transcript, start = state["full_transcript"], progress_of(state)["through"] + 1
    debaters = config.names()
    return [
        entry
        for entry in transcript[max(start, len(transcript) - READ_AT_ONCE) :]
        if entry["speaker"] in debaters and kind_of(entry).argues
    ]


def update_board(state: ConversationState, config: DebateConfig, notes: Sequence[Notes]) -> dict[str, Any]:
    """Return the update of the blackboard's channels, and of the crux rooms that were spoken in."""
    step = state.get("step", {})
    round_no, phase = step.get("round", 0), step.get("phase", "")
    ledger, claims = LedgerDraft(state.get("ledger") or {}), ClaimsDraft(state.get("claims") or {})
    shifted: list[str] = []
    contested: list[str] = []
    eventful: list[Notes] = []
    progress = progress_of(state)["progress"]
    rooms = state.get("crux_rooms", {})
    for note in notes:
        enter_room(claims, rooms.get(note.entry["room"]))
        fresh = brings_evidence(ledger.row(note.speaker), note)
        new = update_claims(claims, note, round_no, config.names())
        moved = update_ledger(ledger, note, round_no)
        contested += new
        shifted += [note.speaker] if moved else []
        eventful += [note] if new or moved or note.concessions else []
        progress = note.entry["seq"] if fresh or note in eventful else progress
    if step.get("last_words"):
        abandon_open(claims)
    record = round_update(
        state.get("round_records") or [],
        notes,
        round_no=round_no,
        phase=phase,
        claims=contested,
        shifted=shifted,
        names=config.names(),
    )
    update = {
        "ledger": ledger.changed,
        "claims": claims.changed,
        "round_records": [record],
        "board_progress": _progress(state, notes, len(contested), len(shifted), eventful, progress),
    }
    spoken_in = with_entries(rooms, [note.entry for note in notes])
    return {**update, "crux_rooms": spoken_in} if spoken_in else update


def brings_evidence(row: LedgerRow, notes: Notes) -> bool:
    """Return whether an entry offers evidence that its speaker's row does not hold in other words."""
    known = [text for aspect in row["aspects"].values() for text in aspect["evidence"]]
    return any(all(likeness(text, old) < SAME for old in known) for text in notes.evidence)


def _progress(
    state: ConversationState,
    notes: Sequence[Notes],
    contested: int,
    shifted: int,
    eventful: Sequence[Notes],
    progress: int,
) -> BoardProgress:
    known = progress_of(state)
    conceded = [note for note in notes if note.concessions]
    return {
        "through": len(state["full_transcript"]) - 1,
        "progress": progress,
        "disagreements": known["disagreements"] + contested,
        "concessions": known["concessions"] + len(conceded),
        "shifts": known["shifts"] + shifted,
        "message_ids": keep_newest([*known["message_ids"], *(note.message_id for note in eventful)], SOURCES),
    }

"""What a person changes in the minutes: its word outranks every reader's, and no later reading undoes it."""

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.folding import ledger_of
from moot.state.conversation import ConversationState
from moot.state.errors import InputError
from moot.state.ledger import Event, EventKind, Note, Retraction, Sameness

KINDS: tuple[EventKind, ...] = get_args(EventKind)


def correct_note(state: ConversationState, note_id: str, kind: str = "", why: str = "") -> list[Note]:
    """Return the notes by which a person changes one.

    `kind` is what the debater of an event really did, one of `KINDS`; `""` takes the note back, which may be
    of any kind but a proposition.

    Raises:
        InputError: there is no such note, or it cannot be of that kind.
    """
    taken: Sequence[Any] = state.get("minutes") or []
    notes = {note["id"]: note for note in taken if "id" in note and note["note"] != "proposition"}
    if note_id not in notes:
        raise InputError(f"there is no note {note_id!r} that can be changed: {_newest(notes)}")
    known = notes[note_id]
    if not kind:
        return [Retraction(note="retraction", of=note_id, why=board_text(why), by="person")]
    if known["note"] != "event":
        raise InputError(f"{note_id} is no event: it can be taken back, but not be {kind!r}")
    if kind not in KINDS:
        raise InputError(f"nobody can be said to have {kind!r}: give one of {', '.join(KINDS)}")
    number = 1 + sum(note["note"] == "event" for note in taken)
    changed = {**known, "id": f"e{number:03d}", "kind": kind, "by": "person", "confidence": 1.0}
    if kind != "conditional":
        changed["condition"] = ""
    return [Event(**changed)]  # type: ignore[typeddict-item]  # an event with other values


def unite_propositions(
    state: ConversationState, one: str, other: str, *, opposite: bool = False
) -> list[Note]:
    """Return the note by which a person says that two propositions are one, or each other's negation.

    Raises:
        InputError: there is no such proposition, or they are the same already.
    """
    known = ledger_of(state).propositions
    for key in (one, other):
        if key not in known:
            raise InputError(f"there is no proposition {key!r}: {_newest(known)}")
    if one == other:
        raise InputError(f"{one} is itself: name two propositions")
    return [Sameness(note="same", one=one, other=other, opposite=opposite, by="person")]


def _newest(keys: Iterable[str]) -> str:
    shown = list(keys)[-12:]
    return f"the newest are {', '.join(shown)}" if shown else "no minutes have been taken"

"""Crux rooms: how one begins, what was said in it, and when it is looked at."""

from collections.abc import Iterable, Mapping, Sequence

from moot.nodes.blackboard.folding import ledger_of
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, kind_of
from moot.state.ledger import MOTION, Room

CYCLES = 2
"""Exchanges with steelmanning in a room, at most, where nothing else is configured."""


def make_room(
    room_id: str,
    claim: str,
    between: Sequence[str],
    trigger: Sequence[str],
    round_no: int,
    cycles: int = CYCLES,
) -> Room:
    """Return a new room for a pair that differs on a proposition."""
    return {
        "id": room_id,
        "claim": claim,
        "between": list(between),
        "round": round_no,
        "stage": "",
        "cycle": 0,
        "cycles": cycles,
        "assessed": 0,
        "closed": False,
        "trigger": list(trigger),
        "message_ids": [],
    }


def to_assess(state: ConversationState) -> list[Room]:
    """Return the rooms whose cycle is over and has not been looked at, or whose two differ no more."""
    return [
        room
        for room in state.get("crux_rooms", {}).values()
        if (room["stage"] == "steelman" and room["assessed"] < room["cycle"]) or not claim_now(state, room)
        if room["stage"] and not (room["closed"] or awaits_second(room))
    ]


def claim_now(state: ConversationState, room: Room) -> str:
    """Return what the two in a room differ on: its claim, else what they took up there, `""` for nothing."""
    ledger, said = ledger_of(state), set(room["message_ids"])

    def differ(key: str) -> bool:
        return any(set(pair) == set(room["between"]) for pair in ledger.pairs(key))

    def is_new(key: str) -> bool:
        return key != MOTION and any(e["message_id"] in said for e in ledger.stances(key).values())

    claims = (key for key in ledger.by_salience if is_new(key) and differ(key))
    return room["claim"] if differ(room["claim"]) else next(claims, "")


def awaits_second(room: Room) -> bool:
    """Return whether one of the two has spoken in the present stage and the other has not."""
    return not room["closed"] and room.get("second", False)


def with_entries(rooms: Mapping[str, Room], entries: Iterable[Entry]) -> dict[str, Room]:
    """Return the rooms in which entries were made, each with what was said in it."""
    grown: dict[str, Room] = {}
    for entry in entries:
        room = grown.get(entry["room"]) or rooms.get(entry["room"])
        if room is not None and entry["id"] not in room["message_ids"] and kind_of(entry).argues:
            grown[room["id"]] = {**room, "message_ids": [*room["message_ids"], entry["id"]]}
    return grown

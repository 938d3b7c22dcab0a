"""Crux rooms: how one begins, what was said in it, and when it is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moot.state.blackboard import Claim
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.progress import Room

CYCLES = 2
"""Exchanges with steelmanning in a room, at most, where nothing else is configured."""


def make_room(room_id: str, claim: Claim, round_no: int, cycles: int = CYCLES) -> Room:
    """Return a new room for a claim, opened in a round, for at most so many exchanges."""
    return {
        "id": room_id,
        "claim": claim["id"],
        "between": list(claim["between"]),
        "round": round_no,
        "stage": "",
        "cycle": 0,
        "cycles": cycles,
        "assessed": 0,
        "closed": False,
        "trigger": list(claim["message_ids"]),
        "message_ids": [],
    }


def to_assess(state: ConversationState) -> list[Room]:
    """Return the rooms whose cycle is over and has not been looked at."""
    return [
        room
        for room in state.get("crux_rooms", {}).values()
        if room["stage"] == "steelman" and room["assessed"] < room["cycle"] and not room["closed"]
    ]


def with_entries(rooms: Mapping[str, Room], entries: Iterable[Entry]) -> dict[str, Room]:
    """Return the rooms in which entries were made, each with what was said in it."""
    grown: dict[str, Room] = {}
    for entry in entries:
        room = grown.get(entry["room"]) or rooms.get(entry["room"])
        if room is not None:
            grown[room["id"]] = {**room, "message_ids": [*room["message_ids"], entry["id"]]}
    return grown

"""Crux rooms as the protocol remembers them: which pair, which claim, how far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from moot.state.entries import Entry

KEY = "rooms"
"""Where `protocol_state` holds the rooms that are open, by id."""

CYCLES = 2
"""Exchanges with steelmanning in a room, at most, where nothing else is configured."""

Stage = Literal["", "positions", "exchange", "steelman"]


class Room(TypedDict):
    """One crux room: a pair of debaters with one claim."""

    id: str
    claim: str
    """Id of the claim that it is about."""
    between: list[str]
    stage: Stage
    """Stage that was given last, `""` before the first."""
    cycle: int
    """Exchanges with steelmanning so far, the current one included."""
    cycles: NotRequired[int]
    """Exchanges that there may be; absent in debates stored by earlier builds."""
    assessed: int
    """Cycles that `reflect` has looked at."""
    closed: bool
    trigger: list[str]
    """Ids of the messages that led to it."""
    message_ids: list[str]
    """What was said in it."""


def make_room(room_id: str, claim: Mapping[str, Any], cycles: int = CYCLES) -> Room:
    """Return a new room for a claim, for at most so many exchanges."""
    return {
        "id": room_id,
        "claim": claim["id"],
        "between": list(claim["between"]),
        "stage": "",
        "cycle": 0,
        "cycles": cycles,
        "assessed": 0,
        "closed": False,
        "trigger": list(claim["message_ids"]),
        "message_ids": [],
    }


def rooms_of(state: Mapping[str, Any]) -> dict[str, Room]:
    """Return the rooms by id, those included that `reflect` has just closed."""
    return dict((state.get("protocol_state") or {}).get(KEY) or {})


def to_assess(state: Mapping[str, Any]) -> list[Room]:
    """Return the rooms whose cycle is over and has not been looked at."""
    return [
        room
        for room in rooms_of(state).values()
        if room["stage"] == "steelman" and room["assessed"] < room["cycle"] and not room["closed"]
    ]


def with_entries(rooms: Mapping[str, Room], entries: Iterable[Entry]) -> dict[str, Room]:
    """Return the rooms with what was said in them."""
    grown = dict(rooms)
    for entry in entries:
        room = grown.get(entry["room"])
        if room is not None:
            grown[room["id"]] = {**room, "message_ids": [*room["message_ids"], entry["id"]]}
    return grown

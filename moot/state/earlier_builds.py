"""Debates that earlier builds stored, read as today's.

Before schema version 2, `protocol_state` was a drawer that crux rooms, the blackboard's progress,
clarification questions and convergence checks shared with the protocol, and a step said in words alone why it
ended a debate.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from moot.state.conversation import SCHEMA_VERSION
from moot.state.entries import gifts_in
from moot.state.errors import InputError
from moot.state.ledger import CruxCard, Room

_LIMIT = "limit: "
_State = TypeVar("_State", bound=Mapping[str, object])


def up_to_date(state: _State) -> _State:
    """Return a state's values in today's channels; what has been written to these since wins.

    The drawer stays as it was, so that the values are the same however often they are read.

    Raises:
        InputError: a newer build stored it.
    """
    values: Mapping[str, Any] = state
    if (version := values.get("schema_version", SCHEMA_VERSION)) > SCHEMA_VERSION:
        raise InputError(
            f"a newer Moot wrote this debate (schema version {version}, this one knows {SCHEMA_VERSION}): "
            "update Moot"
        )
    if version >= 2:
        return state
    drawer = values.get("protocol_state") or {}
    found = {check["round"]: check for check in values.get("convergence") or ()}
    checks = {int(no): {"round": int(no), **check} for no, check in drawer.get("convergence", {}).items()}
    today = {
        **values,
        "step": _step(values.get("step") or {}, drawer),
        "crux_rooms": {**_rooms(drawer, values.get("crux_cards") or {}), **(values.get("crux_rooms") or {})},
        "clarifications": {**drawer.get("clarifications", {}), **(values.get("clarifications") or {})},
        "gifts": gifts_in(values.get("full_transcript") or ()),
        "convergence": [check for _, check in sorted({**checks, **found}.items())],
    }
    return cast(_State, today)


def _step(step: Mapping[str, Any], drawer: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in step.items() if key != "reason"}
    if not kept:
        return {}
    dialogue = {"aspect": drawer.get("aspect", ""), "last_words": bool(drawer.get("last_words"))}
    ended = {}
    if reason := step.get("reason", ""):
        by_limit = reason.startswith(_LIMIT)
        what = reason.removeprefix(_LIMIT).partition(" of ")[0] if by_limit else ""
        by = "limit" if by_limit else "protocol"
        ended = {"ended_by": {"by": by, "what": what, "reason": reason.removeprefix(_LIMIT)}}
    return {**dialogue, **ended, **kept}


def _rooms(drawer: Mapping[str, Any], cards: Mapping[str, CruxCard]) -> dict[str, Room]:
    """Return the rooms with the round that each opened in; of a closed one its card alone was kept."""
    rooms: dict[str, Room] = {
        key.removeprefix("card-"): {
            "id": key.removeprefix("card-"),
            "claim": card["claim"],
            "between": list(card["sides"]),
            "round": 0,
            "stage": "steelman",
            "cycle": 1,
            "assessed": 1,
            "closed": True,
            "trigger": card["message_ids"],
            "message_ids": [],
        }
        for key, card in cards.items()
    }
    rooms |= drawer.get("rooms", {})
    last: Mapping[str, int] = drawer.get("crux", {}).get("last", {})
    for key, room in rooms.items():
        rooms[key] = {**room, "round": last.get("|".join(sorted(room["between"])), 0)}
    return rooms

"""Crux rooms: which disagreements are worth one, and how a room goes from stage to stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moot.nodes.blackboard.rooms import make_room
from moot.nodes.prompts.library import load_prompt
from moot.nodes.protocols.agreeableness import with_agreement
from moot.nodes.protocols.dialogue.dialogue_settings import DialogueConfig
from moot.nodes.protocols.protocol import make_floor, make_step
from moot.nodes.text.likeness import likeness
from moot.nodes.text.terms import term_set
from moot.state.blackboard import Claim
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Floor, Step
from moot.state.progress import Room, Stage

STAGES = {
    "positions": load_prompt("crux-positions", "target", "claim", "words", home=__package__),
    "exchange": load_prompt("crux-exchange", "target", "claim", "words", home=__package__),
    "steelman": load_prompt("crux-steelman", "target", "claim", "words", home=__package__),
}
WORDS = 120
"""What a speech in a crux room is asked to stay within."""
SAME_VIEW = 0.9
"""Likeness of two positions from which there is nothing to dispute."""


def phase_of(stage: Stage) -> str:
    """Return the phase's name of a stage."""
    return f"crux-{stage}"


def open_rooms(state: ConversationState) -> dict[str, Room]:
    """Return the rooms in which there is more to say."""
    return {key: room for key, room in state.get("crux_rooms", {}).items() if not room["closed"]}


def room_step(state: ConversationState, config: DebateConfig, rooms: Mapping[str, Room]) -> Step:
    """Return the next step of rooms, which go from stage to stage together: two floors in each."""
    moved = {key: _advanced(room) for key, room in rooms.items()}
    floors = [floor for room in moved.values() for floor in _floors(state, config, room)]
    stage = next(iter(moved.values()))["stage"]
    aspect = state.get("step", {}).get("aspect", "")
    return {**make_step(phase_of(stage), state.get("round", 0), floors, aspect=aspect), "rooms": moved}


def new_rooms(state: ConversationState, config: DebateConfig) -> dict[str, Room]:
    """Return a room for every disagreement worth one, as far as nobody would have to be in two."""
    crux, taken = DialogueConfig.of(config).crux, set[str]()
    rooms: dict[str, Room] = {}
    number = len(state.get("crux_rooms", {}))
    for claim in _worthy(state, config):
        if not taken & set(claim["between"]) and number < crux.max_rooms:
            number += 1
            taken |= set(claim["between"])
            room = make_room(f"room-{number:02d}", claim, state.get("round", 0), crux.cycles)
            rooms[room["id"]] = room
    return rooms


def _worthy(state: ConversationState, config: DebateConfig) -> list[Claim]:
    """Return the claims that deserve a room, the surest and most contested first."""
    worthy = [claim for claim in (state.get("claims") or {}).values() if deserves_room(state, config, claim)]
    return sorted(worthy, key=lambda claim: (-claim["confidence"], -len(claim["message_ids"]), claim["id"]))


def deserves_room(state: ConversationState, config: DebateConfig, claim: Claim) -> bool:
    """Return whether a claim is directly opposed, specific, relevant, sure, and its pair has cooled down."""
    crux, ids = DialogueConfig.of(config).crux, set(config.names())
    return (
        crux.enabled
        and claim["status"] == "active"
        and set(claim["between"]) <= ids
        and len(set(claim["between"])) == 2
        and claim["confidence"] >= crux.confidence
        and (claim["specific"] or not crux.specific)
        and _cooled_down(state, claim["between"], crux.cooldown)
        and _opposed(state, claim)
        and len(term_set(claim["claim"]) & _context(state, claim)) >= crux.relevance
    )


def supposed_claim(state: ConversationState, pair: Sequence[str]) -> Claim:
    """Return a claim of which a pair could not be surer, and that has to do with all that is argued."""
    aspect = state["step"]["aspect"]
    return {
        "id": f"supposed-{'-'.join(pair)}",
        "claim": " ".join([state["topic"], aspect, *state["protocol_state"]["aspects"]]),
        "aspect": aspect,
        "between": list(pair),
        "confidence": 1.0,
        "specific": True,
        "status": "active",
        "message_ids": [state["full_transcript"][-1]["id"]],
        "round": state["round"],
        "touched": state["round"],
        "room": "",
        "resolution": "",
        "card": "",
    }


def _cooled_down(state: ConversationState, pair: Sequence[str], rounds: int) -> bool:
    earlier = (room for room in state.get("crux_rooms", {}).values() if set(room["between"]) == set(pair))
    return all(state.get("round", 0) - room["round"] > rounds for room in earlier)


def _positions(state: ConversationState, claim: Claim) -> list[str]:
    """Return what the two hold on the claim's aspect."""
    rows = [(state.get("ledger") or {}).get(who) for who in claim["between"]]
    aspects = [row["aspects"].get(claim["aspect"]) if row else None for row in rows]
    return [aspect["position"] if aspect else "" for aspect in aspects]


def _opposed(state: ConversationState, claim: Claim) -> bool:
    """Return whether the two do not hold the same view after all."""
    one, other = _positions(state, claim)
    return not (one and other and likeness(one, other) >= SAME_VIEW)


def _context(state: ConversationState, claim: Claim) -> set[str]:
    """Return the terms to which a relevant claim must be related."""
    texts = [state["topic"], claim["aspect"], *_positions(state, claim)]
    texts += [str(text) for text in (state.get("protocol_state") or {}).get("aspects") or []]
    return {term for text in texts for term in term_set(text)}


def _advanced(room: Room) -> Room:
    """Return a room at its next stage: positions, then exchange and steelman in turn."""
    following: dict[str, Stage] = {"": "positions", "positions": "exchange", "exchange": "steelman"}
    stage: Stage = following.get(room["stage"], "exchange")
    return {**room, "stage": stage, "cycle": room["cycle"] + (stage == "exchange")}


def _floors(state: ConversationState, config: DebateConfig, room: Room) -> list[Floor]:
    names = config.names()
    claim = (state.get("claims") or {}).get(room["claim"])
    about = claim["claim"] if claim else ""
    prompt = STAGES[room["stage"]]
    floors = []
    for who, other in (room["between"], room["between"][::-1]):
        instruction = prompt.render(target=names[other], claim=about, words=str(WORDS))
        targets = [other, *(room["message_ids"] or room["trigger"])[-1:]]
        floors.append(make_floor(who, with_agreement(instruction, config), targets=targets, room=room["id"]))
    return floors

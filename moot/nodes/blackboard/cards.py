"""Crux cards: what came of a crux room, and how its claim ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from moot.nodes.blackboard.bounds import noted
from moot.nodes.blackboard.by_model import debater_lines, known_debater, shown_entries, structured_call
from moot.nodes.blackboard.by_rule import facts_of
from moot.nodes.blackboard.rooms import CYCLES
from moot.nodes.calls import ModelCall
from moot.nodes.prompts.library import load_prompt
from moot.nodes.text.likeness import likeness
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.blackboard import Claim, CruxCard, CruxSide
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, seq_of
from moot.state.progress import Room

CARD = load_prompt("crux-card", "topic", "claim", "debaters")

LONG = 280
"""Characters of a card's longer texts."""
STAGNANT = 0.7
"""Likeness of what one debater says in two cycles from which neither adds anything."""
_FRAME = 700


class SideFinding(BaseModel):
    """One debater's answer."""

    debater: str
    reasoning: str
    answer: Literal["yes", "no", "nuanced"]
    falsifier: str = Field(description="What would change this answer.")


class CruxFinding(BaseModel):
    """What a room found."""

    reasoning: str
    question: str
    sides: list[SideFinding]
    type: Literal["horizon", "evidence", "values", "definition", "claim", "premise"]
    diagnosis: str
    resolved: bool
    resolution: str


def card_id(room: Room) -> str:
    """Return the id of the card that comes of a room."""
    return f"card-{room['id']}"


def room_entries(state: Mapping[str, Any], ids: Sequence[str]) -> list[Entry]:
    """Return the entries of these ids, in order."""
    transcript: Sequence[Entry] = state["full_transcript"]
    return [transcript[seq] for seq in map(seq_of, ids) if seq is not None and seq < len(transcript)]


def card_call(
    state: ConversationState, config: DebateConfig, room: Room, count: TokenCounter, *, floor: int
) -> ModelCall:
    """Return the call that asks a model what a room found, within the view's budget."""
    size = max(200, config.memory.budget.total - _FRAME)
    claim = (state.get("claims") or {}).get(room["claim"])
    system = CARD.render(
        topic=cut_middle(state["topic"], size // 6, count),
        claim=claim["claim"] if claim else "",
        debaters=debater_lines(config, room["between"]),
    )
    entries = room_entries(state, [*room["trigger"], *room["message_ids"]])
    said = shown_entries(entries, config.names(), size * 2 // 3, count)
    names = config.names()
    return structured_call(
        "reflect",
        config,
        system,
        said,
        CruxFinding,
        count,
        floor=floor,
        debaters=[names[who] for who in room["between"]],
    )


def card_by_model(
    state: ConversationState, config: DebateConfig, room: Room, data: Mapping[str, Any]
) -> CruxCard:
    """Return a model's card; a side that it forgot is filled in by rule, and who was not there is dropped."""
    names = {who: config.names()[who] for who in room["between"]}
    found = {known_debater(side["debater"], names): side for side in data["sides"]}
    sides = {
        who: _found_side(found[who]) if who in found else _ruled_side(state, config, room, who)
        for who in room["between"]
    }
    answers = {side["answer"] for side in sides.values()}
    return {
        "id": card_id(room),
        "claim": room["claim"],
        "message_ids": [*room["trigger"], *room["message_ids"]],
        "round": int(state.get("round", 0)),
        "question": noted(data["question"]) or _question(state, room),
        "sides": sides,
        "type": data["type"],
        "diagnosis": noted(data["diagnosis"], LONG),
        # Opposite answers are no resolution, whatever the model calls them.
        "resolved": bool(data["resolved"]) and answers != {"yes", "no"},
        "resolution": noted(data["resolution"], LONG),
    }


def card_by_rule(state: ConversationState, config: DebateConfig, room: Room) -> CruxCard:
    """Return a card without a model: resolved where somebody concedes or shifts in the last cycle."""
    sides = {who: _ruled_side(state, config, room, who) for who in room["between"]}
    moved = [who for who, side in sides.items() if side["answer"] == "nuanced"]
    names = config.names()
    moved_names = " and ".join(names[who] for who in moved)
    backed = all(_facts(state, config, room, who, "evidence") for who in room["between"])
    return {
        "id": card_id(room),
        "claim": room["claim"],
        "message_ids": [*room["trigger"], *room["message_ids"]],
        "round": int(state.get("round", 0)),
        "question": _question(state, room),
        "sides": sides,
        "type": "evidence" if backed else "claim",
        "diagnosis": "Each side offers evidence that the other does not accept."
        if backed
        else "The two differ on this statement.",
        "resolved": bool(moved),
        "resolution": f"{moved_names} moved towards the other side." if moved else "",
    }


def room_closes(state: ConversationState, config: DebateConfig, room: Room, card: CruxCard) -> bool:
    """Return whether a room is over: converged, at its cap, or going in circles."""
    at_cap = room["cycle"] >= room.get("cycles", CYCLES)
    return card["resolved"] or at_cap or _stagnates(state, room)


def settled(claim: Claim, card: CruxCard) -> Claim:
    """Return a claim as its room leaves it: resolved, or abandoned with a card that says why."""
    outcome = card["resolution"] if card["resolved"] else card["diagnosis"]
    return {
        **claim,
        "status": "resolved" if card["resolved"] else "abandoned",
        "resolution": outcome,
        "card": card["id"],
    }


def _stagnates(state: ConversationState, room: Room) -> bool:
    """Return whether both repeat in this cycle what they said in the last one."""
    entries = room_entries(state, room["message_ids"])
    for who in room["between"]:
        said = [entry["content"] for entry in entries if entry["speaker"] == who]
        if len(said) < 4 or likeness("\n".join(said[-2:]), "\n".join(said[-4:-2])) < STAGNANT:
            return False
    return True


def _question(state: ConversationState, room: Room) -> str:
    claim = (state.get("claims") or {}).get(room["claim"])
    return noted(f"Is this so: {claim['claim']}") if claim else ""


def _found_side(found: Mapping[str, Any]) -> CruxSide:
    return {
        "answer": found["answer"],
        "reasoning": noted(found["reasoning"], LONG),
        "falsifier": noted(found["falsifier"], LONG),
    }


def _ruled_side(state: ConversationState, config: DebateConfig, room: Room, who: str) -> CruxSide:
    """Return a side as the rules see it: who raised the dispute says yes, who concedes is nuanced."""
    raised = room_entries(state, room["trigger"][:1])
    moved = _facts(state, config, room, who, "concessions") or _facts(state, config, room, who, "shifts")
    claims = _facts(state, config, room, who, "claims")
    flips = config.debater(who).flip_conditions
    stands = "yes" if raised and raised[0]["speaker"] == who else "no"
    return {
        "answer": "nuanced" if moved else stands,  # type: ignore[typeddict-item]  # one of the three
        "reasoning": noted(claims[-1]["text"], LONG) if claims else "",
        "falsifier": noted(flips[0], LONG) if flips else "",
    }


def _facts(state: ConversationState, config: DebateConfig, room: Room, who: str, kind: str) -> list[Any]:
    """Return what the rules find of one kind in a debater's last words in the room."""
    own = [entry for entry in room_entries(state, room["message_ids"]) if entry["speaker"] == who]
    return facts_of(own[-1], config.names())[kind] if own else []  # type: ignore[literal-required]  # a list of Facts

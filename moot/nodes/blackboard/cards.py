"""Crux cards: what came of a crux room, and what each of the two then holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from moot.nodes.blackboard.bounds import noted
from moot.nodes.blackboard.by_model import debater_lines, known_debater, shown_entries, structured_call
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.minutes import Minutes
from moot.nodes.blackboard.rooms import CYCLES, claim_now
from moot.nodes.calls import ModelCall
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import many, narrowed, one_of
from moot.nodes.reading.moves import concedes, shifts
from moot.nodes.reading.standpoints import keeps_position
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import likeness, term_set
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, cited_id, entries_of
from moot.state.ledger import CruxAnswer, CruxCard, CruxSide, CruxType, EventKind, Note, Room

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
    answer: CruxAnswer
    falsifier: str = Field(description="What would change this answer.")
    now: EventKind = Field(description="What the debater now does about the disputed statement.")
    message_id: str
    quote: str = Field(description="Its own words in the room that show this, literally.")


class CruxFinding(BaseModel):
    """What a room found."""

    reasoning: str
    question: str
    sides: list[SideFinding]
    type: CruxType
    diagnosis: str
    resolved: bool
    resolution: str


def card_id(room: Room) -> str:
    """Return the id of the card that comes of a room."""
    return f"card-{room['id']}"


def room_entries(state: Mapping[str, Any], ids: Sequence[str]) -> list[Entry]:
    """Return the entries of these ids, in order."""
    return entries_of(ids, state["full_transcript"])


def card_call(
    state: ConversationState, config: DebateConfig, room: Room, count: TokenCounter, *, floor: int
) -> ModelCall:
    """Return the call that asks a model what a room found, within the view's budget."""
    size = max(200, config.memory.budget.total - _FRAME)
    system = CARD.render(
        topic=cut_middle(state["topic"], size // 6, count),
        claim=claim_text(state, room),
        debaters=debater_lines(config, room["between"]),
    )
    entries = room_entries(state, [*room["trigger"], *room["message_ids"]])
    said = shown_entries(entries, config.names(), size * 2 // 3, count)
    names = [config.names()[who] for who in room["between"]]
    own = [entry["id"] for entry in entries if entry["id"] in room["message_ids"]]
    side = narrowed(SideFinding, {"debater": one_of(room["between"]), "message_id": one_of(own)})
    return structured_call(
        "reflect",
        config,
        system,
        said,
        narrowed(CruxFinding, {"sides": many(side, 2, 2)}),
        count,
        makes="cruxes",
        floor=floor,
        debaters=names,
        about=entries,
    )


def card_by_model(
    state: ConversationState, config: DebateConfig, room: Room, data: Mapping[str, Any]
) -> CruxCard:
    """Return a model's card; a side that it forgot is filled in by rule, and who was not there is dropped."""
    names = {who: config.names()[who] for who in room["between"]}
    found = {known_debater(side["debater"], names): side for side in data["sides"]}
    card = card_by_rule(state, config, room)
    for who in found.keys() & card["sides"].keys():
        side = found[who]
        reasoning, falsifier = noted(side["reasoning"], LONG), noted(side["falsifier"], LONG)
        card["sides"][who] = {"answer": side["answer"], "reasoning": reasoning, "falsifier": falsifier}
    answers = {side["answer"] for side in card["sides"].values()}
    return {
        **card,
        "question": noted(data["question"]) or card["question"],
        "type": data["type"],
        "diagnosis": noted(data["diagnosis"], LONG),
        # Opposite answers are no resolution, whatever the model calls them.
        "resolved": bool(data["resolved"]) and answers != {"yes", "no"},
        "resolution": noted(data["resolution"], LONG),
    }


def card_events(
    state: ConversationState,
    config: DebateConfig,
    room: Room,
    data: Mapping[str, Any],
    before: Sequence[Note] = (),
) -> list[Note]:
    """Return what each of the two holds after the room, as notes, as far as their own words there show it."""
    entries = {entry["id"]: entry for entry in room_entries(state, room["message_ids"])}
    minutes = Minutes(
        known=[*(state.get("minutes") or []), *before],
        topic=state["topic"],
        entries=entries,
        debaters=room["between"],
        by="model",
    )
    for side in data["sides"]:
        entry = entries.get(cited_id(side["message_id"]))
        who = known_debater(side["debater"], {who: config.names()[who] for who in room["between"]})
        held = minutes.ledger.stance(who, room["claim"])
        known = held and (held["message_id"], held["kind"]) == (cited_id(side["message_id"]), side["now"])
        if entry is not None and entry["speaker"] == who and not known:
            event = {"proposition": room["claim"], "kind": side["now"], "confidence": 1.0, "ground": False}
            words = {"message_id": entry["id"], "quote": side["quote"], "condition": ""}
            minutes.take({"events": [{**event, **words}]})
    return minutes.new


def card_by_rule(state: ConversationState, config: DebateConfig, room: Room) -> CruxCard:
    """Return a card without a model: resolved where somebody gives up this very statement at last."""
    sides = {who: _ruled_side(state, config, room, who) for who in room["between"]}
    moved, text = [who for who, side in sides.items() if side["answer"] == "nuanced"], claim_text(state, room)
    moved_names = " and ".join(config.names()[who] for who in moved)
    return {
        "id": card_id(room),
        "claim": room["claim"],
        "message_ids": [*room["trigger"], *room["message_ids"]],
        "round": int(state.get("round", 0)),
        "room": room["id"],
        "question": noted(f"Is this so: {text}") if text else "",
        "sides": sides,
        "type": "claim",
        "diagnosis": "The two differ on this statement.",
        "resolved": bool(moved),
        "resolution": f"{moved_names} moved towards the other side." if moved else "",
    }


def room_closes(state: ConversationState, config: DebateConfig, room: Room, card: CruxCard) -> bool:
    """Return whether a room is over: converged, at its cap, or going in circles."""
    at_cap = room["cycle"] >= room.get("cycles", CYCLES)
    return card["resolved"] or at_cap or not claim_now(state, room) or _stagnates(state, room)


def _stagnates(state: ConversationState, room: Room) -> bool:
    """Return whether both repeat in this cycle what they said in the last one."""
    entries = room_entries(state, room["message_ids"])
    for who in room["between"]:
        said = [entry["content"] for entry in entries if entry["speaker"] == who]
        if len(said) < 4 or likeness("\n".join(said[-2:]), "\n".join(said[-4:-2])) < STAGNANT:
            return False
    return True


def claim_text(state: Mapping[str, Any], room: Room) -> str:
    """Return what a room is about, in words."""
    known = ledger_of(state).propositions.get(room["claim"])
    return noted(known["text"]) if known else ""


def _ruled_side(state: ConversationState, config: DebateConfig, room: Room, who: str) -> CruxSide:
    """Return a side as the rules see it: as the ledger has it, nuanced where its last words give it up."""
    own = [entry for entry in room_entries(state, room["message_ids"]) if entry["speaker"] == who]
    said = [each.text for each in split_sentences(own[-1]["content"])] if own else []
    claim = term_set(claim_text(state, room))
    about = [text for text in said if 2 * len(term_set(text) & claim) >= len(claim)]
    moved = any(concedes(text) or shifts(text) for text in about) and not any(map(keeps_position, said))
    stands = "yes" if ledger_of(state).sign(who, room["claim"]) > 0 else "no"
    flips = config.debater(who).flip_conditions
    return {
        "answer": "nuanced" if moved else stands,  # type: ignore[typeddict-item]  # one of the three
        "reasoning": noted(about[-1], LONG) if about else "",
        "falsifier": noted(flips[0], LONG) if flips else "",
    }

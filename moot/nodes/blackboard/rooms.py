"""Crux rooms: how one begins, when it is looked at, and the card that comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from moot.nodes.blackboard.board_words import board_text
from moot.nodes.blackboard.by_model import debater_lines, known_debater, shown_entries, structured_call
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.minutes import Minutes
from moot.nodes.calls import ModelCall
from moot.nodes.prompts.library import load_prompt
from moot.nodes.prompts.request import many, narrow, one_of
from moot.nodes.reading.moves import concedes, shifts
from moot.nodes.reading.standpoints import keeps_position
from moot.nodes.text.sentences import split_sentences
from moot.nodes.text.terms import ALIKE, likeness, term_set
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, StateValues
from moot.state.entries import Entry, cited_id, entries_of, kind_of
from moot.state.ledger import MOTION, CruxAnswer, CruxCard, CruxSide, CruxType, EventKind, Note, Room

CARD = load_prompt("crux-card", "topic", "claim", "debaters")

CYCLES = 2
"""Exchanges with steelmanning in a room, at most, where nothing else is configured."""
LONG = 280
"""Characters of a card's longer texts."""
_FRAME = 700


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

    if ledger.differ(room["claim"], *room["between"]):
        return room["claim"]
    for key in ledger.by_salience:
        is_new = any(event["message_id"] in said for event in ledger.stances(key).values())
        if key != MOTION and is_new and ledger.differ(key, *room["between"]):
            return key
    return ""


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
    entries = entries_of([*room["trigger"], *room["message_ids"]], state["full_transcript"])
    said = shown_entries(entries, config.names(), size * 2 // 3, count)
    names = [config.names()[who] for who in room["between"]]
    own = [entry["id"] for entry in entries if entry["id"] in room["message_ids"]]
    side = narrow(SideFinding, {"debater": one_of(room["between"]), "message_id": one_of(own)})
    return structured_call(
        "reflect",
        config,
        system,
        said,
        narrow(CruxFinding, {"sides": many(side, 2, 2)}),
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
        reasoning, falsifier = board_text(side["reasoning"], LONG), board_text(side["falsifier"], LONG)
        card["sides"][who] = {"answer": side["answer"], "reasoning": reasoning, "falsifier": falsifier}
    answers = {side["answer"] for side in card["sides"].values()}
    return {
        **card,
        "question": board_text(data["question"]) or card["question"],
        "type": data["type"],
        "diagnosis": board_text(data["diagnosis"], LONG),
        # Opposite answers are no resolution, whatever the model calls them.
        "resolved": bool(data["resolved"]) and answers != {"yes", "no"},
        "resolution": board_text(data["resolution"], LONG),
    }


def card_events(
    state: ConversationState,
    config: DebateConfig,
    room: Room,
    data: Mapping[str, Any],
    before: Sequence[Note] = (),
) -> list[Note]:
    """Return what each of the two holds after the room, as notes, as far as their own words there show it."""
    entries = {entry["id"]: entry for entry in entries_of(room["message_ids"], state["full_transcript"])}
    minutes = Minutes(
        known=[*(state.get("minutes") or []), *before],
        topic=state["topic"],
        entries=entries,
        debaters=room["between"],
        by="model",
    )
    names = {who: config.names()[who] for who in room["between"]}
    for side in data["sides"]:
        entry = entries.get(cited_id(side["message_id"]))
        who = known_debater(side["debater"], names)
        held = minutes.ledger.stance(who, room["claim"])
        known = held and (held["message_id"], held["kind"]) == (cited_id(side["message_id"]), side["now"])
        if entry is not None and entry["speaker"] == who and not known:
            event = {"proposition": room["claim"], "kind": side["now"], "confidence": 1.0, "ground": False}
            words = {"message_id": entry["id"], "quote": side["quote"], "condition": ""}
            minutes.take({"events": [{**event, **words}]})
    return minutes.new


def card_by_rule(state: ConversationState, config: DebateConfig, room: Room) -> CruxCard:
    """Return a card without a model: resolved where somebody gives up this very statement at last."""
    text, names = claim_text(state, room), config.names()
    entries, claim = entries_of(room["message_ids"], state["full_transcript"]), term_set(text)
    sides: dict[str, CruxSide] = {}
    for who in room["between"]:
        # A side is as the ledger has it, nuanced where its last words give the statement up.
        own = [entry["content"] for entry in entries if entry["speaker"] == who]
        said = [each.text for each in split_sentences(own[-1])] if own else []
        about = [each for each in said if 2 * len(term_set(each) & claim) >= len(claim)]
        moved = any(concedes(each) or shifts(each) for each in about) and not any(map(keeps_position, said))
        stands = "yes" if ledger_of(state).sign(who, room["claim"]) > 0 else "no"
        flips = config.debater(who).flip_conditions
        sides[who] = {
            "answer": "nuanced" if moved else stands,  # type: ignore[typeddict-item]  # one of the three
            "reasoning": board_text(about[-1], LONG) if about else "",
            "falsifier": board_text(flips[0], LONG) if flips else "",
        }
    movers = " and ".join(names[who] for who, side in sides.items() if side["answer"] == "nuanced")
    return {
        "id": f"card-{room['id']}",
        "claim": room["claim"],
        "message_ids": [*room["trigger"], *room["message_ids"]],
        "round": int(state.get("round", 0)),
        "room": room["id"],
        "question": board_text(f"Is this so: {text}") if text else "",
        "sides": sides,
        "type": "claim",
        "diagnosis": "The two differ on this statement.",
        "resolved": bool(movers),
        "resolution": f"{movers} moved towards the other side." if movers else "",
    }


def room_closes(state: ConversationState, room: Room, card: CruxCard) -> bool:
    """Return whether a room is over: converged, at its cap, or going in circles."""
    at_cap = room["cycle"] >= room.get("cycles", CYCLES)
    if card["resolved"] or at_cap or not claim_now(state, room):
        return True
    # It goes in circles where both repeat in this cycle what they said in the last one.
    entries = entries_of(room["message_ids"], state["full_transcript"])
    for who in room["between"]:
        said = [entry["content"] for entry in entries if entry["speaker"] == who]
        if len(said) < 4 or likeness("\n".join(said[-2:]), "\n".join(said[-4:-2])) < ALIKE:
            return False
    return True


def claim_text(state: StateValues, room: Room) -> str:
    """Return what a room is about, in words."""
    known = ledger_of(state).propositions.get(room["claim"])
    return board_text(known["text"]) if known else ""

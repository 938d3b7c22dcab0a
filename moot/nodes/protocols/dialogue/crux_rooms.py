"""Crux rooms: which disagreements are worth one, and how a room goes from stage to stage."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moot.nodes.blackboard.board_words import cards_of
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.rooms import awaits_second, claim_now, claim_text, make_room
from moot.nodes.blackboard.standing import Ledger, stage_of
from moot.nodes.prompts.library import load_prompt
from moot.nodes.protocols.dialogue.dialogue_settings import DialogueConfig
from moot.nodes.protocols.protocol import make_floor, make_step, with_agreement
from moot.nodes.text.terms import numbers, term_set
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, Step
from moot.state.entries import seq_of
from moot.state.ledger import MOTION, OVERALL, Event, EventKind, Note, Room, Stage

STAGES = {
    "positions": load_prompt("crux-positions", "target", "claim", "words", home=__package__),
    "exchange": load_prompt("crux-exchange", "target", "claim", "words", home=__package__),
    "steelman": load_prompt("crux-steelman", "target", "claim", "words", home=__package__),
}
WORDS = 120
"""What a speech in a crux room is asked to stay within."""
SPECIFIC_TERMS = 3
"""Content words, or a figure, without which a proposition says nothing definite enough to be settled."""


def open_rooms(state: ConversationState) -> dict[str, Room]:
    """Return the rooms in which there is more to say."""
    return {key: room for key, room in state.get("crux_rooms", {}).items() if not room["closed"]}


def room_step(state: ConversationState, config: DebateConfig, rooms: Mapping[str, Room]) -> Step:
    """Return the next step of rooms, which go from stage to stage together.

    Both say at once where they stand; then they take turns, so that whoever is next can answer.
    """
    moved = {key: _at_next_floor(state, room) for key, room in rooms.items()}
    names, floors = config.names(), []
    for room in moved.values():
        pairs = [room["between"], room["between"][::-1]]
        if room["stage"] != "positions":
            pairs = pairs[:1] if awaits_second(room) else pairs[1:]
        for who, other in pairs:
            instruction = STAGES[room["stage"]].render(
                target=names[other], claim=claim_text(state, room), words=str(WORDS)
            )
            targets = [other, *(room["message_ids"] or room["trigger"])[-1:]]
            floors.append(
                make_floor(who, with_agreement(instruction, config), targets=targets, room=room["id"])
            )
    stage = next(iter(moved.values()))["stage"]
    aspect = state.get("step", {}).get("aspect", "")
    return {**make_step(f"crux-{stage}", state.get("round", 0), floors, aspect=aspect), "rooms": moved}


def _at_next_floor(state: ConversationState, room: Room) -> Room:
    """Return a room at its next floor: both positions, then exchange and steelman, one after the other.

    Where its claim is settled and the two differ on another now, it goes on with that.
    """
    if awaits_second(room):
        return {**room, "second": False}
    following: dict[str, Stage] = {"": "positions", "positions": "exchange", "exchange": "steelman"}
    stage: Stage = following.get(room["stage"], "exchange")
    cycle = room["cycle"] + (stage == "exchange")
    claim = claim_now(state, room) or room["claim"]
    return {**room, "claim": claim, "stage": stage, "cycle": cycle, "second": stage != "positions"}


def new_rooms(state: ConversationState, config: DebateConfig) -> dict[str, Room]:
    """Return a room for every disagreement worth one, as far as nobody would have to be in two."""
    crux, taken = DialogueConfig.of(config).crux, set[str]()
    rooms: dict[str, Room] = {}
    number = len(state.get("crux_rooms", {}))
    for contest in _worthy_contests(state, config):
        if not taken & set(contest.between) and number < crux.max_rooms:
            number += 1
            taken |= set(contest.between)
            key, ids, round_no = f"room-{number:02d}", contest.message_ids, state.get("round", 0)
            rooms[key] = make_room(key, contest.proposition, contest.between, ids, round_no, crux.cycles)
    return rooms


class Contest(NamedTuple):
    """A proposition on which a pair differs."""

    proposition: str
    between: tuple[str, str]
    """Who asserts it, then who denies it."""
    message_ids: tuple[str, ...]
    """Both ends of the contradiction, in the order in which they were said."""
    confidence: float
    promise: float
    """How much a finding would move: what rests on it × how sure it is × whether an answer could be found."""


def _worthy_contests(state: ConversationState, config: DebateConfig) -> list[Contest]:
    """Return the contests that deserve a room, the most promising first."""
    crux, ledger, ids = DialogueConfig.of(config).crux, ledger_of(state), set(config.names())
    rooms, now = state.get("crux_rooms", {}).values(), state.get("round", 0)
    cards = cards_of(state)
    taken = {room["claim"] for room in open_rooms(state).values()}
    worthy = []
    for key in ledger.by_salience if crux.enabled else ():
        if key in taken or stage_of(ledger, key, cards) != "active":
            continue
        text = ledger.propositions[key]["text"]
        # What could be settled: the motion is what the whole dialogue is about.
        definite = key != MOTION and (len(term_set(text)) >= SPECIFIC_TERMS or numbers(text))
        if crux.specific and not definite:
            continue
        for pair in ledger.pairs(key):
            earlier = [room["round"] for room in rooms if set(room["between"]) == set(pair)]
            if set(pair) <= ids and all(now - round_no > crux.cooldown for round_no in earlier):
                contest = _contest(ledger, config, key, pair)
                is_sure = contest.confidence >= crux.confidence
                if is_sure and _is_relevant(state, ledger, key, pair, crux.relevance):
                    worthy.append(contest)
    return sorted(worthy, key=lambda contest: (-contest.promise, contest.proposition))


def _contest(ledger: Ledger, config: DebateConfig, key: str, pair: tuple[str, str]) -> Contest:
    events = [ledger.stances(key)[who] for who in pair]
    rests = sum(turn.event["ground"] and turn.event["debater"] in pair for turn in ledger.course(key))
    confidence = min(event["confidence"] for event in events)
    findable = any(item["proposition"] == key for item in ledger.evidence)
    findable |= any(config.debater(who).flip_conditions for who in pair)
    ids = sorted({event["message_id"] for event in events}, key=lambda each: seq_of(each) or 0)
    return Contest(
        key, pair, tuple(ids), confidence, (1 + min(2, rests)) * confidence * (1.5 if findable else 1)
    )


def _is_relevant(state: ConversationState, ledger: Ledger, key: str, pair: Sequence[str], least: int) -> bool:
    """Return whether a proposition bears on the topic: a stance rests on it, or it shares enough terms.

    What it may share them with is the topic, the aspects, and what the two said for their stances.
    """
    if ledger.course(key).grounds:
        return True
    stances = [event["quote"] for who in pair if (event := ledger.stance(who))]
    aspects = [str(text) for text in (state.get("protocol_state") or {}).get("aspects") or []]
    texts = [state["topic"], ledger.propositions[key]["aspect"], *aspects, *stances]
    context = {term for text in texts for term in term_set(text)}
    return len(term_set(ledger.propositions[key]["text"]) & context) >= least


def supposed_dispute(
    state: ConversationState, config: DebateConfig, pairs: Sequence[tuple[str, str]]
) -> list[Note]:
    """Return notes by which the first of these pairs that may have a room now is in dispute, and nobody else.

    What they differ on they could not be surer of, and their stances rest on it.
    """
    ledger, minutes = ledger_of(state), state.get("minutes", [])
    in_rooms = {room["claim"] for room in open_rooms(state).values()}
    past = [event["id"] for event in ledger.events if event["proposition"] not in in_rooms]
    calm: list[Note] = [{"note": "retraction", "of": key, "why": "", "by": "model"} for key in past]
    for pair in pairs:
        number = len(ledger.propositions)
        notes: list[Note] = [*calm, *_dispute_notes(state, pair, f"p{number:03d}")]
        if _worthy_contests({**state, "minutes": [*minutes, *notes]}, config):
            return notes
    return calm


def _dispute_notes(state: ConversationState, pair: Sequence[str], key: str) -> list[Note]:
    last = state["full_transcript"][-1]
    kinds: tuple[EventKind, EventKind] = ("asserts", "denies")
    return [
        {"note": "proposition", "id": key, "text": state["topic"], "aspect": OVERALL, "seq": last["seq"]},
        *(
            Event(
                note="event",
                id=f"{key}-{who}",
                kind=kind,
                proposition=key,
                debater=who,
                message_id=last["id"],
                quote="",
                condition="",
                ground=True,
                by="model",
                confidence=1.0,
            )
            for who, kind in zip(pair, kinds, strict=True)
        ),
    ]

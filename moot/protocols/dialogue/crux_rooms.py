"""Selection of disagreements for crux rooms, and the stages of a room."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, field_validator

from moot.claims.claim_status import Ledger
from moot.claims.crux_cards import CYCLES, awaits_second, claim_text, current_claim, is_answered, make_room
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import cards_of
from moot.config import DebateConfig, ProtocolSettings, Section
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import prompt_name
from moot.protocols.schedule import make_step, make_turn, with_agreement, words_within
from moot.state.claim_events import MAIN_QUESTION, Room, RoomStage
from moot.state.conversation import ConversationState, Step
from moot.state.entries import seq_of
from moot.text.terms import numbers, term_set


class CruxConfig(Section):
    """Settings that decide when side discussions, called crux rooms, open and how long they last."""

    confidence: float = Field(0.6, ge=0, le=1)
    """Minimum confidence, from 0 to 1, that two debaters disagree. With less confidence, no side discussion
    between them opens. Lower this value to get more side discussions, which are called crux rooms."""
    specific: bool = True
    """True if a side discussion needs a specific claim. A claim is specific if it has enough content words or
    contains a number. Set `specific` to false for broad topics in which no crux room opens."""
    relevance: int = Field(1, ge=0)
    """Number of relevant words that a claim needs for a side discussion. Relevant words also occur in the
    topic, its aspects or the two debaters' positions. A claim that supports a debater's position needs none.
    0: every claim qualifies."""
    cooldown: int = Field(1, ge=0)
    """Minimum number of rounds between two side discussions of the same two debaters."""
    max_rooms: int = Field(4, ge=0)
    """Maximum number of side discussions, called crux rooms, in a debate. 0: no crux rooms."""
    cycles: int = Field(CYCLES, ge=1, le=6)
    """Maximum number of exchanges in a side discussion between two debaters. In an exchange, each debater
    first says where their views diverge, and then restates the other's view and answers it."""


class DialogueConfig(ProtocolSettings):
    """Settings of the `dialogue` protocol.

    The settings concern the topic's aspects, the short rounds about each aspect, and side discussions between
    two debaters.
    """

    key = "dialogue"

    aspects: tuple[str, ...] = ()
    """Aspects of the topic that are discussed one after the other. Empty: a model names the aspects."""
    max_aspects: int = Field(3, ge=1, le=12)
    """Maximum number of aspects into which a model may divide the topic."""
    minirounds: int = Field(1, ge=1, le=6)
    """Number of short rounds about each aspect. In such a miniround, every debater writes a response and then
    a reply."""
    crux: CruxConfig = Field(default_factory=CruxConfig)
    """Settings for side discussions between two debaters who disagree. In such a crux room, the two debaters
    discuss one disputed claim for a few turns."""

    @field_validator("aspects")
    @classmethod
    def _check_aspects(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(aspect.strip() for aspect in value):
            raise ValueError(
                "an aspect is empty: name it, or remove `aspects` to let a model choose the aspects"
            )
        return value


STAGES = {
    "positions": load_prompt_template("crux-positions", "target", "claim", "words", home=__package__),
    "exchange": load_prompt_template(
        "crux-exchange", "target", "claim", "question", "words", home=__package__
    ),
    "steelman": load_prompt_template("crux-steelman", "target", "claim", "words", home=__package__),
}
_CRUX = "Your disagreement seems to come down to one question: {}"
_ASK_CRUX = "State the disagreement as one question, or take theirs if it is better."
_CHECK_CRUX = "Say whether the question above is the right one. If not, put a better one."
WORDS = 120
"""Maximum number of words in a message of a side discussion."""
SPECIFIC_TERMS = 3
"""Minimum number of content words in a specific claim. A claim with a number is always specific. A side
discussion may need a specific claim."""


def open_rooms(state: ConversationState) -> dict[str, Room]:
    """Return the side discussions that are still open, keyed by room id."""
    return {key: room for key, room in state.get("crux_rooms", {}).items() if not room["closed"]}


def room_step(state: ConversationState, config: DebateConfig, rooms: Mapping[str, Room]) -> Step:
    """Return the next step of the given side discussions, each between two debaters.

    All crux rooms must be in the same stage.

    Both debaters state their positions at the same time. In later stages they alternate, so that the second
    can answer the first.
    """
    next_rooms = {key: _next_room_turn(state, room) for key, room in rooms.items()}
    names, turns = config.names(), []
    for room in next_rooms.values():
        pairs = [room["between"], room["between"][::-1]]
        if room["stage"] != "positions":
            pairs = pairs[:1] if awaits_second(room) else pairs[1:]
        for speaker, partner in pairs:
            instruction = STAGES[room["stage"]].render(
                target=prompt_name(partner, names),
                claim=_disputed(state, room),
                words=words_within(WORDS, config),
                question=_CHECK_CRUX if _crux(room) else _ASK_CRUX,
            )
            targets = [partner, *(room["message_ids"] or room["trigger"])[-1:]]
            full_instruction = with_agreement(instruction, config, answer=False)
            turns.append(make_turn(speaker, full_instruction, targets=targets, room=room["id"]))
    stage = next(iter(next_rooms.values()))["stage"]
    aspect = state.get("step", {}).get("aspect", "")
    return {**make_step(f"crux-{stage}", state.get("round", 0), turns, aspect=aspect), "rooms": next_rooms}


def _disputed(state: ConversationState, room: Room) -> str:
    """Return the disputed claim of a crux room, and the core disagreement if it is known."""
    crux, claim = _crux(room), claim_text(state, room)
    return f"{claim.removesuffix('.')}. {_CRUX.format(crux)}" if crux else claim


def _crux(room: Room) -> str:
    """Return the question at the core of a side discussion, or `""` if it is unknown."""
    card = room.get("card")
    return card["question"] if card else ""


def _next_room_turn(state: ConversationState, room: Room) -> Room:
    """Return a copy of a side discussion that is advanced to its next turn.

    Positions come first. A cycle is an exchange and a steelman.

    If the room's claim is settled and the two debaters disagree on another claim, the room continues with the
    latter.
    """
    if awaits_second(room):
        return {**room, "second": False}
    following: dict[str, RoomStage] = {"": "positions", "positions": "exchange", "exchange": "steelman"}
    stage: RoomStage = following.get(room["stage"], "exchange")
    cycle = room["cycle"] + (stage == "exchange")
    claim = current_claim(state, room) or room["claim"]
    return {**room, "claim": claim, "stage": stage, "cycle": cycle, "second": stage != "positions"}


def new_rooms(state: ConversationState, config: DebateConfig) -> dict[str, Room]:
    """Return the crux rooms that start now. No debater enters two at once."""
    crux, busy_debaters = DialogueConfig.of(config).crux, set[str]()
    rooms: dict[str, Room] = {}
    number = len(state.get("crux_rooms", {}))
    for contest in _contested_claims(state, config):
        if not busy_debaters & set(contest.between) and number < crux.max_rooms:
            number += 1
            busy_debaters |= set(contest.between)
            key, ids, round_no = f"room-{number:02d}", contest.message_ids, state.get("round", 0)
            rooms[key] = make_room(key, contest.claim, contest.between, ids, round_no, crux.cycles)
    return rooms


class ContestedClaim(NamedTuple):
    """Disputed claim that two debaters may discuss in a crux room."""

    claim: str
    between: tuple[str, str]
    """Ids of the two debaters who dispute the claim. The first one asserts it."""
    message_ids: tuple[str, ...]
    """Ids of the messages that state the two debaters' opposing stances, oldest first."""
    confidence: float
    promise: float
    """Expected benefit of a separate discussion of the claim. The benefit grows with the stances that depend
    on the claim and with the confidence, and is 1.5 times as high if evidence can be found."""


def _contested_claims(state: ConversationState, config: DebateConfig) -> list[ContestedClaim]:
    """Return the disputed claims that two debaters may discuss in a crux room, most promising first."""
    crux, ledger, debater_ids = DialogueConfig.of(config).crux, ledger_of(state), set(config.names())
    rooms, current_round = state.get("crux_rooms", {}).values(), state.get("round", 0)
    cards = cards_of(state)
    open_claims = {room["claim"] for room in open_rooms(state).values()}
    contests = []
    for key in ledger.by_salience if crux.max_rooms else ():
        if key in open_claims or ledger.status(key) != "disputed" or is_answered(ledger, key, cards):
            continue
        text = ledger.claims[key]["text"]
        # The main question is the subject of the whole dialogue, so it gets no room of its own.
        is_specific = key != MAIN_QUESTION and (len(term_set(text)) >= SPECIFIC_TERMS or numbers(text))
        if crux.specific and not is_specific:
            continue
        for pair in ledger.pairs(key):
            earlier_rounds = [room["round"] for room in rooms if set(room["between"]) == set(pair)]
            if set(pair) <= debater_ids and all(
                current_round - round_no > crux.cooldown for round_no in earlier_rounds
            ):
                contest = _contest(ledger, config, key, pair)
                is_sure = contest.confidence >= crux.confidence
                if is_sure and _is_relevant(state, ledger, key, pair, crux.relevance):
                    contests.append(contest)
    return sorted(contests, key=lambda contest: (-contest.promise, contest.claim))


def _contest(ledger: Ledger, config: DebateConfig, key: str, pair: tuple[str, str]) -> ContestedClaim:
    events = [ledger.stances(key)[debater] for debater in pair]
    ground_count = sum(
        turn.event["ground"] and turn.event["debater"] in pair for turn in ledger.timeline(key)
    )
    confidence = min(event["confidence"] for event in events)
    is_findable = any(item["claim"] == key for item in ledger.evidence)
    is_findable |= any(config.debater(debater).flip_conditions for debater in pair)
    ids = sorted({event["message_id"] for event in events}, key=lambda each: seq_of(each) or 0)
    return ContestedClaim(
        key,
        pair,
        tuple(ids),
        confidence,
        (1 + min(2, ground_count)) * confidence * (1.5 if is_findable else 1),
    )


def _is_relevant(
    state: ConversationState, ledger: Ledger, key: str, pair: Sequence[str], min_terms: int
) -> bool:
    """Return True if a claim is relevant enough for a side discussion.

    A claim that supports a debater's position is always relevant. Of any other claim, at least `min_terms`
    content words must also occur in the topic, the aspects and the quotations of the two debaters' stances.
    """
    if ledger.timeline(key).grounds:
        return True
    stances = [event["quote"] for debater in pair if (event := ledger.stance(debater))]
    aspects = [str(text) for text in (state.get("protocol_state") or {}).get("aspects") or []]
    texts = [state["topic"], ledger.claims[key]["aspect"], *aspects, *stances]
    context = {term for text in texts for term in term_set(text)}
    return len(term_set(ledger.claims[key]["text"]) & context) >= min_terms

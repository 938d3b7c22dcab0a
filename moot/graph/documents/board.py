"""The blackboard in a debate's document: the ledger's notes, and how things stand, computed from them."""

from collections.abc import Sequence

from typing_extensions import TypedDict

from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.outcome import stages
from moot.nodes.blackboard.standing import Ledger, Stage, Status, leaning
from moot.state.conversation import StateValues
from moot.state.entries import Entry, round_of
from moot.state.ledger import MOTION, CruxCard, Event, Note, Reflection, Saying


class Stance(Saying):
    """What one debater says of a proposition, at last."""

    message_id: str
    quote: str
    history: list[str]
    """Ids of all its events on the proposition, oldest first."""


class PropositionStanding(TypedDict):
    """How one proposition stands."""

    id: str
    text: str
    aspect: str
    status: Status
    stage: Stage
    """How far a dispute has come, `""` where there is none."""
    stances: dict[str, Stance]
    """By debater."""
    card: str
    """Crux card that came of it, `""` for none."""


class Admission(TypedDict):
    """A concession or a change of mind."""

    event: str
    debater: str
    proposition: str
    core: bool
    """Whether it gives up the motion, or what the debater's stance on it rests on."""
    message_id: str
    quote: str
    before: str
    """What was held before, in the debater's words; `""` where that was not noted."""


class RoundRecord(TypedDict):
    """What one round brought."""

    round: int
    positions: dict[str, str]
    """What each debater said last of the topic, or of anything, in it, in its own words."""
    new_disputes: list[str]
    """Ids of propositions on which in it for the first time one said yes and another no."""
    moved: list[str]
    """Ids of the events in it by which somebody conceded or changed its mind."""


class Standing(TypedDict):
    """How things stand; computed from the notes, and not read when a document is imported."""

    propositions: list[PropositionStanding]
    """The motion first, then by what rests on each."""
    concessions: list[Admission]
    changes: list[Admission]
    open_challenges: list[str]
    open_questions: list[str]
    rounds: list[RoundRecord]
    dropped: dict[str, int]
    """How many operations of its readers the ledger did not take, by the reason."""


class Blackboard(TypedDict):
    """What was noted of the debate."""

    minutes: list[Note]
    """The ledger's notes, in order; empty in documents of earlier builds, whose notes are read no more."""
    standing: Standing
    reflections: list[Reflection]
    cards: list[CruxCard]


def board_document(state: StateValues) -> Blackboard:
    """Return the blackboard of a debate's state."""
    return {
        "minutes": list(state.get("minutes") or []),
        "standing": standing_of(state),
        "reflections": list(state.get("reflections") or []),
        "cards": list((state.get("crux_cards") or {}).values()),
    }


def standing_of(state: StateValues) -> Standing:
    """Return how things stand in a debate's state."""
    ledger, found = ledger_of(state), stages(state)
    cards = {card["claim"]: card["id"] for card in (state.get("crux_cards") or {}).values()}
    before = {change.event["id"]: change.before for change in ledger.changes}

    def admission(event: Event) -> Admission:
        former = before.get(event["id"])
        return {
            "event": event["id"],
            "debater": event["debater"],
            "proposition": event["proposition"],
            "core": ledger.is_core(event),
            "message_id": event["message_id"],
            "quote": event["quote"],
            "before": former["quote"] if former else "",
        }

    return {
        "propositions": [
            {
                "id": key,
                "text": ledger.propositions[key]["text"],
                "aspect": ledger.propositions[key]["aspect"],
                "status": ledger.status(key),
                "stage": found[key],
                "stances": _stances(ledger, key),
                "card": cards.get(key, ""),
            }
            for key in ledger.by_salience
        ],
        "concessions": [admission(event) for event in ledger.concessions()],
        "changes": [admission(change.event) for change in ledger.changes],
        "open_challenges": [each["id"] for each in ledger.open_challenges()],
        "open_questions": [each["id"] for each in ledger.open_questions()],
        "rounds": _rounds(ledger, state.get("full_transcript") or []),
        "dropped": dict(ledger.dropped),
    }


def _stances(ledger: Ledger, key: str) -> dict[str, Stance]:
    history: dict[str, list[str]] = {}
    for turn in ledger.course(key):
        history.setdefault(turn.event["debater"], []).append(turn.event["id"])
    return {
        who: {
            "kind": event["kind"],
            "condition": event["condition"],
            "message_id": event["message_id"],
            "quote": event["quote"],
            "history": history[who],
        }
        for who, event in ledger.stances(key).items()
    }


def _rounds(ledger: Ledger, transcript: Sequence[Entry]) -> list[RoundRecord]:
    """Return a record for each round in which anything was noted."""
    records: dict[int, RoundRecord] = {}
    moved = {change.event["id"] for change in ledger.changes} | {e["id"] for e in ledger.concessions()}
    held: dict[str, dict[str, int]] = {}
    disputed: set[str] = set()
    for event in ledger.events:
        round_no = round_of(event["message_id"], transcript)
        empty = RoundRecord(round=round_no, positions={}, new_disputes=[], moved=[])
        record = records.setdefault(round_no, empty)
        if event["proposition"] == MOTION or event["debater"] not in record["positions"]:
            record["positions"][event["debater"]] = event["quote"]
        key = event["proposition"]
        held.setdefault(key, {})[event["debater"]] = leaning(event)
        if key and key not in disputed and {1, -1} <= set(held[key].values()):
            disputed.add(key)
            record["new_disputes"].append(key)
        if event["id"] in moved:
            record["moved"].append(event["id"])
    return [records[number] for number in sorted(records)]

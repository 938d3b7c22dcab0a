"""Where each debater stands, and when that changed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moot.graph.documents import DebateDocument
from moot.graph.documents.document import Admission, PropositionStanding, Stance
from moot.graph.reports.cast import People, Person
from moot.nodes.blackboard.board_words import board_text, says, side_conceded
from moot.nodes.blackboard.folding import fold_notes
from moot.nodes.blackboard.standing import Ledger
from moot.state.ledger import MOTION, Challenge, Event, Evidence

MOST_MOMENTS = 24
"""Moments above which a timeline leaves out what was said again, and keeps the changes of mind."""


@dataclass(frozen=True)
class Holding:
    """What a debater holds of one proposition, with what it rests on and what was put against it."""

    name: str
    position: str
    evidence: Sequence[str]
    challenged: Sequence[str]


@dataclass(frozen=True)
class Moment:
    """One step of a debater's position through the debate."""

    when: str
    kind: str
    """`start`, `held` or `shift`."""
    text: str
    before: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class DebaterPosition:
    """All that is known of one debater's position."""

    person: Person
    stance: str
    holdings: Sequence[Holding]
    agreements: Sequence[str]
    disagreements: Sequence[str]
    concessions: Sequence[str]
    moments: Sequence[Moment]


def read_standings(document: DebateDocument, people: People) -> tuple[DebaterPosition, ...]:
    """Build the standing of each debater from the ledger and from its contract."""
    standing = document["blackboard"]["standing"]
    ledger = fold_notes(document["blackboard"]["minutes"], document["topic"])
    motion = next((each["stances"] for each in standing["propositions"] if each["id"] == MOTION), {})
    # The motion is told by the stance, agreement on it included.
    others = [each for each in standing["propositions"] if each["id"] != MOTION]
    texts = {each["id"]: each["text"] for each in others}
    standings = []
    for person in people.values():
        who, stance = person.id, motion.get(person.id)
        holdings = list(_holdings(document, others, who, ledger))
        agreements: list[str] = []
        disagreements: list[str] = []
        for other in people.values():
            agreed, differing = ledger.common_ground(who, other.id) if other.id != who else ((), ())
            disagreements += [f"{other.name}: {texts[key]}" for key in differing if key in texts]
            for key in agreed:
                if key in texts:
                    answer = "no" if ledger.sign(who, key) < 0 else "yes"
                    agreements.append(f"{other.name}: {answer} to: {texts[key]}")
        concessions = [
            cited_quotation(each)
            for each in standing["concessions"]
            if each["debater"] == who and not any(each["quote"] in held.position for held in holdings)
        ]
        said, moments = mark(stance) if stance else person.stance, list(_moments(document, person, stance))
        standings.append(
            DebaterPosition(person, said, holdings, agreements, disagreements, concessions, moments)
        )
    return tuple(standings)


def mark(stance: Stance, side: str = "") -> str:
    """Return a stance with its quotation, of a concession with the side that it gives in to."""
    return f"{says(stance)}{side}: {cited_quotation(stance)}"


def cited_quotation(note: Stance | Event | Evidence | Challenge | Admission) -> str:
    """Return a note's quotation with its message."""
    return f"“{note['quote']}” [{note['message_id']}]"


def _holdings(
    document: DebateDocument, propositions: Sequence[PropositionStanding], who: str, ledger: Ledger
) -> Iterator[Holding]:
    """Yield what a debater holds, with evidence and open challenges; what is about nothing known is last."""
    waiting = document["blackboard"]["standing"]["open_challenges"]
    evidence, challenged = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for note in document["blackboard"]["minutes"]:
        if note["note"] == "evidence" and note["debater"] == who:
            evidence[note["proposition"]].append(cited_quotation(note))
        elif note["note"] == "challenge" and note["to"] == who and note["id"] in waiting:
            challenged[note["proposition"]].append(cited_quotation(note))
    for each in propositions:
        key, stance = each["id"], each["stances"].get(who)
        if stance or key in evidence or key in challenged:
            # A proposition of this very quotation needs no words of its own.
            own = stance is not None and board_text(stance["quote"]).startswith(each["text"].rstrip("…"))
            event = None if own else ledger.stance(who, key)
            position = mark(stance, side_conceded(ledger, event) if event else "") if stance else ""
            name = "" if own else each["text"].removesuffix(".")
            yield Holding(name, position, evidence[key], challenged[key])
    if "" in evidence or "" in challenged:
        yield Holding("", "", evidence[""], challenged[""])


def _moments(document: DebateDocument, person: Person, motion: Stance | None) -> Iterator[Moment]:
    """Yield what a debater said of the motion, and every change of mind."""
    rounds: Mapping[str, int] = {entry["id"]: entry["round"] for entry in document["transcript"]}
    changes = {each["event"]: each for each in document["blackboard"]["standing"]["changes"]}
    held = set(motion["history"]) if motion else set()
    moments = [
        Moment(
            when=f"Round {rounds.get(note['message_id'], 0)}",
            kind="shift" if note["id"] in changes else "held",
            text=note["quote"],
            before=changes[note["id"]]["before"] if note["id"] in changes else "",
            message_id=note["message_id"],
        )
        for note in document["blackboard"]["minutes"]
        if note["note"] == "event" and note["debater"] == person.id
        if note["id"] in held or note["id"] in changes
    ]
    if person.stance and moments:
        yield Moment("At the start", "start", person.stance)
    many = len(moments) > MOST_MOMENTS
    yield from (moment for moment in moments if not many or moment.kind == "shift")

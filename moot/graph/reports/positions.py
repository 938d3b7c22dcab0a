"""Where each debater stands, and when that changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moot.graph.documents import DebateDocument
from moot.graph.documents.board import Admission, PropositionStanding, Stance
from moot.graph.reports.cast import People, Person
from moot.nodes.blackboard.board_words import noted, says, side_conceded
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
    evidence: tuple[str, ...]
    challenged: tuple[str, ...]


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
    holdings: tuple[Holding, ...]
    agreements: tuple[str, ...]
    disagreements: tuple[str, ...]
    concessions: tuple[str, ...]
    moments: tuple[Moment, ...]


def read_standings(document: DebateDocument, people: People) -> tuple[DebaterPosition, ...]:
    """Build the standing of each debater from the ledger and from its contract."""
    return tuple(_standing(document, person, people) for person in people)


def contested(document: DebateDocument) -> list[PropositionStanding]:
    """Return what was in dispute, or given up."""
    propositions = document["blackboard"]["standing"]["propositions"]
    return [each for each in propositions if each["status"] in ("disputed", "settled")]


def mark(stance: Stance, side: str = "") -> str:
    """Return a stance with its quotation, of a concession with the side that it gives in to."""
    return f"{says(stance)}{side}: {quoted(stance)}"


def quoted(note: Stance | Event | Evidence | Challenge | Admission) -> str:
    """Return a note's quotation with its message."""
    return f"“{note['quote']}” [{note['message_id']}]"


def _standing(document: DebateDocument, person: Person, people: People) -> DebaterPosition:
    standing = document["blackboard"]["standing"]
    propositions = standing["propositions"]
    motion = next((each["stances"].get(person.id) for each in propositions if each["id"] == MOTION), None)
    others = [each for each in propositions if each["id"] != MOTION]
    ledger = fold_notes(document["blackboard"]["minutes"], document["topic"])
    texts = {each["id"]: each["text"] for each in others}
    sided = {key: f"{'no' if ledger.sign(person.id, key) < 0 else 'yes'} to: {texts[key]}" for key in texts}
    shared = {other: ledger.shared(person.id, other.id) for other in people if other.id != person.id}
    holdings = tuple(_holdings(document, others, person.id, ledger))
    return DebaterPosition(
        person=person,
        stance=mark(motion) if motion else person.stance,
        holdings=holdings,
        agreements=tuple(_on(sided, ((other, agreed) for other, (agreed, _) in shared.items()))),
        disagreements=tuple(_on(texts, ((other, differing) for other, (_, differing) in shared.items()))),
        concessions=tuple(
            quoted(each)
            for each in standing["concessions"]
            if each["debater"] == person.id and not any(each["quote"] in held.position for held in holdings)
        ),
        moments=tuple(_moments(document, person, motion)),
    )


def _on(texts: Mapping[str, str], shared: Iterable[tuple[Person, Sequence[str]]]) -> Iterator[str]:
    """Yield on which propositions each other debater agrees or differs; the motion is told elsewhere."""
    for other, keys in shared:
        yield from (f"{other.name}: {texts[key]}" for key in keys if key in texts)


def _holdings(
    document: DebateDocument, propositions: Sequence[PropositionStanding], who: str, ledger: Ledger
) -> Iterator[Holding]:
    """Yield what a debater holds, with evidence and open challenges; what is about nothing known is last."""
    notes, waiting = document["blackboard"]["minutes"], document["blackboard"]["standing"]["open_challenges"]
    shown = [note for note in notes if note["note"] == "evidence" and note["debater"] == who]
    against = [n for n in notes if n["note"] == "challenge" and n["to"] == who and n["id"] in waiting]
    for each in propositions:
        stance = each["stances"].get(who)
        evidence = tuple(quoted(note) for note in shown if note["proposition"] == each["id"])
        challenged = tuple(quoted(note) for note in against if note["proposition"] == each["id"])
        if stance or evidence or challenged:
            # A proposition of this very quotation needs no words of its own.
            own = stance is not None and noted(stance["quote"]).startswith(each["text"].rstrip("…"))
            event = None if own else ledger.stance(who, each["id"])
            position = mark(stance, side_conceded(ledger, event) if event else "") if stance else ""
            yield Holding("" if own else each["text"].removesuffix("."), position, evidence, challenged)
    evidence = tuple(quoted(note) for note in shown if not note["proposition"])
    challenged = tuple(quoted(note) for note in against if not note["proposition"])
    if evidence or challenged:
        yield Holding("", "", evidence, challenged)


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

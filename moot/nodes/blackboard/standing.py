"""How things stand: computed from the ledger's notes, never stored.

Everything here is a pure function of the notes. A later note, a retraction or a person's correction changes
the result, whatever came of it before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from moot.state.entries import seq_of
from moot.state.ledger import (
    MOTION,
    Answer,
    Challenge,
    CruxCard,
    Event,
    EventKind,
    Evidence,
    Gap,
    Note,
    Proposition,
    Question,
    Sameness,
)

RANK = {"rule": 0, "model": 1, "person": 2}
"""On the same message the higher one is believed."""

Status = Literal["open", "agreed", "disputed", "settled"]
Stage = Literal["", "active", "in_crux_room", "resolved", "abandoned"]
"""How far a dispute has come, `""` where there is none."""

_MIRRORED: Mapping[EventKind, EventKind] = {"asserts": "denies", "denies": "asserts"}


class Turn(NamedTuple):
    """An event in the course of a proposition, with its debater's sign before and after it."""

    event: Event
    before: int
    """1 for yes, -1 for no, 0 for neither."""
    after: int


class Change(NamedTuple):
    """A change of mind."""

    event: Event
    before: Event | None
    """What the debater had said of it before, `None` where that was not noted."""


@dataclass(frozen=True)
class Ledger:
    """The notes that stand."""

    propositions: Mapping[str, Proposition]
    """By id, the motion first; what is the same as another, or its negation, is only there as that one."""
    events: Sequence[Event]
    """In the order in which they were said."""
    challenges: Mapping[str, Challenge]
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]
    """By the id of the challenge or question."""
    evidence: Sequence[Evidence]
    gaps: Sequence[Gap]
    read_through: int = -1
    """`seq` of the last entry that has been read."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many operations were not taken, by the reason."""

    @cached_property
    def courses(self) -> Mapping[str, Sequence[Turn]]:
        """What was said of each proposition, in order."""
        courses: dict[str, list[Turn]] = defaultdict(list)
        signs: dict[str, dict[str, int]] = defaultdict(dict)
        last: dict[tuple[str, str], EventKind] = {}
        for event in self.events:
            known = signs[event["proposition"]]
            before = known.get(event["debater"], 0)
            others = sum(sign for who, sign in known.items() if who != event["debater"])
            again = event["kind"] == "concedes" == last.get((event["proposition"], event["debater"]))
            after = before if again else _sign_after(event["kind"], before, others)
            known[event["debater"]] = after
            last[event["proposition"], event["debater"]] = event["kind"]
            courses[event["proposition"]].append(Turn(event, before, after))
        return courses

    @cached_property
    def _stances(self) -> Mapping[str, Mapping[str, Turn]]:
        """The last turn of each debater on each proposition, in the order of the debaters' first ones."""
        return {key: {turn.event["debater"]: turn for turn in turns} for key, turns in self.courses.items()}

    def stances(self, proposition: str) -> Mapping[str, Event]:
        """Return each debater's last event on a proposition."""
        return {who: turn.event for who, turn in self._stances.get(proposition, {}).items()}

    def stance(self, debater: str, proposition: str = MOTION) -> Event | None:
        """Return a debater's stance, `None` where it has none."""
        turn = self._stances.get(proposition, {}).get(debater)
        return turn.event if turn else None

    def sign(self, debater: str, proposition: str = MOTION) -> int:
        """Return 1 where a debater now says yes, -1 for no, 0 for neither."""
        turn = self._stances.get(proposition, {}).get(debater)
        return turn.after if turn else 0

    def sides(self, proposition: str) -> tuple[list[str], list[str]]:
        """Return who asserts a proposition, be it on a condition, and who denies it."""
        stances = self.stances(proposition)
        yes = [who for who, event in stances.items() if event["kind"] in ("asserts", "conditional")]
        return yes, [who for who, event in stances.items() if event["kind"] == "denies"]

    def status(self, proposition: str) -> Status:
        """Return how a proposition stands."""
        return self._statuses.get(proposition, "open")

    @cached_property
    def _statuses(self) -> Mapping[str, Status]:
        return {key: self._status(key) for key in self.courses}

    def _status(self, proposition: str) -> Status:
        yes, no = self.sides(proposition)
        if yes and no:
            return "disputed"
        stances = self.stances(proposition)
        given_up = {who for who, event in stances.items() if event["kind"] in ("concedes", "withdraws")}
        pressed = {each["to"] for each in self.challenges.values() if each["proposition"] == proposition}
        if given_up and (pressed & given_up or self._was_disputed(proposition)):
            return "settled"
        held = Counter(
            self.sign(who, proposition) for who in stances if stances[who]["kind"] != "conditional"
        )
        return "agreed" if max(held[1], held[-1]) > 1 else "open"

    def _was_disputed(self, proposition: str) -> bool:
        held: dict[str, int] = {}
        for event, _, after in self.courses.get(proposition, ()):
            held[event["debater"]] = 1 if event["kind"] == "conditional" else after
            if {1, -1} <= set(held.values()):
                return True
        return False

    def pairs(self, proposition: str) -> list[tuple[str, str]]:
        """Return everybody who asserts a proposition with everybody who denies it."""
        yes, no = self.sides(proposition)
        return [(one, other) for one in yes for other in no]

    def shared(self, one: str, other: str) -> tuple[list[str], list[str]]:
        """Return the propositions on which two debaters agree and those on which they differ, by salience."""
        agreed, differing = [], []
        for key in self.by_salience:
            signs = self.sign(one, key), self.sign(other, key)
            if (one, other) in self.pairs(key) or (other, one) in self.pairs(key):
                differing.append(key)
            elif signs[0] == signs[1] != 0:
                agreed.append(key)
        return agreed, differing

    @cached_property
    def conceded(self) -> Mapping[str, Sequence[Event]]:
        """What each debater conceded, oldest first; by `""` what anybody did."""
        by_debater: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            if event["kind"] == "concedes":
                by_debater[event["debater"]].append(event)
                by_debater[""].append(event)
        return by_debater

    def concessions(self, debater: str = "") -> Sequence[Event]:
        """Return what a debater, or anybody, conceded."""
        return self.conceded.get(debater, ())

    def is_core(self, concession: Event) -> bool:
        """Return whether a concession gives up the motion, or what the debater's stance on it rests on."""
        key, who = concession["proposition"], concession["debater"]
        return key == MOTION or any(
            turn.event["ground"] and turn.event["debater"] == who for turn in self.courses.get(key, ())
        )

    @cached_property
    def changes(self) -> list[Change]:
        """Changes of mind, oldest first: a withdrawal, a yes that became a no, or a no that became a yes."""
        last: dict[tuple[str, str], Event] = {}
        changed = []
        turns = [turn for course in self.courses.values() for turn in course if turn.event["proposition"]]
        for turn in sorted(turns, key=lambda turn: _said_at(turn.event)):
            key = (turn.event["proposition"], turn.event["debater"])
            if turn.event["kind"] == "withdraws" or turn.before * turn.after < 0:
                changed.append(Change(turn.event, last.get(key)))
            last[key] = turn.event
        return changed

    def weight(self, proposition: str) -> int:
        """Return how many debaters' stances on the motion were said to rest on a proposition."""
        turns = self.courses.get(proposition, ())
        return len({turn.event["debater"] for turn in turns if turn.event["ground"]})

    @cached_property
    def by_salience(self) -> list[str]:
        """Ids of all propositions: the motion, then disputed before others, by weight, the newest first."""

        def urgency(key: str) -> tuple[Any, ...]:
            course = self.courses.get(key) or ()
            last = max((_said_at(turn.event) for turn in course), default=-1)
            return (key != MOTION, self.status(key) != "disputed", -self.weight(key), -last, key)

        return sorted(self.propositions, key=urgency)

    @cached_property
    def last_progress(self) -> int:
        """`seq` of the last message that brought evidence, a concession, a shift, or a new stance."""
        news = [turns for course in self.courses.values() for turns in self._firsts(course)]
        moves = [change.event for change in self.changes]
        return max(
            (_said_at(note) for note in (*self.evidence, *news, *moves, *self.concessions())), default=-1
        )

    @staticmethod
    def _firsts(course: Sequence[Turn]) -> Iterable[Event]:
        """Return the first event of each debater on a proposition."""
        return {turn.event["debater"]: turn.event for turn in reversed(course)}.values()

    def open_challenges(self, to: str = "") -> list[Challenge]:
        """Return the challenges that nobody has answered, to one debater or all, the newest first."""
        waiting = [each for key, each in self.challenges.items() if key not in self.answers]
        return [each for each in reversed(waiting) if to in ("", each["to"])]

    def open_questions(self, to: str = "") -> list[Question]:
        """Return the questions that wait for an answer, to one debater or all, the newest first."""
        waiting = [each for key, each in self.questions.items() if key not in self.answers]
        return [each for each in reversed(waiting) if to in ("", each["to"])]


def _said_at(note: Mapping[str, Any]) -> int:
    """Return the `seq` of the message that a note is on."""
    seq = seq_of(note["message_id"])
    return -1 if seq is None else seq


def _sign_after(kind: EventKind, before: int, others: int) -> int:
    """Return a debater's sign after an event; whoever concedes goes over to the other side."""
    if kind == "concedes":
        return -before if before else (-1 if others < 0 else 1)
    return {"asserts": 1, "denies": -1, "withdraws": 0}.get(kind, before)


class _Notes:
    """A channel's list of notes, equal to another where it is that very list: none is ever changed."""

    def __init__(self, notes: Sequence[Note]) -> None:
        self.notes = notes

    def __hash__(self) -> int:
        return id(self.notes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Notes) and self.notes is other.notes


def ledger_of(state: Mapping[str, Any]) -> Ledger:
    """Return the ledger of a debate's state; several views of one step fold its notes only once."""
    return _folded(_Notes(state.get("minutes") or ()), state.get("topic") or "")


@lru_cache(maxsize=8)
def _folded(notes: _Notes, topic: str) -> Ledger:
    return fold_notes(notes.notes, topic)


def fold_notes(notes: Sequence[Note], topic: str = "") -> Ledger:
    """Fold notes into the ledger: what was taken back is gone, what is the same is one.

    The order of the notes counts only among events on the same message; a note of lower rank never takes
    back or replaces one of higher rank on the same message.
    """
    motion = Proposition(note="proposition", id=MOTION, text=topic, aspect="overall", seq=0)
    kinds: dict[str, list[Any]] = defaultdict(list)
    for each in notes:
        kinds[each["note"]].append(each)
    propositions: dict[str, Proposition] = {MOTION: motion} | {n["id"]: n for n in kinds["proposition"]}
    retracted: dict[str, int] = {}
    for each in kinds["retraction"]:
        retracted[each["of"]] = max(retracted.get(each["of"], 0), RANK[each["by"]])
    leading = _leading(kinds["same"], propositions)
    answers: dict[str, Answer] = {}
    for each in kinds["answer"]:
        answers.setdefault(each["to"], each)

    def standing(kind: str) -> list[Any]:
        """Return the notes of a kind that nobody took back, on what stands for their proposition."""
        stood = [n for n in kinds[kind] if not retracted or retracted.get(n["id"], -1) < RANK[n["by"]]]
        if not leading or kind == "question":
            return stood
        return [
            {**n, "proposition": leading[n["proposition"]][0]} if n["proposition"] in leading else n
            for n in stood
        ]

    return Ledger(
        propositions={key: each for key, each in propositions.items() if key not in leading},
        events=_standing_events(kinds["event"], retracted, leading, propositions),
        challenges={n["id"]: n for n in standing("challenge")},
        questions={n["id"]: n for n in standing("question")},
        answers=answers,
        evidence=standing("evidence"),
        gaps=standing("gap"),
        read_through=max((each["through"] for each in kinds["reading"]), default=-1),
        dropped=sum((Counter(each["dropped"]) for each in kinds["reading"]), Counter()),
    )


def _leading(
    same: Iterable[Sameness], propositions: Mapping[str, Proposition]
) -> dict[str, tuple[str, bool]]:
    """Return for each proposition that is another in other words which one, and whether as its negation."""
    found: dict[str, tuple[str, bool]] = {}

    def root(key: str) -> tuple[str, bool]:
        flipped = False
        while key in found:
            key, opposite = found[key]
            flipped ^= opposite
        return key, flipped

    for each in same:
        if each["one"] in propositions and each["other"] in propositions:
            (one, first), (other, second) = root(each["one"]), root(each["other"])
            if one != other:
                leader, follower = sorted((one, other))
                found[follower] = (leader, first ^ second ^ each["opposite"])
    return {key: root(key) for key in found}


def _standing_events(
    said: Iterable[Event],
    retracted: Mapping[str, int],
    leading: Mapping[str, tuple[str, bool]],
    propositions: Mapping[str, Proposition],
) -> list[Event]:
    """Return the events that stand, as they were said.

    On one proposition and message those of the highest rank count. What a person took back stays so: no
    reader's event in its place counts.
    """
    events: list[Event] = []
    highest: dict[tuple[str, str, str], int] = defaultdict(int)
    for event in said:
        if event["proposition"] and event["proposition"] not in propositions:
            continue
        if event["proposition"] in leading:
            key, flipped = leading[event["proposition"]]
            kind = _MIRRORED.get(event["kind"], event["kind"]) if flipped else event["kind"]
            event = Event(**{**event, "proposition": key, "kind": kind})
        place, rank = _place(event), RANK[event["by"]]
        taken_back = retracted.get(event["id"], -1)
        if taken_back >= RANK["person"]:
            highest[place] = max(highest[place], RANK["person"])
        if taken_back < rank:
            highest[place] = max(highest[place], rank)
            events.append(event)
    kept = [event for event in events if RANK[event["by"]] >= highest[_place(event)]]
    return sorted(kept, key=_said_at)


def _place(event: Event) -> tuple[str, str, str]:
    return event["proposition"], event["debater"], event["message_id"]


def stage_of(
    ledger: Ledger, proposition: str, cards: Iterable[CruxCard], *, in_room: bool = False, over: bool = False
) -> Stage:
    """Return how far a dispute has come; nothing is final but the debate's end."""
    if in_room:
        return "in_crux_room"
    status = ledger.status(proposition)
    if status == "settled":
        return "resolved"
    if status != "disputed":
        return ""
    ends = [
        max((seq_of(key) or 0 for key in card["message_ids"]), default=0)
        for card in cards
        if card["claim"] == proposition and card["resolved"]
    ]
    last = max(_said_at(event) for event in ledger.stances(proposition).values())
    if ends and last <= max(ends):
        return "resolved"
    return "abandoned" if over else "active"

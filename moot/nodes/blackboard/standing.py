"""How things stand: computed from the ledger's notes, never stored.

Everything here is a pure function of the notes. A later note, a retraction or a person's correction changes
the result, whatever came of it before.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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

    notes: Mapping[str, Sequence[Any]]
    """All notes that it is made of, by kind."""
    propositions: Mapping[str, Proposition]
    """By id, the motion first; what is the same as another, or its negation, is only there as that one."""
    courses: Mapping[str, Sequence[Turn]]
    """What was said of each proposition, in order; by `""` what nobody knows the proposition of."""
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
    def events(self) -> Sequence[Event]:
        """The events that stand, in the order in which they were said."""
        standing = {turn.event["id"]: turn.event for course in self.courses.values() for turn in course}
        noted = (standing.get(note["id"]) for note in self.notes.get("event", ()))
        return sorted((event for event in noted if event), key=_said_at)

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
        if given_up and (self._pressed[proposition] & given_up or self._was_disputed(proposition)):
            return "settled"
        held = Counter(
            self.sign(who, proposition) for who in stances if stances[who]["kind"] != "conditional"
        )
        return "agreed" if max(held[1], held[-1]) > 1 else "open"

    @cached_property
    def _pressed(self) -> Mapping[str, set[str]]:
        """Who was challenged on each proposition."""
        pressed: dict[str, set[str]] = defaultdict(set)
        for each in self.challenges.values():
            pressed[each["proposition"]].add(each["to"])
        return pressed

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

    @cached_property
    def _spoken_on(self) -> Mapping[str, Sequence[str]]:
        """On which propositions each debater has a stance, by salience."""
        spoken: dict[str, list[str]] = defaultdict(list)
        for key in self.by_salience:
            for who in self._stances.get(key, ()):
                spoken[who].append(key)
        return spoken

    def held(self, debater: str) -> Iterator[tuple[str, Event]]:
        """Yield what a debater holds and has not given up, the motion aside, by salience."""
        for key in self._spoken_on.get(debater, ()):
            event = self._stances[key][debater].event
            if key != MOTION and event["kind"] not in ("concedes", "withdraws"):
                yield key, event

    def shared(self, one: str, other: str) -> tuple[list[str], list[str]]:
        """Return the propositions on which two debaters agree and those on which they differ, by salience."""
        agreed, differing = [], []
        for key in self._spoken_on.get(one, ()):
            if other not in self._stances[key]:
                continue
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

    @cached_property
    def _waiting(self) -> tuple[Sequence[Challenge], Sequence[Question]]:
        """The challenges and the questions that nobody has answered, the newest first."""
        challenges = [each for key, each in self.challenges.items() if key not in self.answers]
        questions = [each for key, each in self.questions.items() if key not in self.answers]
        return challenges[::-1], questions[::-1]

    def open_challenges(self, to: str = "") -> list[Challenge]:
        """Return the challenges that nobody has answered, to one debater or all, the newest first."""
        return [each for each in self._waiting[0] if to in ("", each["to"])]

    def open_questions(self, to: str = "") -> list[Question]:
        """Return the questions that wait for an answer, to one debater or all, the newest first."""
        return [each for each in self._waiting[1] if to in ("", each["to"])]


def _said_at(note: Mapping[str, Any]) -> int:
    """Return the `seq` of the message that a note is on."""
    seq = seq_of(note["message_id"])
    return -1 if seq is None else seq


def _sign_after(kind: EventKind, before: int, others: int) -> int:
    """Return a debater's sign after an event; whoever concedes goes over to the other side."""
    if kind == "concedes":
        return -before if before else (-1 if others < 0 else 1)
    return {"asserts": 1, "denies": -1, "withdraws": 0}.get(kind, before)


_recent: deque[tuple[Sequence[Note], str, Ledger]] = deque(maxlen=8)
"""What was folded last: a channel's notes are never changed, only added to."""


def ledger_of(state: Mapping[str, Any]) -> Ledger:
    """Return the ledger of a debate's state; what is known of it is not folded again."""
    return fold_notes(state.get("minutes") or (), state.get("topic") or "")


def fold_notes(notes: Sequence[Note], topic: str = "") -> Ledger:
    """Fold notes into the ledger: what was taken back is gone, what is the same is one.

    The order of the notes counts only among events on the same message; a note of lower rank never takes
    back or replaces one of higher rank on the same message. Where notes are those folded before and some
    more, only what these touch is computed.
    """
    before = [each for each in list(_recent) if each[1] == topic and _continues(notes, each[0])]
    known = max(before, key=lambda each: len(each[0]), default=None)
    if known and len(known[0]) == len(notes):
        return known[2]
    ledger = _grown(known[2], notes[len(known[0]) :]) if known else _grown(_opened(topic), notes)
    _recent.append((notes, topic, ledger))
    return ledger


def _continues(notes: Sequence[Note], known: Sequence[Note]) -> bool:
    """Return whether notes begin with those known: the very same ones at both ends."""
    count = len(known)
    return 0 < count <= len(notes) and notes[0] is known[0] and notes[count - 1] is known[-1]


def _opened(topic: str) -> Ledger:
    motion = Proposition(note="proposition", id=MOTION, text=topic, aspect="overall", seq=0)
    return Ledger({}, {MOTION: motion}, {}, {}, {}, {}, [], [])


def _grown(ledger: Ledger, new: Sequence[Note]) -> Ledger:
    """Return a ledger with more notes."""
    kinds: dict[str, list[Any]] = {kind: list(notes) for kind, notes in ledger.notes.items()}
    added: dict[str, list[Any]] = defaultdict(list)
    for each in new:
        added[each["note"]].append(each)
    for kind, notes in added.items():
        kinds[kind] = kinds.get(kind, []) + notes
    propositions: dict[str, Proposition] = {**ledger.propositions}
    if "retraction" in kinds or "same" in kinds or len({note["by"] for note in kinds.get("event", ())}) > 1:
        # What stood may fall: all is folded anew.
        added, propositions = defaultdict(list, kinds), {MOTION: ledger.propositions[MOTION]}
        ledger = _opened(propositions[MOTION]["text"])
    propositions |= {note["id"]: note for note in added["proposition"]}
    retracted: dict[str, int] = {}
    for each in kinds.get("retraction", ()):
        retracted[each["of"]] = max(retracted.get(each["of"], 0), RANK[each["by"]])
    every = {**propositions, **{note["id"]: note for note in kinds.get("proposition", ())}}
    leading = _leading(kinds["same"], every) if "same" in kinds else {}
    answers = dict(ledger.answers)
    for each in added["answer"]:
        answers.setdefault(each["to"], each)

    def standing(kind: str) -> list[Any]:
        """Return the new notes of a kind that nobody took back, on what stands for their proposition."""
        stood = [n for n in added[kind] if not retracted or retracted.get(n["id"], -1) < RANK[n["by"]]]
        if not leading or kind == "question":
            return stood
        return [
            {**n, "proposition": leading[n["proposition"]][0]} if n["proposition"] in leading else n
            for n in stood
        ]

    return Ledger(
        notes=kinds,
        propositions={key: each for key, each in propositions.items() if key not in leading},
        courses=_courses(ledger, _standing_events(added["event"], retracted, leading, every)),
        challenges={**ledger.challenges, **{n["id"]: n for n in standing("challenge")}},
        questions={**ledger.questions, **{n["id"]: n for n in standing("question")}},
        answers=answers,
        evidence=[*ledger.evidence, *standing("evidence")],
        gaps=[*ledger.gaps, *standing("gap")],
        read_through=max((each["through"] for each in added["reading"]), default=ledger.read_through),
        dropped=sum((Counter(each["dropped"]) for each in added["reading"]), Counter(ledger.dropped)),
    )


def _courses(ledger: Ledger, events: Iterable[Event]) -> Mapping[str, Sequence[Turn]]:
    """Return what was said of each proposition, with more events."""
    courses = dict(ledger.courses)
    touched: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        touched[event["proposition"]].append(event)
    for key, said in touched.items():
        earlier = [turn.event for turn in courses.get(key, ())]
        signs: dict[str, int] = {}
        last: dict[str, EventKind] = {}
        course = []
        for event in sorted([*earlier, *said], key=_said_at):
            who, kind = event["debater"], event["kind"]
            before = signs.get(who, 0)
            again = kind == "concedes" == last.get(who)
            others = sum(sign for other, sign in signs.items() if other != who)
            after = before if again else _sign_after(kind, before, others)
            signs[who], last[who] = after, kind
            course.append(Turn(event, before, after))
        courses[key] = course
    return courses


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

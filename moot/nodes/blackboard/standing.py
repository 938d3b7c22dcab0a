"""How things stand by the ledger's notes: who holds what, what is disputed, what nobody answered."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from moot.state.at_sight import at_sight
from moot.state.entries import seq_of
from moot.state.ledger import (
    GIVES_UP,
    MOTION,
    Answer,
    Challenge,
    CruxCard,
    Event,
    Evidence,
    Gap,
    Proposition,
    Question,
    Saying,
)

Status = Literal["open", "agreed", "disputed", "settled"]
Stage = Literal["", "active", "in_crux_room", "resolved", "abandoned"]
"""How far a dispute has come, `""` where there is none."""


class Turn(NamedTuple):
    """An event in the course of a proposition, with what its debater had said of that before."""

    event: Event
    before: Event | None
    """`None` where nothing was noted."""
    sign_before: int
    """The debater's sign until then: 1 for yes, -1 for no, 0 for neither."""
    sign: int
    """The same from then on."""


class Course(tuple[Turn, ...]):
    """What was said of one proposition, in order.

    What follows from it is worked out once, however often the ledger grows elsewhere.
    """

    @cached_property
    def last(self) -> Mapping[str, Turn]:
        """The last turn of each debater, in the order of the debaters' first ones."""
        return {turn.event["debater"]: turn for turn in self}

    @cached_property
    def firsts(self) -> Sequence[Turn]:
        """The first turn of each debater."""
        return [turn for turn in self if turn.before is None]

    def sign_after(self, event: str) -> int:
        """Return its debater's sign after the event of this id: 1, -1 or 0; 0 where it is none of these."""
        return next((turn.sign for turn in self if turn.event["id"] == event), 0)

    @cached_property
    def changes(self) -> Sequence[Turn]:
        """Changes of mind, oldest first: a withdrawal, a yes that became a no, a no a yes, if on a condition.

        One that is told again is none.
        """
        changed = []
        for turn in self:
            withdrew = turn.event["kind"] == "withdraws" and not is_given_up(turn.before)
            if withdrew or turn.sign_before * turn.sign < 0:
                changed.append(turn)
        return changed

    @cached_property
    def repeats(self) -> Set[str]:
        """Ids of the concessions that were made before."""
        same = (turn.event for turn in self if turn.sign_before == turn.sign)
        return {event["id"] for event in same if event["kind"] == "concedes"}

    @cached_property
    def grounds(self) -> Set[str]:
        """Whose stances on the motion were said to rest on it."""
        return {turn.event["debater"] for turn in self if turn.event["ground"]}

    @cached_property
    def was_disputed(self) -> bool:
        """Whether some said yes while others said no."""
        held: dict[str, int] = {}
        for turn in self:
            side = leaning(turn.event) if is_conditional(turn.event) else turn.sign
            held[turn.event["debater"]] = side
            if {1, -1} <= set(held.values()):
                return True
        return False

    @cached_property
    def sides(self) -> tuple[Sequence[str], Sequence[str]]:
        """Who asserts it and who denies it, be it on a condition."""
        leanings = {who: leaning(turn.event) for who, turn in self.last.items()}
        yes = [who for who, side in leanings.items() if side > 0]
        return yes, [who for who, side in leanings.items() if side < 0]

    @cached_property
    def given_up(self) -> Set[str]:
        """Who conceded it or took it back, and has not taken it up again."""
        return {who for who, turn in self.last.items() if is_given_up(turn.event)}

    @cached_property
    def unchallenged_status(self) -> Status:
        """How it stands where nobody who gave it up had been challenged on it."""
        yes, no = self.sides
        if yes and no:
            return "disputed"
        if self.given_up and self.was_disputed:
            return "settled"
        held = Counter(turn.sign for turn in self.last.values() if not is_conditional(turn.event))
        if max(held[1], held[-1]) > 1:
            return "agreed"
        # Who denied it and now says yes on a condition has ended the dispute, too.
        return "settled" if len(yes or no) > 1 and self.was_disputed else "open"


NO_COURSE = Course()


@dataclass(frozen=True)
class Ledger:
    """The notes that stand."""

    notes: Mapping[str, Sequence[Any]]
    """All notes that it is made of, by kind."""
    propositions: Mapping[str, Proposition]
    """By id, the motion first; what is the same as another, or its negation, is only there as that one."""
    courses: Mapping[str, Course]
    """What was said of each proposition; by `""` what nobody knows the proposition of."""
    challenges: Mapping[str, Challenge]
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]
    """By the id of the challenge or question."""
    evidence: Sequence[Evidence]
    gaps: Sequence[Gap]
    highest: Mapping[str, int] = field(default_factory=dict)
    """The highest number given to a note, by kind."""
    read_through: int = -1
    """`seq` of the last entry that has been read."""
    seen: int = 0
    """Events noted before the last look from outside."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many operations were not taken, by the reason."""

    @cached_property
    def events(self) -> Sequence[Event]:
        """The events that stand, in the order in which they were said."""
        standing = {turn.event["id"]: turn.event for course in self.courses.values() for turn in course}
        noted = (standing.get(note["id"]) for note in self.notes.get("event", ()))
        return sorted((event for event in noted if event), key=said_at)

    def course(self, proposition: str) -> Course:
        """Return what was said of a proposition."""
        return self.courses.get(proposition, NO_COURSE)

    def stances(self, proposition: str) -> Mapping[str, Event]:
        """Return each debater's last event on a proposition."""
        return {who: turn.event for who, turn in self.course(proposition).last.items()}

    def stance(self, debater: str, proposition: str = MOTION) -> Event | None:
        """Return a debater's stance, `None` where it has none."""
        turn = self.course(proposition).last.get(debater)
        return turn.event if turn else None

    def sign(self, debater: str, proposition: str = MOTION) -> int:
        """Return 1 where a debater now says yes, -1 for no, 0 for neither."""
        turn = self.course(proposition).last.get(debater)
        return turn.sign if turn else 0

    def status(self, proposition: str) -> Status:
        """Return how a proposition stands."""
        course = self.course(proposition)
        pressed = course.given_up and self._challenged_on.get(proposition, set()) & course.given_up
        return (
            "settled" if pressed and course.unchallenged_status != "disputed" else course.unchallenged_status
        )

    @cached_property
    def _challenged_on(self) -> Mapping[str, set[str]]:
        """Who was challenged on each proposition."""
        pressed: dict[str, set[str]] = defaultdict(set)
        for each in self.challenges.values():
            pressed[each["proposition"]].add(each["to"])
        return pressed

    def pairs(self, proposition: str) -> list[tuple[str, str]]:
        """Return everybody who asserts a proposition with everybody who denies it."""
        yes, no = self.course(proposition).sides
        return [(one, other) for one in yes for other in no]

    def differ(self, proposition: str, one: str, other: str) -> bool:
        """Return whether one debater asserts a proposition and the other denies it, be it on a condition."""
        said, replied = self.stance(one, proposition), self.stance(other, proposition)
        return said is not None and replied is not None and leaning(said) * leaning(replied) < 0

    @cached_property
    def _points(self) -> Mapping[tuple[str, bool], Sequence[tuple[str, Event]]]:
        """The stances of each debater, by whether it gave them up, the motion aside, by salience."""
        points: dict[tuple[str, bool], list[tuple[str, Event]]] = defaultdict(list)
        for key in self.by_salience:
            for who, event in self.stances(key).items() if key != MOTION else ():
                points[who, is_given_up(event)].append((key, event))
        return points

    def held(self, debater: str) -> Sequence[tuple[str, Event]]:
        """Return what a debater holds and has not given up, the motion aside, by salience."""
        return self._points.get((debater, False), ())

    def given_up(self, debater: str) -> Sequence[tuple[str, Event]]:
        """Return what a debater gave up and has not taken up again, the motion aside, by salience."""
        return self._points.get((debater, True), ())

    @at_sight(8)  # asked every turn, though the ledger grows as messages leave the window alone
    def common_ground(self, one: str, other: str) -> tuple[list[str], list[str]]:
        """Return the propositions on which two debaters agree and those on which they differ, by salience."""
        agreed, differing = [], []
        for key in self.by_salience:
            if self.differ(key, one, other):
                differing.append(key)
            elif self.sign(one, key) == self.sign(other, key) != 0:
                agreed.append(key)
        return agreed, differing

    @cached_property
    def concessions_by(self) -> Mapping[str, Sequence[Event]]:
        """What each debater conceded, oldest first; by `""` what anybody did."""
        by_debater: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            if event["kind"] == "concedes":
                by_debater[event["debater"]].append(event)
                by_debater[""].append(event)
        return by_debater

    def concessions(self, debater: str = "") -> Sequence[Event]:
        """Return what a debater, or anybody, conceded."""
        return self.concessions_by.get(debater, ())

    @cached_property
    def repeated(self) -> Set[str]:
        """Ids of the concessions that were made before, on the same proposition."""
        return {each for key, course in self.courses.items() if key for each in course.repeats}

    def is_core(self, concession: Event) -> bool:
        """Return whether a concession gives up the motion, or what the debater's stance on it rests on."""
        key, who = concession["proposition"], concession["debater"]
        return key == MOTION or who in self.course(key).grounds

    @cached_property
    def changes(self) -> list[Turn]:
        """Changes of mind, oldest first."""
        changed = (change for key, course in self.courses.items() if key for change in course.changes)
        return sorted(changed, key=lambda change: said_at(change.event))

    @cached_property
    def by_salience(self) -> list[str]:
        """Ids of all propositions: the motion, then disputed before others, the newest first.

        Before the newer goes that on which more debaters' stances on the motion were said to rest.
        """

        def urgency(key: str) -> tuple[Any, ...]:
            course = self.course(key)
            last = said_at(course[-1].event) if course else -1
            return (key != MOTION, self.status(key) != "disputed", -len(course.grounds), -last, key)

        return sorted(self.propositions, key=urgency)

    @cached_property
    def last_progress(self) -> int:
        """`seq` of the last message that brought evidence, a concession, a shift, or a new stance."""
        news = [turn.event for course in self.courses.values() for turn in course.firsts]
        moves = [change.event for change in self.changes]
        return max(
            (said_at(note) for note in (*self.evidence, *news, *moves, *self.concessions())), default=-1
        )

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


def leaning(event: Event) -> int:
    """Return 1 for what asserts a proposition, -1 for what denies it, if only on a condition, else 0."""
    return {"asserts": 1, "conditional": 1, "denies": -1}.get(event["kind"], 0)


def is_given_up(event: Event | None) -> bool:
    """Return whether a debater's last word on a proposition is that it no longer holds it."""
    return event is not None and event["kind"] in GIVES_UP


def is_conditional(saying: Saying) -> bool:
    """Return whether a stance holds only if something is so."""
    return saying["kind"] == "conditional" or bool(saying["condition"])


def said_at(note: Mapping[str, Any]) -> int:
    """Return the `seq` of the message that a note is on."""
    seq = seq_of(note["message_id"])
    return -1 if seq is None else seq


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
    # What two settled in a room is in dispute all the same while somebody else holds against it.
    yes, no = map(set, ledger.course(proposition).sides)
    ends = [
        max((seq_of(key) or 0 for key in card["message_ids"]), default=0)
        for card in cards
        if card["claim"] == proposition and card["resolved"] and yes | no <= set(card["sides"])
    ]
    last = max(said_at(event) for event in ledger.stances(proposition).values())
    if ends and last <= max(ends):
        return "resolved"
    return "abandoned" if over else "active"

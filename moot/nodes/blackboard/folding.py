"""Folding notes into the ledger, which is computed from them and never stored.

Everything here is a pure function of the notes. A later note, a retraction or a person's correction changes
the result, whatever came of it before.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moot.nodes.blackboard.standing import NO_COURSE, Course, Ledger, Turn, is_conditional, leaning, said_at
from moot.state.conversation import StateValues
from moot.state.ledger import MOTION, OVERALL, Event, EventKind, Note, Proposition, Sameness

RANK = {"rule": 0, "model": 1, "person": 2}
"""On the same message the higher one is believed."""


def _sign_after(event: Event, before: int, others: Sequence[int]) -> int:
    """Return a debater's sign after an event; whoever concedes goes over to those who differ."""
    if event["kind"] == "concedes":
        if before and (-before in others or before not in others):
            return -before
        return before or (-1 if sum(others) < 0 else 1)
    if is_conditional(event):
        return leaning(event) * abs(before)
    return 0 if event["kind"] == "withdraws" else leaning(event) or before


def _mirror(event: Event) -> EventKind:
    """Return what an event is of the negation of its proposition."""
    if leaning(event) < 0:
        return "conditional" if event["condition"] else "asserts"
    # A yes on a condition that nobody noted cannot be told from one of its negation.
    return "denies" if event["kind"] == "asserts" or event["condition"] else event["kind"]


_recent: deque[tuple[Sequence[Note], str, Ledger]] = deque(maxlen=8)
"""What was folded last: a channel's notes are never changed, only added to."""


def ledger_of(state: StateValues) -> Ledger:
    """Return the ledger of a debate's state; what is known of it is not folded again."""
    return fold_notes(state.get("minutes") or (), state.get("topic") or "")


def fold_notes(notes: Sequence[Note], topic: str = "") -> Ledger:
    """Fold notes into the ledger: what was taken back is gone, what is the same is one.

    The order of the notes counts only among events on the same message; a note of lower rank never takes
    back or replaces one of higher rank on the same message. Where notes are those folded before and some
    more, only what these touch is computed.
    """
    known: Sequence[Note] = ()
    ledger = empty_ledger(topic)
    for before, about, folded in list(_recent):
        longer = about == topic and len(known) < len(before) <= len(notes)
        # These begin with those where the very same notes stand at both ends of what was folded.
        if longer and notes[0] is before[0] and notes[len(before) - 1] is before[-1]:
            known, ledger = before, folded
    if known and len(known) == len(notes):
        return ledger
    ledger = grow_ledger(ledger, notes[len(known) :])
    _recent.append((notes, topic, ledger))
    return ledger


def empty_ledger(topic: str) -> Ledger:
    """Return the ledger of a debate of which nothing is noted."""
    motion = Proposition(note="proposition", id=MOTION, text=topic, aspect=OVERALL, seq=0)
    return Ledger({}, {MOTION: motion}, {}, {}, {}, {}, [], [])


def grow_ledger(ledger: Ledger, new: Sequence[Note]) -> Ledger:
    """Return a ledger with more notes."""
    kinds: dict[str, list[Any]] = {kind: list(notes) for kind, notes in ledger.notes.items()}
    added: dict[str, list[Any]] = defaultdict(list)
    highest, seen, events = dict(ledger.highest), ledger.seen, len(ledger.notes.get("event", ()))
    for each in new:
        kind, number = each["note"], str(each.get("id") or "")[1:]
        added[kind].append(each)
        highest[kind] = max(highest.get(kind, 0), int(number) if number.isdecimal() else 0)
        events += kind == "event"
        seen = events if kind == "outlook" else seen
    for key, notes in added.items():
        kinds[key] = kinds.get(key, []) + notes

    propositions: dict[str, Proposition] = {**ledger.propositions}
    if "retraction" in kinds or "same" in kinds or len({note["by"] for note in kinds.get("event", ())}) > 1:
        # What stood may fall: all is folded anew.
        added, propositions = defaultdict(list, kinds), {MOTION: ledger.propositions[MOTION]}
        ledger = empty_ledger(propositions[MOTION]["text"])
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
        courses=_longer_courses(ledger, _standing_events(added["event"], retracted, leading, every)),
        challenges={**ledger.challenges, **{n["id"]: n for n in standing("challenge")}},
        questions={**ledger.questions, **{n["id"]: n for n in standing("question")}},
        answers=answers,
        evidence=[*ledger.evidence, *standing("evidence")],
        gaps=[*ledger.gaps, *standing("gap")],
        highest=highest,
        read_through=max((each["through"] for each in added["reading"]), default=ledger.read_through),
        seen=seen,
        dropped=sum((Counter(each["dropped"]) for each in added["reading"]), Counter(ledger.dropped)),
    )


def _longer_courses(ledger: Ledger, events: Iterable[Event]) -> Mapping[str, Course]:
    """Return the courses with more events; one of which they are not the latest is worked out anew."""
    courses, touched = dict(ledger.courses), defaultdict[str, list[Event]](list)
    for event in events:
        touched[event["proposition"]].append(event)
    for key, said in touched.items():
        course = ledger.course(key)
        if course and said_at(said[0]) < said_at(course[-1].event):
            earlier = (turn.event for turn in course)
            course, said = NO_COURSE, sorted([*earlier, *said], key=said_at)
        last, turns = dict(course.last), []
        for event in said:
            who = event["debater"]
            before, sign = (last[who].event, last[who].sign) if who in last else (None, 0)
            again = event["kind"] == "concedes" and before is not None and before["kind"] == "concedes"
            others = [turn.sign for other, turn in last.items() if other != who]
            last[who] = Turn(event, before, sign, sign if again else _sign_after(event, sign, others))
            turns.append(last[who])
        courses[key] = Course((*course, *turns))
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
            kind = _mirror(event) if flipped else event["kind"]
            event = Event(**{**event, "proposition": key, "kind": kind})
        place, rank = _place(event), RANK[event["by"]]
        taken_back = retracted.get(event["id"], -1)
        if taken_back >= RANK["person"]:
            highest[place] = max(highest[place], RANK["person"])
        if taken_back < rank:
            highest[place] = max(highest[place], rank)
            events.append(event)
    kept = [event for event in events if RANK[event["by"]] >= highest[_place(event)]]
    return sorted(kept, key=said_at)


def _place(event: Event) -> tuple[str, str, str]:
    return event["proposition"], event["debater"], event["message_id"]

"""The ledger in words: as a speaker sees it, as a judge does, and as a whole; each line with its messages."""

from collections.abc import Iterator, Sequence, Set
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from moot.nodes.blackboard.board_words import (
    MOVED,
    SAYS,
    TEXT,
    Names,
    board_text,
    cards_of,
    quotation,
    says,
    says_briefly,
    side_conceded,
    stances_text,
)
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.standing import is_given_up
from moot.nodes.text.plain import inert
from moot.nodes.text.tokens import TokenCounter
from moot.state.conversation import MemoryKind, StateValues
from moot.state.entries import entry_id, kind_of, round_of
from moot.state.ledger import MOTION, Event, Gap

HEADING = "# Where the debate {stands}, as noted by the program"
"""Of a ledger that has not read all that was said it is told where it ends."""
INSIGHTS = 4
"""Reflections and crux cards that a speaker is shown."""
TOPIC = "On the topic itself"
CHALLENGES = "Challenges to you, not answered yet"
WAITING = "Challenges and questions that nobody has answered yet"
OWN = "What you hold"
CONCEDED = "You conceded or withdrew"
BETWEEN = "Between you and whom you answer"
DISPUTED = "Disputed"
OTHERS = "What the others hold"
HELD = "Held and not disputed"
GIVEN = "Conceded"
CHANGES = "Changes of mind"
GAPS = "Admitted not to know"
LAST = "In the last round"
FOUND = "Found out so far"
SECTIONS = (
    *(TOPIC, CHALLENGES, WAITING, OWN, CONCEDED, BETWEEN, DISPUTED),
    *(OTHERS, HELD, GIVEN, CHANGES, GAPS, LAST, FOUND),
)
"""Headings in the order in which they are shown."""

MOST = 12
"""Lines of one section that are considered: the most salient or the newest of them."""


class Line(NamedTuple):
    """One line of the view."""

    section: str
    urgency: int
    """The lowest number gets room first."""
    text: str


def render_blackboard(
    state: StateValues,
    speaker: str,
    *,
    max_tokens: int,
    count: TokenCounter,
    names: Names,
    answering: Sequence[str] = (),
    found: bool = True,
    alone: bool = False,
) -> str:
    """Return what the ledger tells a speaker, `""` where it holds nothing or there is no room.

    A debater's own view names it “you”; anybody else, as a judge, is shown all sides alike. `names` stand in
    the order in which they are told; of those whom the speaker answers only debaters count. Without `found`
    what was found out so far is left out, which some views show elsewhere; where it is `alone` with whom it
    answers, only their challenges wait for an answer.
    """
    lines = list(_board_lines(state, speaker, names, answering, found=found, alone=alone))
    heading = _heading_of(state)
    left = max_tokens - count(f"{heading}\n")
    chosen: list[int] = []
    opened: set[str] = set()
    for index in sorted(range(len(lines)), key=lambda i: (lines[i].urgency, i)):
        line = lines[index]
        cost = count(f"- {line.text}\n")
        if line.section not in opened:
            cost += count(f"{line.section}:\n")
        if cost <= left:
            left -= cost
            chosen.append(index)
            opened.add(line.section)
    text = _join(heading, [lines[index] for index in sorted(chosen)])
    while text and count(text) > max_tokens:  # a joined text may count a token more than its lines
        chosen.pop()
        text = _join(heading, [lines[index] for index in sorted(chosen)])
    return text


def whole_board(state: StateValues, names: Names) -> str:
    """Return all of the ledger but what was found out, under the headings of its sections."""
    return _join(_heading_of(state), list(_board_lines(state, "", names, found=False)))


def _join(heading: str, lines: Sequence[Line]) -> str:
    """Return lines under their sections' headings, in the order of the sections; `""` for none."""
    out = [heading]
    ordered = sorted(lines, key=lambda line: SECTIONS.index(line.section))
    for section, group in groupby(ordered, key=lambda line: line.section):
        out += [f"{section}:", *(f"- {line.text}" for line in group)]
    return "\n".join(out) if lines else ""


def _heading_of(state: StateValues) -> str:
    """Return the view's heading: it says how far the ledger has read, where more was said since."""
    through = ledger_of(state).read_through
    stands = f"stood at [{entry_id(through)}]" if any(_spoken_since(state, through)) else "stands"
    return HEADING.format(stands=stands)


def _spoken_since(state: StateValues, through: int) -> Iterator[str]:
    """Yield who has said something that the ledger, which ends at a `seq`, has not read."""
    later = (state.get("full_transcript") or [])[through + 1 :] if through >= 0 else ()
    return (entry["speaker"] for entry in later if kind_of(entry).argues)


def board_memory(text: str, state: StateValues, count: TokenCounter) -> dict[MemoryKind, int]:
    """Return about how many tokens of each kind of memory a blackboard's text holds."""
    ledger, _, found = text.partition(f"{FOUND}:\n")
    questions = tuple(f"- {card['question']}" for card in cards_of(state))
    held: dict[MemoryKind, int] = {"ledger": count(ledger)} if "\n- " in ledger else {}
    for line in found.splitlines():
        kind: MemoryKind = "cruxes" if questions and line.startswith(questions) else "reflections"
        held[kind] = held.get(kind, 0) + count(line)
    return held


def _board_lines(
    state: StateValues,
    speaker: str,
    names: Names,
    answering: Sequence[str] = (),
    *,
    found: bool = True,
    alone: bool = False,
) -> Iterator[Line]:
    """Yield the lines of a view; see `render_blackboard`."""
    is_debater, other, told = speaker in names, "", set[str]()
    board = _Board(state, {**names, speaker: "you"} if is_debater else names)
    ledger = board.ledger
    yield from board.on_topic(speaker)
    if is_debater:
        other = next((who for who in answering if who in names and who != speaker), "")
    if other:
        agreed, differing = ledger.common_ground(speaker, other)
        told = {*agreed[:MOST], *differing[:MOST]} - {MOTION}
        yield from board.between(speaker, other, agreed[:MOST], differing[:MOST])

    others = (key for key in ledger.by_salience if key != MOTION)
    disputed = [*takewhile(lambda key: ledger.status(key) == "disputed", others)]
    for key in islice((key for key in disputed if key not in told), MOST):
        yes, no = ledger.course(key).sides
        yield Line(DISPUTED, 3 if speaker in (*yes, *no) or not is_debater else 6, board.dispute_line(key))

    if is_debater:
        told.update(disputed)
        yield from board.others(other, told)
        yield from board.own(speaker, told, makers=[other] if alone else list(names))
        yield from board.last_round(speaker)
    else:
        yield from board.standings()
    for gap in islice(reversed(ledger.gaps), MOST):
        yield Line(GAPS, 6, f"{board.name(gap['debater'])}: {board.point(gap)}")
    if found:
        yield from board.insights(speaker)


class _Board:
    """Puts a ledger into words."""

    def __init__(self, state: StateValues, names: Names) -> None:
        self.state = state
        self.ledger = ledger_of(state)
        self.names = {who: inert(name) for who, name in names.items()}

    def name(self, who: str) -> str:
        return self.names.get(who) or inert(who)

    def name_of(self, key: str) -> str:
        return f"{key}: {board_text(self.ledger.propositions[key]['text']).removesuffix('.')}"

    def round_of(self, message_id: str) -> int:
        return round_of(message_id, self.state.get("full_transcript") or [])

    def dispute_line(self, key: str) -> str:
        """Return a dispute: who says yes and who no, be it on a condition, with the message of each."""
        yes, no = self.ledger.course(key).sides
        return f"{self.name_of(key)} ({stances_text(self.ledger, self.names, key, [*yes, *no])})"

    def point(self, event: Event | Gap) -> str:
        """Return a concession, a change of mind or a gap: what it is on, the words, and where they stand.

        Of what was conceded the side tells more than the words.
        """
        key = event["proposition"]
        said = board_text(event["quote"])
        if key in ("", MOTION) or board_text(self.ledger.propositions[key]["text"]) == said:
            return quotation(event)
        sign = self.ledger.course(key).sign_after(event["id"])
        if event.get("kind") == "concedes" and sign:
            return f"{'yes' if sign > 0 else 'no'} to {self.name_of(key)} [{event['message_id']}]"
        return f"{self.name_of(key)}: {quotation(event)}"

    def concessions(self, who: str = "") -> Iterator[Event]:
        """Yield the newest of what a debater, or anybody, conceded; what was conceded again is told once."""
        events = reversed(self.ledger.concessions(who))
        return islice((event for event in events if event["id"] not in self.ledger.repeated), MOST)

    def changes(self, who: str = "") -> Iterator[Event]:
        """Yield the newest changes of a debater's mind, or anybody's, which are told as no concession."""
        events = (change.event for change in reversed(self.ledger.changes))
        changed = (event for event in events if event["kind"] != "concedes")
        return islice((event for event in changed if who in ("", event["debater"])), MOST)

    def on_topic(self, speaker: str) -> Iterator[Line]:
        for who in self.names:
            if event := self.ledger.stance(who):
                round_no, said = self.round_of(event["message_id"]), says(event)
                if event["kind"] == "withdraws" and event["by"] == "rule":
                    said = MOVED
                if event["condition"] and event["condition"] in event["quote"]:
                    said = says_briefly(event)
                when = f" (round {round_no})" if round_no else ""
                text = f"{self.name(who)}: {said}: {quotation(event, TEXT)}{when}"
                yield Line(TOPIC, 0 if who == speaker else 2, text)

    def between(
        self, who: str, other: str, agreed: Sequence[str], differing: Sequence[str]
    ) -> Iterator[Line]:
        """Yield on what a debater and whom it answers differ and agree; the motion is told elsewhere."""
        for key in differing:
            if key != MOTION:
                yield Line(BETWEEN, 2, f"you differ on {self.dispute_line(key)}")
        for key in agreed:
            if key != MOTION:
                stances = [self.ledger.stances(key)[each] for each in (who, other)]
                yours, theirs = (f"{says_briefly(e)}{side_conceded(self.ledger, e)}" for e in stances)
                both = f"both {yours}" if yours == theirs else f"you {yours}; {self.name(other)} {theirs}"
                yield Line(BETWEEN, 4, f"you agree on {self.name_of(key)}: {both}")

    def others(self, who: str, told: Set[str]) -> Iterator[Line]:
        """Yield what another debater holds and has given up, but for what is told."""
        for key, event in islice((each for each in self.ledger.held(who) if each[0] not in told), MOST):
            text = f"{self.name(who)}, on {self.name_of(key)}: {says(event)} [{event['message_id']}]"
            yield Line(OTHERS, 5, text)
        for key, event in islice(self.ledger.given_up(who), MOST):
            if key not in told:
                yield Line(OTHERS, 4, f"{self.name(who)}, {SAYS[event['kind']]}: {self.point(event)}")

    def waiting(
        self, section: str, urgency: int, to: str = "", makers: Sequence[str] | None = None
    ) -> Iterator[Line]:
        """Yield the challenges and questions, to one debater or all, by some makers or all, that still wait.

        Who has spoken since the ledger was read may have answered: what waits for them nobody knows.
        """
        challenges, questions = self.ledger.open_challenges(to), self.ledger.open_questions(to)
        unread = _spoken_since(self.state, self.ledger.read_through) if challenges or questions else ()
        since = set(unread)
        for verb, notes in (("", challenges), (" asks", questions)):
            for note in [note for note in notes if note["to"] not in since][:MOST]:
                whom = f" to {self.name(note['to'])}" if note["to"] and not to else verb
                if makers is None or note["debater"] in makers:
                    text = f"{self.name(note['debater'])}{whom}: {quotation(note, TEXT)}"
                    yield Line(section, urgency, text)

    def own(self, who: str, told: Set[str], makers: Sequence[str]) -> Iterator[Line]:
        """Yield what concerns one debater: challenges to it, what it holds unless told, what it gave up."""

        def needs_evidence(key: str) -> bool:
            """Whether it has not given that up; of the motion each stance is told by itself."""
            return key == MOTION or not is_given_up(self.ledger.stance(who, key))

        yield from self.waiting(CHALLENGES, 1, who, makers)
        for key, event in islice((each for each in self.ledger.held(who) if each[0] not in told), MOST):
            yield Line(OWN, 5, f"{self.name_of(key)}: {says(event)} [{event['message_id']}]")
        own = (item for item in reversed(self.ledger.evidence) if item["debater"] == who)
        for item in islice((item for item in own if needs_evidence(item["proposition"])), MOST):
            yield Line(OWN, 6, f"your evidence: {quotation(item)}")
        for event in self.concessions(who):
            yield Line(CONCEDED, 2, self.point(event))
        for event in self.changes(who):
            yield Line(CONCEDED, 3, f"you changed your mind: {self.point(event)}")

    def standings(self) -> Iterator[Line]:
        """Yield what waits for an answer, and what everybody holds, conceded and changed."""
        yield from self.waiting(WAITING, 3)
        quiet = (key for key in self.ledger.by_salience if self.ledger.status(key) != "disputed")
        # What nobody holds any more is told as given up.
        held = (key for key in quiet if not all(map(is_given_up, self.ledger.stances(key).values())))
        for key in islice((key for key in held if key != MOTION), MOST):
            yield Line(HELD, 5, f"{self.name_of(key)} ({stances_text(self.ledger, self.names, key)})")
        for event in self.concessions():
            yield Line(GIVEN, 2, f"{self.name(event['debater'])}: {self.point(event)}")
        for event in self.changes():
            yield Line(CHANGES, 3, f"{self.name(event['debater'])}: {self.point(event)}")

    def last_round(self, speaker: str) -> Iterator[Line]:
        """Yield what the others gave up in the round before the present one."""
        before = int(self.state.get("round") or 0) - 1
        if before <= 0:
            return
        moved = [change.event for change in reversed(self.ledger.changes)]
        for verb, events in (("moved", moved), ("conceded", self.ledger.concessions()[::-1])):
            late = takewhile(lambda event: self.round_of(event["message_id"]) >= before, events)
            of_others = (event for event in late if event["debater"] != speaker)
            for event in reversed([e for e in of_others if self.round_of(e["message_id"]) == before][-MOST:]):
                yield Line(LAST, 6, f"{self.name(event['debater'])} {verb}: {quotation(event)}")

    def insights(self, speaker: str) -> Iterator[Line]:
        for card in cards_of(self.state)[-INSIGHTS:][::-1]:
            who = " and ".join(map(self.name, card["sides"]))
            outcome = card["resolution"] if card["resolved"] else f"unresolved: {card['diagnosis']}"
            text = f"{card['question']} ({who}; {outcome}) [{', '.join(card['message_ids'][-2:])}]"
            yield Line(FOUND, 5 if speaker in card["sides"] else 6, text)
        recent = (self.state.get("reflections") or [])[-3 * INSIGHTS :]
        ranked = sorted(recent, key=lambda item: -item["importance"])
        for content in list(dict.fromkeys(item["content"] for item in ranked))[:INSIGHTS]:
            yield Line(FOUND, 6, content)


def found_text(state: StateValues, speaker: str, names: Names) -> str:
    """Return what was found out so far: crux cards in a line each, and the insights that matter most."""
    return "\n".join(f"- {line.text}" for line in _Board(state, names).insights(speaker))

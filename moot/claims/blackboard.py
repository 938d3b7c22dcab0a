"""The claim ledger in prompts of debaters, judges and moderators: sections within a limit of tokens."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import groupby, islice, takewhile
from typing import NamedTuple, TypeVar

from moot.claims import claim_status, ledger_rendering
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import TEXT, Names, board_text, quotation, stance_text
from moot.state import claim_events as ledger_events
from moot.state.conversation import MemoryKind, StateValues
from moot.state.entries import entry_id, round_of, traits_of
from moot.text.plain_text import sanitize_line
from moot.text.tokens import TokenCounter

T = TypeVar("T")

BOARD_HEADING = "# Where the debate {stands}, as recorded by a program (may contain errors)"
"""Heading of the claim ledger in prompts. The heading names the last message read if later messages exist."""
TOPIC = "On the topic itself"
CHALLENGES = "Challenges to you, not answered yet"
WAITING = "Challenges and questions that nobody has answered yet"
OWN = "What you hold"
CONCEDED = "You conceded or withdrew"
BETWEEN = "Between you and the debater you answer"
DISPUTED = "Disputed"
OTHERS = "What the others hold"
HELD = "Not disputed now"
UNANSWERED = "Claims that nobody has answered yet"
CONCESSIONS = "Conceded"
CHANGES = "Changes of mind"
EVIDENCE = "Evidence that debaters gave"
GAPS = "What debaters say they do not know"
REVERSALS = "What debaters say would change their minds"
LAST = "In the last round"
ROOMS = "Results of the side rooms"
REMARKS = "Remarks of an observer"
SECTIONS = (
    *(TOPIC, CHALLENGES, WAITING, OWN, CONCEDED, BETWEEN, DISPUTED),
    *(OTHERS, HELD, UNANSWERED, CONCESSIONS, CHANGES, EVIDENCE, GAPS, REVERSALS, LAST, ROOMS, REMARKS),
)
"""Section headings of the rendered claim ledger, in display order."""
CUT = "Left out for lack of space, wholly or in part"
"""Heading of the list of shortened sections. It is the last section of a rendered claim ledger, and names the
sections from which lines were left out."""
CUT_LIST_SHARE = 0.125
"""Maximum share of the token limit for the list of shortened sections. If the list needs more tokens, it
names no sections or is left out."""

MIN_LINE_TOKENS = 10
"""Smallest assumed number of tokens in a line of the claim ledger. A section renders no more lines than could
fit into the token limit."""


class LedgerLine(NamedTuple):
    """Line of text in a rendered claim ledger."""

    section: str
    urgency: int
    """Priority of the line if tokens are short. Lines with the lowest number are kept first."""
    text: str
    more: str = ""
    """Optional end of the line. It is shown only if tokens remain after all lines have been chosen."""


Notice = Callable[[Sequence[LedgerLine], Container[int]], str]
"""Function that returns a note about omitted lines. Its arguments are all lines and the indexes of the chosen
lines."""


def render_blackboard(
    state: StateValues,
    speaker: str,
    *,
    max_tokens: int,
    count: TokenCounter,
    names: Names,
    answering: Sequence[str] = (),
    aspect: str = "",
    has_insights: bool = True,
    alone: bool = False,
    evidence_of: str = "",
) -> str:
    """Return the claim ledger, also called the blackboard, as text for a prompt.

    If space is short, only the most urgent lines are kept.

    A debater's own commitments come first, then all debaters' positions on the aspect under discussion.
    Return `""` if there is nothing to show, or no token left to show it.

    Args:
        state: state of the debate.
        speaker: the reader. A debater is called “you”. Other readers, such as a judge, see all sides alike.
        max_tokens: maximum tokens of the text.
        count: token counter.
        names: display names by debater, in the order of display.
        answering: debaters and messages that the speaker answers. The first debater is compared with it.
        aspect: aspect of the topic that is under discussion. Empty: the topic as a whole.
        has_insights: True to include crux cards and reflections.
        alone: True to show challenges only from the debater that the speaker answers.
        evidence_of: debater whose evidence is always shown to a reader who sees all sides alike.
    """
    heading, count = _heading_of(state), cache(count)  # lines are chosen twice if some must be left out
    remaining = max_tokens - count(f"{heading}\n")
    max_lines = max(0, remaining) // MIN_LINE_TOKENS
    board = _LedgerRenderer(
        state, {**names, speaker: "you"} if speaker in names else names, aspect, max_lines
    )
    lines = list(_board_lines(board, speaker, names, answering, has_insights=has_insights, alone=alone))
    lines += board.evidence_lines(speaker, evidence_of or speaker)
    chosen_lines, spare = _choose(lines, remaining, count)
    notice: Notice | None = None
    if len(chosen_lines) < len(lines):
        reserves = {each: count(f"{each(lines, ())}\n") for each in (_cut_notice, _short_notice)}
        notice = next((each for each in reserves if reserves[each] <= max_tokens * CUT_LIST_SHARE), None)
        if notice:
            chosen_lines, spare = _choose(lines, remaining - reserves[notice], count)
    for index, line in chosen_lines.items():
        full_line = line._replace(text=line.text + line.more)
        if line.more and (cost := count(full_line.text) - count(line.text)) <= spare:
            spare -= cost
            chosen_lines[index] = full_line
    text = _join(heading, lines, chosen_lines, notice)
    while text and count(text) > max_tokens:  # joined lines may have one more token each
        chosen_lines.popitem()
        text = _join(heading, lines, chosen_lines, notice)
    return text


def _choose(
    lines: Sequence[LedgerLine], remaining: int, count: TokenCounter
) -> tuple[dict[int, LedgerLine], int]:
    """Return the most urgent lines that fit, by their index in `lines`, and the number of unused tokens."""
    chosen_lines: dict[int, LedgerLine] = {}
    opened_sections: set[str] = set()
    for index in sorted(range(len(lines)), key=lambda i: (lines[i].urgency, i)):
        line = lines[index]
        cost = count(f"- {line.text}\n")
        if line.section not in opened_sections:
            cost += count(f"{line.section}:\n")
        if cost <= remaining:
            remaining -= cost
            chosen_lines[index] = line
            opened_sections.add(line.section)
    return chosen_lines, remaining


def _join(
    heading: str, lines: Sequence[LedgerLine], chosen_lines: Mapping[int, LedgerLine], notice: Notice | None
) -> str:
    """Join chosen lines under section headings, with a `notice` of those left out. Without lines: `""`."""
    parts = [heading]
    shown_lines = [line for _, line in sorted(chosen_lines.items())]
    for section, group in groupby(sorted(shown_lines, key=_section_place), key=lambda line: line.section):
        parts += [f"{section}:", *(f"- {line.text}" for line in group)]
    if notice:
        parts.append(notice(lines, chosen_lines))
    return "\n".join(parts) if chosen_lines else ""


def _section_place(line: LedgerLine) -> int:
    return SECTIONS.index(line.section)


def _cut_notice(lines: Sequence[LedgerLine], chosen_indexes: Container[int]) -> str:
    """Return a note that names the sections from which lines were left out."""
    cut = (line for index, line in enumerate(lines) if index not in chosen_indexes)
    return f"{CUT}:\n- {'; '.join(dict.fromkeys(line.section for line in sorted(cut, key=_section_place)))}"


def _short_notice(lines: Sequence[LedgerLine], chosen_indexes: Container[int]) -> str:
    return f"{CUT}:\n- some lines"


def _heading_of(state: StateValues) -> str:
    """Return the ledger's heading, with the last message read for claims if there are later ones."""
    ledger = ledger_of(state)
    through = ledger.read_through
    if not any(_spoken_since(state, through)):
        return BOARD_HEADING.format(stands="stands")
    has_card_events = any(claim_status.message_seq(event) > through for event in ledger.events)
    since = ", with the results of the side rooms since" if has_card_events else ""
    return BOARD_HEADING.format(stands=f"stood at [{entry_id(through)}]{since}")


def _spoken_since(state: StateValues, through: int) -> Iterator[str]:
    """Yield the speaker of each message after the message with the given `seq`."""
    later_entries = (state.get("full_transcript") or [])[through + 1 :] if through >= 0 else ()
    return (entry["speaker"] for entry in later_entries if traits_of(entry).argues)


def memory_tokens(text: str, state: StateValues, count: TokenCounter) -> dict[MemoryKind, int]:
    """Estimate how many tokens of a rendered claim ledger each kind of memory takes up."""
    ledger, _, remarks = text.partition(f"{REMARKS}:\n")
    ledger, _, rooms = ledger.partition(f"{ROOMS}:\n")
    tokens: dict[MemoryKind, int] = {"ledger": count(ledger)} if "\n- " in ledger else {}
    parts: tuple[tuple[MemoryKind, str], ...] = (("cruxes", rooms), ("reflections", remarks))
    return tokens | {kind: count(part) for kind, part in parts if part}


def _board_lines(
    board: "_LedgerRenderer",
    speaker: str,
    names: Names,
    answering: Sequence[str] = (),
    *,
    has_insights: bool = True,
    alone: bool = False,
) -> Iterator[LedgerLine]:
    """Yield all lines of the claim ledger that a speaker's prompt may show. See `render_blackboard`."""
    is_debater, other, listed_claims, ledger = speaker in names, "", set[str](), board.ledger
    yield from board.on_topic(speaker)
    if is_debater:
        other = next((debater for debater in answering if debater in names and debater != speaker), "")
    if other:
        ground = claim_status.CommonGround(
            *(keys[: board.max_lines] for keys in ledger.common_ground(speaker, other))
        )
        listed_claims = {key for keys in ground for key in keys} - {*ledger.proposals}
        yield from board.between(speaker, other, ground)

    others = (key for key in ledger.by_salience if key not in ledger.proposals)
    disputed = [*takewhile(lambda key: ledger.status(key) == "disputed", others)]
    for key in islice((key for key in disputed if key not in listed_claims), board.max_lines):
        involved = {debater for side in ledger.timeline(key).sides for debater in side}
        is_near = speaker in involved or not is_debater or board.is_on_aspect(key)
        yield LedgerLine(DISPUTED, 3 if is_near else 6, board.dispute_line(key))

    if is_debater:
        listed_claims.update(disputed)
        for debater in names:
            if debater == other or (board.aspect and debater != speaker):
                yield from board.others(debater, listed_claims, is_answered=debater == other)
        yield from board.own(speaker, listed_claims, makers=[other] if alone else list(names))
        yield from board.last_round(speaker, names if board.aspect else [other])
    else:
        yield from board.standings()
    for gap in islice(reversed(ledger.gaps), board.max_lines):
        yield LedgerLine(GAPS, 6, f"{board.name(gap['debater'])}: {board.point(gap)}")
    for finding in islice(reversed(ledger.reversals), board.max_lines):
        yield LedgerLine(REVERSALS, 6, f"{board.name(finding['debater'])}: {board.point(finding)}")
    if has_insights:
        yield from board.insights(speaker)


def in_turns(items: Iterable[T], debater: Callable[[T], str]) -> list[tuple[int, T]]:
    """Alternate debaters, so that shortening affects all equally. Returns earlier items of each, too."""
    seen = Counter[str]()
    ranked = list[tuple[int, T]]()
    for item in items:
        ranked.append((seen[debater(item)], item))
        seen[debater(item)] += 1
    return sorted(ranked, key=lambda pair: pair[0])


class _LedgerRenderer:
    """Renderer that turns parts of the claim ledger into lines of text."""

    def __init__(self, state: StateValues, names: Names, aspect: str, max_lines: int) -> None:
        self.state = state
        self.ledger = ledger_of(state)
        self.aspect, self.max_lines = aspect, max_lines
        self.names = {debater: sanitize_line(name) for debater, name in names.items()}

    def name(self, debater: str) -> str:
        return self.names.get(debater) or sanitize_line(debater)

    def name_of(self, key: str) -> str:
        return board_text(self.ledger.claims[key]["text"]).removesuffix(".")

    def is_on_aspect(self, key: str) -> bool:
        """Return True if the claim with this id belongs to the aspect under discussion."""
        return bool(self.aspect) and self.ledger.claims[key]["aspect"] == self.aspect

    def round_of(self, message_id: str) -> int:
        return round_of(message_id, self.state.get("full_transcript") or [])

    def dispute_line(self, key: str) -> str:
        """Return a line that names a disputed claim and the debaters on each side."""
        debaters = [each for side in self.ledger.timeline(key).sides for each in side]
        return (
            f"{self.name_of(key)} ({ledger_rendering.stances_text(self.ledger, self.names, key, debaters)})"
        )

    def point(self, event: ledger_events.StanceEvent | ledger_events.Gap | ledger_events.Reversal) -> str:
        """Describe an event on a claim: the claim, and the quotation or the conceded side."""
        key, quote = event["claim"], board_text(event["quote"])
        if key in ("", ledger_events.MAIN_QUESTION) or board_text(self.ledger.claims[key]["text"]) == quote:
            return quotation(event)
        sign = self.ledger.timeline(key).sign_after(event["id"])
        if event.get("kind") == "concedes" and sign:
            return f"{'' if sign > 0 else 'not true: '}{self.name_of(key)} [{event['message_id']}]"
        return f"{self.name_of(key)}: {quotation(event)}"

    def concessions(self, debater: str = "") -> Iterator[ledger_events.StanceEvent]:
        """Yield the newest concessions of one debater or all debaters, omitting repeated concessions."""
        events = reversed(self.ledger.concessions(debater))
        return islice(
            (event for event in events if event["id"] not in self.ledger.repeated_concessions), self.max_lines
        )

    def changes(self, debater: str = "") -> Iterator[claim_status.StanceChange]:
        """Yield a debater's, or all, newest changes of mind, leaving out concessions."""
        changes = self.changes_of_side()
        return islice((each for each in changes if debater in ("", each.event["debater"])), self.max_lines)

    def changes_of_side(self) -> Iterator[claim_status.StanceChange]:
        """Yield all changes of mind in the debate except concessions, newest first."""
        return (each for each in reversed(self.ledger.changes) if each.event["kind"] != "concedes")

    def change_lines(
        self, section: str, changes: Iterable[claim_status.StanceChange], label: Callable[[str], str]
    ) -> Iterator[LedgerLine]:
        """Yield a line for each change, quoting the earlier position once if tokens remain."""
        ranked_changes = in_turns(changes, lambda change: change.event["debater"])
        quoted_ids = {change.event["id"] for _, change in ranked_changes}
        for rank, change in ranked_changes:
            before = ""
            if change.before and change.before["id"] in quoted_ids:
                before = f", before: [{change.before['message_id']}]"
            elif change.before:
                before = f", before: {quotation(change.before)}"
            note = f" (same answer, {change.conditions_note})" if change.conditions_note else ""
            text = f"{label(change.event['debater'])}: {self.point(change.event)}{note}"
            yield LedgerLine(section, 4 if rank else 3, text, before)

    def proposal_lines(self) -> Iterator[LedgerLine]:
        """Yield a line for each proposal if the question has moved, live ones first."""
        ledger = self.ledger
        for key in [
            *ledger.live_proposals,
            *(each for each in ledger.proposals if each not in ledger.live_proposals),
        ]:
            if not ledger.amendments:
                return
            status, origin = ledger.claim_status(key), ""
            if key in ledger.amendments:
                amendment = ledger.amendments[key]
                origin = f", which {self.name(amendment['debater'])} proposed [{amendment['message_id']}]"
            label = status.label
            if moved := ledger.timeline(key).moved:
                last = max(event["message_id"] for event in moved.values())
                *others, final = map(self.name, moved)
                left = f"left by {' and '.join(filter(None, [', '.join(others), final]))} after [{last}]"
                label = left if status.status == "left" else f"{label}; {left}"
            yield LedgerLine(
                TOPIC,
                0,
                f"proposal “{board_text(ledger.claims[key]['text'], TEXT)}”{origin}: {label}",
            )

    def on_topic(self, speaker: str) -> Iterator[LedgerLine]:
        yield from self.proposal_lines()
        for debater in self.names:
            if event := self.ledger.stance(debater):
                round_no, statement = (
                    self.round_of(event["message_id"]),
                    quotation(event, TEXT),
                )
                if event["condition"] and event["condition"] not in event["quote"]:
                    # The condition says more than the quotation.
                    statement = f"{event['condition']} [{event['message_id']}]"
                round_note = f" (round {round_no})" if round_no else ""
                answer = ledger_rendering.answer_text(self.ledger, event)
                text = f"{self.name(debater)}: {answer}: {statement}{round_note}"
                yield LedgerLine(TOPIC, 0 if debater == speaker else 2, text)

    def between(self, debater: str, other: str, ground: claim_status.CommonGround) -> Iterator[LedgerLine]:
        """Yield lines that compare two debaters' stances on claims besides the main question."""
        headings = (
            ("you differ on:", 2, ground.differing),
            ("same side, different conditions:", 3, ground.conditional),
            ("you agree on:", 4, ground.agreed),
        )
        for heading, urgency, keys in headings:
            for key in keys:
                if key in self.ledger.proposals:
                    continue
                if keys is ground.differing:
                    yield LedgerLine(BETWEEN, urgency, f"{heading} {self.dispute_line(key)}")
                    continue
                stances = [self.ledger.stances(key)[each] for each in (debater, other)]
                your_text, other_text = (
                    f"{stance_text(e)}{ledger_rendering.side_conceded(self.ledger, e)}" for e in stances
                )
                comparison = (
                    f"both {your_text}"
                    if your_text == other_text
                    else f"you {your_text}; {self.name(other)} {other_text}"
                )
                text = f"{heading} {self.name_of(key)}: {comparison}"
                yield LedgerLine(BETWEEN, urgency, text)

    def others(self, debater: str, listed_claims: Set[str], *, is_answered: bool) -> Iterator[LedgerLine]:
        """Yield lines about one debater's stances for another debater's prompt.

        The stances include those that the debater has given up. Claims in `listed_claims` are left out.
        """
        for key, event in islice(
            (each for each in self.ledger.held(debater) if each[0] not in listed_claims), self.max_lines
        ):
            text = (
                f"{self.name(debater)}, on {self.name_of(key)}: {stance_text(event)} [{event['message_id']}]"
            )
            yield LedgerLine(OTHERS, 3 if self.is_on_aspect(key) else 5 if is_answered else 6, text)
        for key, event in islice(self.ledger.given_up(debater), self.max_lines):
            if key not in listed_claims:
                verb = ledger_rendering.STANCE_WORDS[event["kind"]]
                text = f"{self.name(debater)}, {verb}: {self.point(event)}"
                yield LedgerLine(OTHERS, 3 if self.is_on_aspect(key) else 4 if is_answered else 6, text)

    def waiting(
        self, section: str, urgency: int, to: str = "", makers: Sequence[str] | None = None
    ) -> Iterator[LedgerLine]:
        """Yield a line for each challenge and question that nobody has answered yet.

        Debaters who spoke after the last message read are left out, because they may have answered. `to` is
        the challenged debater, and `makers` made the challenges. Without them, all are included.
        """
        challenges, questions = self.ledger.open_challenges(to), self.ledger.open_questions(to)
        speakers = _spoken_since(self.state, self.ledger.read_through) if challenges or questions else ()
        unread_speakers = set(speakers)
        for verb, claim_events in (("", challenges), (" asks", questions)):
            for claim_event in [
                claim_event for claim_event in claim_events if claim_event["to"] not in unread_speakers
            ][: self.max_lines]:
                connector = f" to {self.name(claim_event['to'])}" if claim_event["to"] and not to else verb
                if makers is None or claim_event["debater"] in makers:
                    text = f"{self.name(claim_event['debater'])}{connector}: {quotation(claim_event, TEXT)}"
                    addressee, later_speakers = (
                        claim_event["to"],
                        _spoken_since(self.state, claim_status.message_seq(claim_event)),
                    )
                    if addressee and not to and addressee not in later_speakers:
                        # A judge must not blame a debater who could not answer.
                        text += f" ({self.name(addressee)} had no turn since)"
                    yield LedgerLine(section, urgency, text)

    def own(self, debater: str, listed_claims: Set[str], makers: Sequence[str]) -> Iterator[LedgerLine]:
        """Yield the lines that tell a debater its open challenges, its stances and its changes of mind."""
        yield from self.waiting(CHALLENGES, 1, debater, makers)
        for key, event in islice(
            (each for each in self.ledger.held(debater) if each[0] not in listed_claims), self.max_lines
        ):
            urgency = 2 if self.aspect and not self.is_on_aspect(key) else 1
            stance = "you leave it open" if event["kind"] == "unsure" else stance_text(event)
            yield LedgerLine(OWN, urgency, f"{self.name_of(key)}: {stance} [{event['message_id']}]")
        for event in self.concessions(debater):
            yield LedgerLine(CONCEDED, 2, self.point(event))
        yield from self.change_lines(CONCEDED, self.changes(debater), lambda _: "you changed your mind")

    def evidence_lines(self, speaker: str, first: str) -> Iterator[LedgerLine]:
        """Yield a line for each piece of evidence, the newest of each debater first, while space is left.

        The evidence of the debater `first` comes before other lines. A debater's evidence for a claim that it
        has given up is left out.
        """
        for rank, item in in_turns(reversed(self.ledger.evidence), lambda item: item["debater"]):
            key, debater = item["claim"], item["debater"]
            has_claim = key and key not in self.ledger.proposals
            is_given_up = has_claim and claim_status.is_given_up(self.ledger.stance(debater, key))
            if rank >= self.max_lines or is_given_up:
                continue
            urgency = 2 if debater == first else 5 if key and self.is_on_aspect(key) else 7
            section, name = (OWN, "your evidence") if debater == speaker else (EVIDENCE, self.name(debater))
            claim_note = f" (on {self.name_of(key)})" if has_claim else ""
            yield LedgerLine(section, urgency, f"{name}: {quotation(item)}", claim_note)

    def standings(self) -> Iterator[LedgerLine]:
        """Yield lines that list the open challenges, undisputed claims, concessions and changes of mind."""
        yield from self.waiting(WAITING, 3)
        concessions = list(self.concessions())
        # A concession shows that its claim is agreed.
        conceded_claims = {event["claim"] for event in concessions}
        statuses = ((key, self.ledger.status(key)) for key in self.ledger.by_salience)
        undisputed = (
            key
            for key, status in statuses
            if status != "disputed" and not (status == "agreed" and key in conceded_claims)
        )
        # A claim that no debater holds any more is shown as conceded or withdrawn.
        held_claims = (
            key
            for key in undisputed
            if not all(map(claim_status.is_given_up, self.ledger.stances(key).values()))
        )
        claims = (key for key in held_claims if key not in self.ledger.proposals)
        for key in islice(claims, self.max_lines):
            section = UNANSWERED if self.ledger.status(key) == "open" else HELD
            stances = ledger_rendering.stances_text(self.ledger, self.names, key)
            yield LedgerLine(section, 5, f"{self.name_of(key)} ({stances})")
        for rank, event in in_turns(concessions, lambda event: event["debater"]):
            text = f"{self.name(event['debater'])}: {self.point(event)}"
            yield LedgerLine(CONCESSIONS, 4 if rank else 3, text)
        yield from self.change_lines(CHANGES, self.changes(), self.name)

    def last_round(self, speaker: str, listed_debaters: Iterable[str]) -> Iterator[LedgerLine]:
        """Yield what others gave up or changed in the last round and other lines do not list."""
        previous_round = int(self.state.get("round") or 0) - 1
        if previous_round <= 0:
            return
        listed_ids = {
            event["id"] for debater in listed_debaters for _, event in self.ledger.given_up(debater)
        }
        # A debater who only added a condition did not change its position.
        position_changes = [change.event for change in self.changes_of_side() if not change.conditions_note]
        for verb, events in (
            ("changed position", position_changes),
            ("conceded", self.ledger.concessions()[::-1]),
        ):
            recent_events = takewhile(
                lambda event: self.round_of(event["message_id"]) >= previous_round, events
            )
            other_events = (e for e in recent_events if e["debater"] != speaker and e["id"] not in listed_ids)
            for event in reversed(
                [e for e in other_events if self.round_of(e["message_id"]) == previous_round][
                    -self.max_lines :
                ]
            ):
                yield LedgerLine(LAST, 6, f"{self.name(event['debater'])} {verb}: {quotation(event)}")

    def insights(self, speaker: str) -> Iterator[LedgerLine]:
        """Yield the newest crux cards, for judges before most lines, and important reflections."""
        is_debater = speaker in self.names
        for card in ledger_rendering.cards_of(self.state)[::-1][: self.max_lines]:
            outcome = card["resolution"] or card["diagnosis"]
            results = ledger_rendering.card_results_text(card, self.names)
            cited = ", ".join(card["message_ids"][-2:])
            text = (
                f"{card['question']} ({results}; {ledger_rendering.card_status(card)}: {outcome}) [{cited}]"
            )
            urgency = 2 if not is_debater else 5 if speaker in card["sides"] else 6
            yield LedgerLine(ROOMS, urgency, text)
        recent = ledger_rendering.current_reflections(self.state)[-self.max_lines :] if self.max_lines else []
        for text in ledger_rendering.reflection_lines(sorted(recent, key=lambda item: -item["importance"])):
            yield LedgerLine(REMARKS, 6, text)

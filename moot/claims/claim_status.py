"""The claim ledger: debaters' positions on claims, and the status of each claim.

One concept: a ledger of timelines of changes, each derived from the next. `ledger_from_events` computes it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, NamedTuple

from moot.state import claim_events as ledger_events
from moot.state.entries import memoize_by_identity, seq_of

Status = Literal["open", "agreed", "disputed", "conditional", "settled", "withdrawn", "left", "unresolved"]
"""Possible statuses of a claim. `unresolved` means that a dispute was still open at the end of the debate,
and `left` that all who held a proposal went over to a changed one."""

ANSWERS = ("yes", "no")
"""Answers to a yes-or-no question. Every claim is such a question, and so is a main question without
options."""


class ClaimStatus(NamedTuple):
    """Status of a claim, and the answer on which the debaters agree."""

    status: Status
    side: str
    """Answer on which the debaters agree. It is `yes`, `no` or an option of an open question, or empty if the
    debaters contradict each other."""
    conditions: tuple[str, ...]
    """Conditions that the debaters attach to the answer on which they agree."""
    was_disputed: bool
    """True if debaters contradicted each other on the claim at any time in the debate."""
    in_room: bool = False
    """True if two debaters are still discussing the claim in a crux room. A crux room is a side
    discussion."""

    @property
    def label(self) -> str:
        """Return a short label for the claim's status, such as `agreed: yes`.

        Every display shows these words, and the stances next to them name the conditions.
        """
        if self.in_room and self.status == "disputed":
            return "disputed, in crux room"
        if self.status not in ("agreed", "settled", "conditional"):
            return self.status
        label = f"{self.status}: {self.side}"
        if self.conditions:
            count = "a condition" if len(self.conditions) == 1 else f"{len(self.conditions)} conditions"
            label += f", on {count}"
        return label + (", disputed before" if self.status == "conditional" and self.was_disputed else "")


class StanceChange(NamedTuple):
    """Effect of one stance event on a debater's position on a claim."""

    event: ledger_events.StanceEvent
    before: ledger_events.StanceEvent | None
    """Debater's previous stance event on the claim, or `None` if there is none."""
    sign_before: int
    """Debater's position on the claim before the event. It is 1 for yes, -1 for no and 0 for neither."""
    sign: int
    """Debater's position on the claim after the event. It is 1 for yes, -1 for no and 0 for neither. A
    concession has the sign of the other side."""
    side: str = ""
    """Answer that the debater gives to the claim after the event. It is `yes`, `no` or an option, or empty if
    the debater holds no answer."""
    conditions: Mapping[str, str] = {}
    """Debater's conditions for the answer, keyed by condition id."""
    held_change: "StanceChange | None" = None
    """Last earlier change after which the debater held an answer, or `None` if there is none."""

    @property
    def restates_condition(self) -> bool:
        """Return True if the event repeats a condition that the debater stated before."""
        key = self.event.get("condition_id") or self.event["condition"].casefold()
        return bool(
            key
            and self.held_change
            and self.held_change.side == self.side
            and key in self.held_change.conditions
        )

    @property
    def is_change_of_mind(self) -> bool:
        """Return True if this event changed the debater's answer or its conditions."""
        if self.event["kind"] == "withdraws" and not is_given_up(self.before):
            return True
        if self.sign_before * self.sign < 0:
            return True
        if (
            self.event["kind"] == "concedes"
            and not self.side
            and self.held_change
            and self.held_change.side not in ANSWERS
        ):
            return not is_given_up(self.before)
        held_change = self.held_before
        if not self.side or held_change is None:
            return False
        if self.before is not None and self.before["kind"] == "concedes":
            return bool(self.conditions)  # a concession changed the side itself
        return (self.side, set(self.conditions)) != (held_change.side, set(held_change.conditions))

    @property
    def held_before(self) -> "StanceChange | None":
        """Return the last change of an earlier message after which the debater held an answer.

        A position and its condition in one message are one statement, so the one is no change of the other.
        """
        change = self.held_change
        while change is not None and change.event["message_id"] == self.event["message_id"]:
            change = change.held_change
        return change

    @property
    def conditions_note(self) -> str:
        """Describe how only the conditions of an answer changed, such as `added a condition`, or `""`."""
        held_change = self.held_before
        if (
            held_change is None
            or not self.side
            or self.side != held_change.side
            or not self.is_change_of_mind
        ):
            return ""
        added, dropped = (
            self.conditions.keys() - held_change.conditions.keys(),
            held_change.conditions.keys() - self.conditions,
        )
        if added and dropped:
            return "changed the conditions"
        count = len(added or dropped)
        return f"{'added' if added else 'dropped'} {'a condition' if count == 1 else f'{count} conditions'}"


class Timeline(tuple[StanceChange, ...]):
    """All stance changes on one claim, from the oldest to the newest. Derived values are cached."""

    @cached_property
    def last(self) -> Mapping[str, StanceChange]:
        """Return each debater's last stance change by debater id, in the order of their first change."""
        return {change.event["debater"]: change for change in self}

    @cached_property
    def stances(self) -> Mapping[str, ledger_events.StanceEvent]:
        """Return each debater's latest stance event, with all current conditions, by debater id."""
        return {debater: with_all_conditions(change) for debater, change in self.last.items()}

    @cached_property
    def first_changes(self) -> Sequence[StanceChange]:
        """Return each debater's first stance change on the claim, oldest first."""
        return [change for change in self if change.before is None]

    def sign_after(self, event: str) -> int:
        """Return a debater's position after an event: 1 for yes, -1 for no, 0 for neither or unknown."""
        return next((change.sign for change in self if change.event["id"] == event), 0)

    @cached_property
    def changes(self) -> Sequence[StanceChange]:
        """Return all changes of mind about the claim, oldest first, without restatements."""
        by_message: dict[tuple[str, str], StanceChange] = {}
        for change in self:
            if change.is_change_of_mind:
                # A message changes a debater's mind once, from what it held before to what it holds after.
                # If it states old and new conditions, the new ones show the change.
                key = change.event["debater"], change.event["message_id"]
                first = by_message.get(key, change)
                event = first.event if change.restates_condition else change.event
                by_message[key] = change._replace(
                    event=event, before=first.before, sign_before=first.sign_before
                )
        return list(by_message.values())

    @cached_property
    def repeated_concessions(self) -> Set[str]:
        """Return the ids of concessions that the same debater had made before."""
        unchanged = (change.event for change in self if change.sign_before == change.sign)
        return {event["id"] for event in unchanged if event["kind"] == "concedes"}

    @cached_property
    def grounds(self) -> Set[str]:
        """Return the ids of the debaters who base their answer to the main question on this claim."""
        return {change.event["debater"] for change in self if change.event["ground"]}

    @cached_property
    def dispute_starts(self) -> Sequence[str]:
        """Return the ids of the stance events that started a dispute about the claim, oldest first."""
        sides: dict[str, str] = {}
        starts, was_disputed = [], False
        for change in self:
            sides[change.event["debater"]] = change.side
            is_disputed = len(set(sides.values()) - {""}) > 1
            if is_disputed and not was_disputed:
                starts.append(change.event["id"])
            was_disputed = is_disputed
        return starts

    @cached_property
    def holders(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the debaters who currently give each answer, keyed by answer."""
        holders: dict[str, list[str]] = defaultdict(list)
        for debater, change in self.last.items():
            if change.side:
                holders[change.side].append(debater)
        return holders

    @property
    def sides(self) -> Sequence[Sequence[str]]:
        """Return the debaters grouped by answer, starting with the `yes` group."""
        order = {answer: place for place, answer in enumerate(ANSWERS)}
        return [self.holders[side] for side in sorted(self.holders, key=lambda side: order.get(side, 2))]

    @cached_property
    def argued(self) -> Mapping[str, str]:
        """Return the answer for which each debater last argued, not conceded, by debater id."""
        argued_changes = (change for change in self if change.side and change.event["kind"] != "concedes")
        return {change.event["debater"]: change.side for change in argued_changes}

    @cached_property
    def given_up(self) -> Set[str]:
        """Return the ids of the debaters whose last event concedes the claim or withdraws their answer."""
        return {debater for debater, change in self.last.items() if is_given_up(change.event)}

    @cached_property
    def moved(self) -> Mapping[str, ledger_events.StanceEvent]:
        """Return the events by which debaters accepted a changed proposal instead, keyed by debater id."""
        return {key: each.event for key, each in self.last.items() if "moved_to" in each.event}

    def status(self, *, pressed: bool = False, is_over: bool = False) -> ClaimStatus:
        """Return the status of the claim, computed from the positions of all debaters.

        It is `pressed` if a debater gave it up after a challenge, which counts as a dispute. A dispute stays
        unresolved once the debate `is_over`.
        """
        was_disputed = bool(self.dispute_starts) or pressed
        if len(self.holders) > 1:
            return ClaimStatus("unresolved" if is_over else "disputed", "", (), True)
        if not self.holders:
            was_held = any(change.side for change in self)
            if self.moved:
                return ClaimStatus("left", "", (), was_disputed)
            return ClaimStatus("withdrawn" if was_held else "open", "", (), was_disputed)
        ((side, holders),) = self.holders.items()
        condition_sets = [self.last[debater].conditions for debater in holders]
        texts = {key: text for conditions in condition_sets for key, text in conditions.items()}
        has_same_conditions = all(
            conditions.keys() == condition_sets[0].keys() for conditions in condition_sets
        )
        conditions = tuple(dict.fromkeys(filter(None, texts.values())))
        if not has_same_conditions:
            return ClaimStatus("conditional", side, conditions, was_disputed)
        status: Status = "open"
        if was_disputed:
            opposed = {c.event["debater"] for c in self if c.side not in ("", side)} - {*holders}
            status = "settled" if opposed <= self.given_up - self.moved.keys() else "open"
        elif len(holders) > 1:
            status = "agreed"
        return ClaimStatus(status, side, conditions, was_disputed)


EMPTY_TIMELINE = Timeline()


@dataclass(frozen=True)
class Ledger:
    """Record of a debate's claims and the debaters' stances, derived from the claim events."""

    claim_events: Mapping[str, Sequence[Any]]
    """All claim events, including retracted ones, grouped by type."""
    claims: Mapping[str, ledger_events.Claim]
    """All claims, keyed by id, with the main question first. A merged claim appears only under its first
    id."""
    timelines: Mapping[str, Timeline]
    """Stance changes on each claim, keyed by claim id."""
    challenges: Mapping[str, ledger_events.Challenge]
    questions: Mapping[str, ledger_events.Question]
    answers: Mapping[str, ledger_events.Answer]
    """Answers to challenges and questions, keyed by the id of the challenge or question."""
    evidence: Sequence[ledger_events.Evidence]
    gaps: Sequence[ledger_events.Gap]
    reversals: Sequence[ledger_events.Reversal]
    last_numbers: Mapping[str, int] = field(default_factory=dict)
    """Highest id number used so far for each type of claim event, keyed by event type."""
    read_through: int = -1
    """Sequence number (`seq`) of the last transcript entry that was read for claims."""
    reflected_events: int = 0
    """Number of stance events that the latest reflections already take into account. These are the oldest
    events."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of records that claim extraction rejected, keyed by reason."""
    amendments: Mapping[str, ledger_events.Amendment] = field(default_factory=dict)
    """Amendments of the main question's proposal, keyed by the id of the changed proposal, oldest first."""

    @property
    def proposals(self) -> list[str]:
        """Return the ids of all proposals, from the main question to the newest change."""
        return [ledger_events.MAIN_QUESTION, *self.amendments]

    @cached_property
    def live_proposals(self) -> list[str]:
        """Return the ids of the proposals on which debaters hold a position, newest first.

        If they hold none, the newest proposal is returned.
        """
        live = [key for key in reversed(self.proposals) if self.timeline(key).holders]
        return live if live and self.amendments else self.proposals[-1:]

    def main_claim(self, debater: str) -> str:
        """Return the id of the newest proposal on which a debater holds a position.

        It is the main question if there is none.
        """
        main_claims = (key for key in self.live_proposals if self._side(key, debater))
        return next(main_claims, ledger_events.MAIN_QUESTION)

    @cached_property
    def dropped_reflections(self) -> frozenset[str]:
        """Return the ids of outdated reflections, which later messages contradict."""
        passes = self.claim_events.get("reflection_pass", ())
        return frozenset(key for each in passes for key in each.get("dropped", ()))

    @cached_property
    def events(self) -> Sequence[ledger_events.StanceEvent]:
        """Return all valid stance events in message order."""
        valid = {
            change.event["id"]: change.event
            for timeline in self.timelines.values()
            for change in timeline
            if "moved_to" not in change.event
        }
        recorded_events = (valid.get(event["id"]) for event in self.claim_events.get("event", ()))
        return sorted((event for event in recorded_events if event), key=message_seq)

    def timeline(self, claim: str) -> Timeline:
        """Return all stance changes on a claim, from the oldest to the newest."""
        return self.timelines.get(claim, EMPTY_TIMELINE)

    def stances(self, claim: str) -> Mapping[str, ledger_events.StanceEvent]:
        """Return each debater's latest stance event, with all conditions, keyed by debater id."""
        return self.timeline(claim).stances

    def stance(self, debater: str, claim: str = "") -> ledger_events.StanceEvent | None:
        """Return a debater's latest stance with all conditions, by default on `main_claim`, or `None`."""
        return self.stances(claim or self.main_claim(debater)).get(debater)

    def sign(self, debater: str, claim: str = "") -> int:
        """Return a debater's position, by default on `main_claim`: 1 for yes, -1 for no and 0 for neither."""
        change = self.timeline(claim or self.main_claim(debater)).last.get(debater)
        return change.sign if change else 0

    def status(self, claim: str) -> Status:
        """Return a claim's current status. An open dispute is `disputed` even after the debate."""
        return self.claim_status(claim).status

    def claim_status(self, claim: str, *, is_over: bool = False, in_room: bool = False) -> ClaimStatus:
        """Return a claim's status and the answer on which the debaters agree.

        Args:
            claim: id of the claim.
            is_over: True if the debate has ended.
            in_room: True if a crux room is open on the claim.
        """
        timeline = self.timeline(claim)
        challenged = self._challenged_on.get(claim, set()) & timeline.given_up
        # A debater who gave up the answer that others still hold was not moved to their side.
        pressed = any(timeline.argued.get(debater, "") not in timeline.holders for debater in challenged)
        return timeline.status(pressed=pressed, is_over=is_over)._replace(in_room=in_room)

    @cached_property
    def _challenged_on(self) -> Mapping[str, set[str]]:
        """Return the ids of the debaters who were challenged on each claim, keyed by claim id."""
        challenged: dict[str, set[str]] = defaultdict(set)
        for each in self.challenges.values():
            challenged[each["claim"]].add(each["to"])
        return challenged

    def pairs(self, claim: str) -> list[tuple[str, str]]:
        """Return all pairs of debaters who contradict each other on a claim, the `yes` side first."""
        sides = combinations(self.timeline(claim).sides, 2)
        return [(one, other) for first, second in sides for one in first for other in second]

    def differ(self, claim: str, one: str, other: str) -> bool:
        """Return True if two debaters give different answers to a claim, conditions aside."""
        sides = {self._side(claim, one), self._side(claim, other)} - {""}
        return len(sides) > 1

    def disagreement_strength(self, claim: str, one: str, other: str) -> Literal["mild", "strong"]:
        """Return how strongly two debaters disagree on a claim, as `mild` or `strong`.

        A disagreement is `strong` if neither answer has a condition and the claim is the main question or a
        reason for either debater's position.
        """
        timeline = self.timeline(claim)
        has_condition = any(
            timeline.last[debater].conditions for debater in (one, other) if debater in timeline.last
        )
        is_core = claim in self.proposals or bool({one, other} & timeline.grounds)
        return "strong" if is_core and not has_condition else "mild"

    def _side(self, claim: str, debater: str) -> str:
        change = self.timeline(claim).last.get(debater)
        return change.side if change else ""

    @cached_property
    def _points(self) -> Mapping[tuple[str, bool], Sequence[tuple[str, ledger_events.StanceEvent]]]:
        """Return (claim id, event) pairs by debater id and True for stances given up."""
        points: dict[tuple[str, bool], list[tuple[str, ledger_events.StanceEvent]]] = defaultdict(list)
        for key in self.by_salience:
            for debater, event in self.stances(key).items() if key not in self.proposals else ():
                points[debater, is_given_up(event)].append((key, event))
        return points

    def held(self, debater: str) -> Sequence[tuple[str, ledger_events.StanceEvent]]:
        """Return what a debater still holds besides the main question, most salient claim first."""
        return self._points.get((debater, False), ())

    def given_up(self, debater: str) -> Sequence[tuple[str, ledger_events.StanceEvent]]:
        """Return what a debater gave up besides the main question, most salient claim first."""
        return self._points.get((debater, True), ())

    @memoize_by_identity(8)  # every prompt uses the result, and the ledger grows only after an extraction
    def common_ground(self, one: str, other: str) -> "CommonGround":
        """Compare two debaters' answers to all claims. In each group, salient claims come first."""
        ground = CommonGround([], [], [])
        for key in self.by_salience:
            changes = [self.timeline(key).last.get(debater) for debater in (one, other)]
            sides = [_granted_side(change) for change in changes]
            if self.differ(key, one, other):
                ground.differing.append(key)
            elif sides[0] and sides[0] == sides[1]:
                conditions = [set(change.conditions) for change in changes if change]
                (ground.agreed if conditions[0] == conditions[1] else ground.conditional).append(key)
        return ground

    @cached_property
    def concessions_by(self) -> Mapping[str, Sequence[ledger_events.StanceEvent]]:
        """Return concessions, oldest first, by debater id. The key `""` holds all."""
        by_debater: dict[str, list[ledger_events.StanceEvent]] = defaultdict(list)
        for event in self.events:
            if event["kind"] == "concedes":
                by_debater[event["debater"]].append(event)
                by_debater[""].append(event)
        return by_debater

    def concessions(self, debater: str = "") -> Sequence[ledger_events.StanceEvent]:
        """Return the concessions of one debater or of all debaters, from oldest to newest."""
        return self.concessions_by.get(debater, ())

    @cached_property
    def repeated_concessions(self) -> Set[str]:
        """Return the ids of concessions that the same debater had made before."""
        return {each for timeline in self.timelines.values() for each in timeline.repeated_concessions}

    def is_core(self, concession: ledger_events.StanceEvent) -> bool:
        """Return True if the concession concerns the main question or a reason for the debater's answer."""
        key, debater = concession["claim"], concession["debater"]
        return key in self.proposals or debater in self.timeline(key).grounds

    @cached_property
    def changes(self) -> list[StanceChange]:
        """Return all changes of mind in the debate, from the oldest to the newest."""
        changes = (change for timeline in self.timelines.values() for change in timeline.changes)
        return sorted(changes, key=lambda change: message_seq(change.event))

    @cached_property
    def by_salience(self) -> list[str]:
        """Return the ids of all claims, starting with the most salient claim.

        Live proposals are first, then come disputed claims. Among equals, a claim that supports more
        debaters' stances on the main question comes first, then the newer one.
        """

        def urgency(key: str) -> tuple[Any, ...]:
            timeline = self.timeline(key)
            last = message_seq(timeline[-1].event) if timeline else -1
            return (
                key not in self.live_proposals,
                self.status(key) != "disputed",
                -len(timeline.grounds),
                -last,
                key,
            )

        return sorted(self.claims, key=urgency)

    @cached_property
    def last_progress(self) -> int:
        """Return the `seq` of the last message that brought evidence, a concession or a change of stance."""
        news = [change.event for timeline in self.timelines.values() for change in timeline.first_changes]
        moves = [change.event for change in self.changes]
        return max(
            (message_seq(event) for event in (*self.evidence, *news, *moves, *self.concessions())), default=-1
        )

    @cached_property
    def _unanswered(self) -> tuple[Sequence[ledger_events.Challenge], Sequence[ledger_events.Question]]:
        """Return all unanswered challenges and questions, newest first.

        A challenge to a claim ends when either of its two debaters concedes or withdraws the claim. It also
        ends when the challenged debater takes a stance on a claim that the challenge itself states.
        """
        waiting = [each for key, each in self.challenges.items() if key not in self.answers]
        challenges = [each for each in waiting if not self._is_over(each)]
        questions = [each for key, each in self.questions.items() if key not in self.answers]
        return challenges[::-1], questions[::-1]

    def _is_over(self, challenge: ledger_events.Challenge) -> bool:
        """Return True if the challenged debater replied, or one of the two gave up the claim later."""
        debaters = (challenge["debater"], challenge["to"])
        given_up = (
            event["debater"] in debaters and is_given_up(event)
            for event in self._since(challenge["claim"], challenge)
        )
        return any(given_up) or any(
            event["debater"] == challenge["to"] and event["kind"] != "unsure"
            for claim in self._claims_stated_in(challenge)
            for event in self._since(claim, challenge)
        )

    def _since(self, claim: str, challenge: ledger_events.Challenge) -> list[ledger_events.StanceEvent]:
        """Return the stance events on a claim since a challenge."""
        events = (change.event for change in self.timelines.get(claim, ()))
        return [event for event in events if message_seq(event) > message_seq(challenge)]

    def _claims_stated_in(self, challenge: ledger_events.Challenge) -> list[str]:
        """Return the ids of the other claims on which a challenge takes a stance."""
        claim_quotes = self._stated.get((challenge["debater"], challenge["message_id"]), ())
        return [
            key for key, quote in claim_quotes if key != challenge["claim"] and quote in challenge["quote"]
        ]

    @cached_property
    def _stated(self) -> Mapping[tuple[str, str], Sequence[tuple[str, str]]]:
        """Return the claims on which each debater takes a stance in each message, with the quotations."""
        claims_by_message: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for key, timeline in self.timelines.items():
            for change in timeline if key != ledger_events.MAIN_QUESTION else ():
                event = change.event
                claims_by_message[event["debater"], event["message_id"]].append((key, event["quote"]))
        return claims_by_message

    def open_challenges(self, to: str = "") -> list[ledger_events.Challenge]:
        """Return the unanswered challenges to a debater, or if `to` is empty to all, newest first."""
        return [each for each in self._unanswered[0] if to in ("", each["to"])]

    def open_questions(self, to: str = "") -> list[ledger_events.Question]:
        """Return the unanswered questions to a debater, or if `to` is empty to all, newest first."""
        return [each for each in self._unanswered[1] if to in ("", each["to"])]


class CommonGround(NamedTuple):
    """Claims on which both of two debaters took a stance, and agree or differ."""

    agreed: list[str]
    """Ids of claims on which both debaters give the same answer under the same conditions or none."""
    differing: list[str]
    """Ids of claims on which the two debaters give different answers."""
    conditional: list[str]
    """Ids of claims on which both debaters give the same answer under different conditions."""


def _granted_side(change: StanceChange | None) -> str:
    """Return the answer (`yes`, `no` or an option) that a debater gives or has conceded, or `""`."""
    if change is None or change.side:
        return change.side if change else ""
    return {1: "yes", -1: "no"}.get(change.sign, "") if change.event["kind"] == "concedes" else ""


def leaning(event: ledger_events.StanceFields) -> int:
    """Return 1 if a stance event supports its claim, -1 if it rejects it, else 0, conditions aside."""
    if event["kind"] == "conditional":
        return -1 if event.get("leans") == "no" else 1
    return {"asserts": 1, "denies": -1}.get(event["kind"], 0)


def with_all_conditions(change: StanceChange) -> ledger_events.StanceEvent:
    """Return a stance event that states all of the debater's conditions.

    The field `condition` contains the conditions. An event that names no condition, such as a later
    concession, keeps the earlier ones. An event that gives up an option names the option.
    """
    given_up = is_given_up(change.event) and not change.side and change.held_change
    if given_up and given_up.side not in ANSWERS:
        return ledger_events.StanceEvent(**{**change.event, "gave_up": given_up.side})
    texts = [text for text in change.conditions.values() if text]
    if not texts or (len(texts) == 1 and change.event["condition"]):
        return change.event
    return ledger_events.StanceEvent(
        **{**change.event, "condition": "; ".join(texts), "condition_count": len(texts)}
    )


def options_chosen(ledger: Ledger) -> list[str]:
    """Return all answers except yes and no that debaters gave to the main question, oldest first."""
    sides = dict.fromkeys(change.side for change in ledger.timeline(ledger_events.MAIN_QUESTION))
    return [side for side in sides if side not in ("", *ANSWERS)]


def is_given_up(event: ledger_events.StanceEvent | None) -> bool:
    """Return True if the debater concedes or withdraws a claim in this event."""
    return event is not None and event["kind"] in ledger_events.GIVING_UP


def is_conditional(saying: ledger_events.StanceFields) -> bool:
    """Return True if the stance depends on a condition."""
    return saying["kind"] == "conditional" or bool(saying["condition"])


def message_seq(event: Mapping[str, Any]) -> int:
    """Return the `seq` of the message that a claim event quotes."""
    seq = seq_of(event["message_id"])
    return -1 if seq is None else seq

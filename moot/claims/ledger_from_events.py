"""Computation of the claim ledger from claim events.

The ledger is a pure function of the events and is never stored. A later event, a retraction or a person's
correction changes the result.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from moot.claims import claim_status
from moot.state import claim_events as ledger_events
from moot.state.conversation import StateValues
from moot.text.terms import title_of

RANK: Mapping[ledger_events.Extractor, int] = {"model": 0, "person": 1}
"""Priority of each source of claim events. If a model and a person disagree about a message, only the events
of the person count."""


def _next_change(
    event: ledger_events.StanceEvent, last: Mapping[str, claim_status.StanceChange]
) -> claim_status.StanceChange:
    """Return how a new stance event changes the debater's position on a claim."""
    debater = event["debater"]
    known = last.get(debater)
    before, sign = (known.event, known.sign) if known else (None, 0)
    held_change = known and (known if known.side else known.held_change)
    others = [change for other, change in last.items() if other != debater]
    if event["kind"] == "concedes" and held_change and held_change.side not in claim_status.ANSWERS:
        # The debater gives up an option of an open question.
        return claim_status.StanceChange(event, before, sign, 0, "", {}, held_change)
    if event["kind"] == "concedes":
        # A debater who conceded or changed sides before only says again what it gave up.
        has_moved = bool(known and known.held_change and known.sign * known.held_change.sign < 0)
        is_repeated = has_moved or (before is not None and before["kind"] == "concedes")
        sign_after = sign if is_repeated else _sign_conceded(sign, others)
        is_unchanged = bool(known and known.side) and sign_after == sign
        if is_unchanged and known:
            return claim_status.StanceChange(
                event, before, sign, sign_after, known.side, known.conditions, held_change
            )
        # A debater who took no side before takes the side that it concedes.
        side = "" if held_change else _side_conceded(event, sign_after, others)
        return claim_status.StanceChange(event, before, sign, sign_after, side, {}, held_change)
    lean = claim_status.leaning(event)
    if lean < 0 and event.get("option"):
        return _option_denied(event, known)
    if not lean:
        sign_after = 0 if event["kind"] == "withdraws" else sign
        return claim_status.StanceChange(event, before, sign, sign_after, "", {}, held_change)
    side = event.get("option") or _SIDES[lean]
    conditions = _conditions_after(event, side, known)
    if known and conditions and known.conditions and known.event["message_id"] == event["message_id"]:
        # A message may state several conditions. Together they are one change.
        return known._replace(event=event, sign=lean, side=side, conditions=conditions)
    return claim_status.StanceChange(event, before, sign, lean, side, conditions, held_change)


_SIDES: Mapping[int, str] = {1: "yes", -1: "no", 0: ""}


def _sign_conceded(sign: int, others: Sequence[claim_status.StanceChange]) -> int:
    """Return a debater's position after a concession, 1 or -1. Both of two debaters may concede at once."""
    current_signs = [change.sign for change in others]
    held_signs = [change.held_change.sign for change in others if change.held_change and not change.side]
    if sign and (-sign in (*current_signs, *held_signs) or sign not in current_signs):
        return -sign
    return sign or (-1 if sum(current_signs) < 0 else 1)


def _side_conceded(
    event: ledger_events.StanceEvent, sign: int, others: Sequence[claim_status.StanceChange]
) -> str:
    """Return the answer accepted by conceding: the named option, the only one of others, or `""`."""
    options = {change.side for change in others} - {"", *claim_status.ANSWERS}
    if event.get("option") or options:
        return event.get("option") or (options.pop() if len(options) == 1 else "")
    return _SIDES[sign]


def _option_denied(
    event: ledger_events.StanceEvent, known: claim_status.StanceChange | None
) -> claim_status.StanceChange:
    """Return the change of a debater who rejects one option, and who held it if any."""
    if known is None:
        return claim_status.StanceChange(event, None, 0, 0)
    if known.side == event.get("option"):
        return claim_status.StanceChange(event, known.event, known.sign, 0, "", {}, known)
    return claim_status.StanceChange(
        event, known.event, known.sign, known.sign, known.side, known.conditions, known.held_change
    )


def _conditions_after(
    event: ledger_events.StanceEvent, side: str, known: claim_status.StanceChange | None
) -> Mapping[str, str]:
    """Return all conditions of an answer by condition id, with those of a new stance event."""
    if not claim_status.is_conditional(event):
        return {}
    text = event["condition"]
    # A condition without text belongs to only one debater.
    key = event.get("condition_id") or text.casefold() or f"unknown condition of {event['debater']}"
    same_side = dict(known.conditions) if known and known.side == side else {}
    same_side.pop(event.get("replaces") or "", None)
    return {**same_side, key: text}


def _mirror(event: ledger_events.StanceEvent) -> ledger_events.StanceEvent:
    """Turn a stance on a claim into the same stance on the negated claim."""
    if event["kind"] == "conditional":
        return {**event, "leans": "yes" if claim_status.leaning(event) < 0 else "no"}
    if event["condition"] and claim_status.leaning(event):
        return {**event, "kind": "conditional", "leans": "yes" if claim_status.leaning(event) < 0 else "no"}
    opposite: dict[int, ledger_events.StanceKind] = {1: "denies", -1: "asserts"}
    return {**event, "kind": opposite.get(claim_status.leaning(event), event["kind"])}


_recent: deque[tuple[Sequence[ledger_events.ClaimEvent], str, claim_status.Ledger]] = deque(maxlen=8)
"""Cache of recently computed claim ledgers, each with its claim events and the topic. Events are only
appended, so a longer list extends a shorter one."""


def ledger_of(state: StateValues) -> claim_status.Ledger:
    """Return the claim ledger of a state. Only new claim events are processed."""
    return fold_events(state.get("claim_events") or (), state.get("topic") or "")


def fold_events(claim_events: Sequence[ledger_events.ClaimEvent], topic: str = "") -> claim_status.Ledger:
    """Compute the claim ledger from claim events.

    Retracted events are dropped, and equal claims are merged.

    The order of the events counts only within one message. An event of lower rank never retracts or replaces
    an event of higher rank on the same message. If the events extend a list that was folded before, only the
    new ones are computed.

    Args:
        claim_events: all claim events of the debate.
        topic: text of the main question.
    """
    known: Sequence[ledger_events.ClaimEvent] = ()
    ledger = empty_ledger(topic)
    if not claim_events:
        return ledger
    for cached_events, cached_topic, cached_ledger in list(_recent):
        is_extension = cached_topic == topic and len(known) < len(cached_events) <= len(claim_events)
        # The lists start with the same events if both ends of the shorter list are the same objects.
        if (
            is_extension
            and claim_events[0] is cached_events[0]
            and claim_events[len(cached_events) - 1] is cached_events[-1]
        ):
            known, ledger = cached_events, cached_ledger
    if known and len(known) == len(claim_events):
        return ledger
    ledger = extend_ledger(ledger, claim_events[len(known) :])
    _recent.append((claim_events, topic, ledger))
    return ledger


@lru_cache(maxsize=8)  # other caches compare ledgers by identity
def empty_ledger(topic: str) -> claim_status.Ledger:
    """Return a claim ledger that contains no claim events."""
    main_question = ledger_events.Claim(
        type="claim",
        id=ledger_events.MAIN_QUESTION,
        text=title_of(topic),
        aspect=ledger_events.OVERALL,
        seq=0,
    )
    return claim_status.Ledger({}, {ledger_events.MAIN_QUESTION: main_question}, {}, {}, {}, {}, [], [], [])


def extend_ledger(
    ledger: claim_status.Ledger, new: Sequence[ledger_events.ClaimEvent]
) -> claim_status.Ledger:
    """Return a copy of the claim ledger with new claim events added."""
    kinds: dict[str, list[Any]] = {
        kind: list(claim_events) for kind, claim_events in ledger.claim_events.items()
    }
    added: dict[str, list[Any]] = defaultdict(list)
    last_numbers, reflected_events, event_count = (
        dict(ledger.last_numbers),
        ledger.reflected_events,
        len(ledger.claim_events.get("event", ())),
    )
    for each in new:
        kind, number = each["type"], str(each.get("id") or "")[1:]
        added[kind].append(each)
        last_numbers[kind] = max(last_numbers.get(kind, 0), int(number) if number.isdecimal() else 0)
        event_count += kind == "event"
        reflected_events = event_count if kind == "reflection_pass" else reflected_events
    for key, claim_events in added.items():
        kinds[key] = kinds.get(key, []) + claim_events

    claims: dict[str, ledger_events.Claim] = {**ledger.claims}
    if {"retraction", "same", "amends"} & kinds.keys() or len(
        {claim_event["by"] for claim_event in kinds.get("event", ())}
    ) > 1:
        # Earlier events may become invalid, so all events are processed again.
        added, claims = (
            defaultdict(list, kinds),
            {ledger_events.MAIN_QUESTION: ledger.claims[ledger_events.MAIN_QUESTION]},
        )
        ledger = empty_ledger(claims[ledger_events.MAIN_QUESTION]["text"])
    claims |= {claim_event["id"]: claim_event for claim_event in added["claim"]}

    retracted: dict[str, int] = {}
    for each in kinds.get("retraction", ()):
        retracted[each["of"]] = max(retracted.get(each["of"], 0), RANK[each["by"]])
    all_claims = {**claims, **{claim_event["id"]: claim_event for claim_event in kinds.get("claim", ())}}
    leaders = _leading(kinds["same"], all_claims) if "same" in kinds else {}
    answers = dict(ledger.answers)
    for each in added["answer"]:
        answers.setdefault(each["to"], each)

    def standing(kind: str) -> list[Any]:
        """Return new events of a type that are not retracted, with the ids of merged claims."""
        valid_events = [n for n in added[kind] if not retracted or retracted.get(n["id"], -1) < RANK[n["by"]]]
        if not leaders or kind == "question":
            return valid_events
        return [{**n, "claim": leaders[n["claim"]][0]} if n["claim"] in leaders else n for n in valid_events]

    amendments = {each["claim"]: each for each in standing("amends")}
    events = _valid_events(added["event"], retracted, leaders, all_claims)

    return claim_status.Ledger(
        claim_events=kinds,
        claims={key: each for key, each in claims.items() if key not in leaders},
        timelines=_extended_timelines(ledger, _with_moves(events, amendments) if amendments else events),
        challenges={**ledger.challenges, **{n["id"]: n for n in standing("challenge")}},
        questions={**ledger.questions, **{n["id"]: n for n in standing("question")}},
        answers=answers,
        evidence=[*ledger.evidence, *standing("evidence")],
        gaps=[*ledger.gaps, *standing("gap")],
        reversals=[*ledger.reversals, *standing("would_reverse")],
        last_numbers=last_numbers,
        read_through=max((each["through"] for each in added["extraction_pass"]), default=ledger.read_through),
        reflected_events=reflected_events,
        dropped=sum((Counter(each["dropped"]) for each in added["extraction_pass"]), Counter(ledger.dropped)),
        amendments=amendments,
    )


def _with_moves(
    events: Iterable[ledger_events.StanceEvent], amendments: Mapping[str, ledger_events.Amendment]
) -> Iterator[ledger_events.StanceEvent]:
    """Yield stance events in message order, and what a debater leaves by accepting a proposal.

    Who accepts a proposal leaves each other proposal that it accepted, and each earlier version on which it
    had taken a position. Who later rejects an earlier version has still left it.
    """
    signs: dict[tuple[str, str], int] = {}
    proposals = (ledger_events.MAIN_QUESTION, *amendments)

    def earlier_versions(version: str) -> set[str]:
        earlier = set[str]()
        while version in amendments and amendments[version]["replaces"] not in earlier:
            version = amendments[version]["replaces"]
            earlier.add(version)
        return earlier

    for event in events:
        yield event
        key, debater, lean = event["claim"], event["debater"], claim_status.leaning(event)
        if key not in proposals:
            continue
        signs[debater, key] = lean
        accepted = [key] if lean > 0 else [each for each in proposals if signs.get((debater, each), 0) > 0]
        for version in accepted:
            for other in (*proposals,) if lean > 0 else (key,):
                sign, is_earlier = signs.get((debater, other)), other in earlier_versions(version)
                if sign is not None and other != version and (sign > 0 or is_earlier):
                    del signs[debater, other]
                    left = {
                        **event,
                        "claim": other,
                        "kind": "withdraws",
                        "condition": "",
                        "moved_to": version,
                    }
                    yield ledger_events.StanceEvent(**left)  # type: ignore[typeddict-item]  # the event, changed


def _extended_timelines(
    ledger: claim_status.Ledger, events: Iterable[ledger_events.StanceEvent]
) -> Mapping[str, claim_status.Timeline]:
    """Return all timelines with new events. One that gets an earlier event is computed again."""
    timelines, events_by_claim = (
        dict(ledger.timelines),
        defaultdict[str, list[ledger_events.StanceEvent]](list),
    )
    for event in events:
        events_by_claim[event["claim"]].append(event)
    for key, stance_events in events_by_claim.items():
        timeline = ledger.timeline(key)
        if timeline and claim_status.message_seq(stance_events[0]) < claim_status.message_seq(
            timeline[-1].event
        ):
            earlier = (change.event for change in timeline)
            timeline, stance_events = (
                claim_status.EMPTY_TIMELINE,
                sorted([*earlier, *stance_events], key=claim_status.message_seq),
            )
        last, changes = dict(timeline.last), []
        for event in stance_events:
            change = last[event["debater"]] = _next_change(event, last)
            changes.append(change)
        timelines[key] = claim_status.Timeline((*timeline, *changes))
    return timelines


def _leading(
    same: Iterable[ledger_events.SameClaim], claims: Mapping[str, ledger_events.Claim]
) -> dict[str, tuple[str, bool]]:
    """Map each merged claim's id to the claim that replaces it, and True if the two contradict."""
    leaders: dict[str, tuple[str, bool]] = {}

    def root(key: str) -> tuple[str, bool]:
        flipped = False
        while key in leaders:
            key, opposite = leaders[key]
            flipped ^= opposite
        return key, flipped

    for each in same:
        if each["one"] in claims and each["other"] in claims:
            (one, one_is_flipped), (other, other_is_flipped) = root(each["one"]), root(each["other"])
            if one != other:
                leader, follower = sorted((one, other))
                leaders[follower] = (leader, one_is_flipped ^ other_is_flipped ^ each["opposite"])
    return {key: root(key) for key in leaders}


def _valid_events(
    stance_events: Iterable[ledger_events.StanceEvent],
    retracted: Mapping[str, int],
    leaders: Mapping[str, tuple[str, bool]],
    claims: Mapping[str, ledger_events.Claim],
) -> list[ledger_events.StanceEvent]:
    """Return the stance events that count, in message order.

    Retracted and overruled events do not count. If one message has several events on a claim, only those of
    the highest rank count. A model's event never replaces an event that a person retracted.
    """
    events: list[ledger_events.StanceEvent] = []
    highest: dict[tuple[str, str, str], int] = defaultdict(int)
    for event in stance_events:
        if event["claim"] not in claims:
            continue
        if event["claim"] in leaders:
            key, flipped = leaders[event["claim"]]
            event = ledger_events.StanceEvent(**{**(_mirror(event) if flipped else event), "claim": key})
        place, rank = _place(event), RANK[event["by"]]
        retraction_rank = retracted.get(event["id"], -1)
        if retraction_rank >= RANK["person"]:
            highest[place] = max(highest[place], RANK["person"])
        if retraction_rank < rank:
            highest[place] = max(highest[place], rank)
            events.append(event)
    kept = [event for event in events if RANK[event["by"]] >= highest[_place(event)]]
    return sorted(kept, key=claim_status.message_seq)


def _place(event: ledger_events.StanceEvent) -> tuple[str, str, str]:
    return event["claim"], event["debater"], event["message_id"]

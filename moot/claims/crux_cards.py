"""Crux rooms, where two debaters discuss one claim, and crux cards, which record the results."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from moot.calls.model_calls import ModelCall
from moot.claims import claim_extraction, ledger_rendering
from moot.claims.claim_status import ClaimStatus, Ledger, is_conditional, leaning, message_seq
from moot.claims.ledger_from_events import ledger_of
from moot.prompts import structured_calls
from moot.prompts.debate_context import DebateContext
from moot.prompts.request import many, narrow_schema, one_of
from moot.prompts.templates import fenced, load_prompt_template
from moot.state import claim_events
from moot.state.conversation import ENDED_STATUSES, ConversationState, StateValues
from moot.state.entries import Entry, cited_id, entries_of, seq_of, traits_of
from moot.text.plain_text import sanitize_line
from moot.text.terms import SIMILARITY_THRESHOLD, jaccard_similarity
from moot.text.tokens import truncate_middle

CARD = load_prompt_template("crux-card", "topic", "claim", "debaters", "sources")
LATER_CARD = load_prompt_template("crux-card-later", "finding")
FIRST_CARD = (
    "The user messages contain the debate messages that led the two debaters to meet, and the messages of "
    "their side room, marked “(side room with …)”."
)

CYCLES = 2
"""Default maximum number of exchanges in a crux room, a side discussion of two debaters."""
LONG = 280
"""Maximum number of characters in a long field of a crux card, such as `diagnosis`."""
_FRAME = 780  # tokens: the templates take 509, the schema 246, the rest is the message format


def make_room(
    room_id: str,
    claim: str,
    between: Sequence[str],
    trigger: Sequence[str],
    round_no: int,
    cycles: int = CYCLES,
) -> claim_events.Room:
    """Return a new crux room, a side discussion of two debaters who disagree on a claim."""
    return {
        "id": room_id,
        "claim": claim,
        "between": list(between),
        "round": round_no,
        "stage": "",
        "cycle": 0,
        "cycles": cycles,
        "assessed": 0,
        "closed": False,
        "trigger": list(trigger),
        "message_ids": [],
    }


def rooms_to_assess(state: ConversationState) -> list[claim_events.Room]:
    """Return the side discussions whose results are not recorded yet."""
    return [
        room
        for room in state.get("crux_rooms", {}).values()
        if room["stage"] in ("positions", "steelman") and room["assessed"] <= room["cycle"]
        if not (room["closed"] or awaits_second(room))
    ]


def current_claim(state: ConversationState, room: claim_events.Room) -> str:
    """Return the claim on which the debaters in a crux room still disagree, or `""`."""
    ledger, message_ids = ledger_of(state), set(room["message_ids"])

    if ledger.differ(room["claim"], *room["between"]):
        return room["claim"]
    for key in ledger.by_salience:
        is_new = any(event["message_id"] in message_ids for event in ledger.stances(key).values())
        if key != claim_events.MAIN_QUESTION and is_new and ledger.differ(key, *room["between"]):
            return key
    return ""


def is_answered(ledger: Ledger, claim: str, cards: Iterable[claim_events.CruxCard]) -> bool:
    """Return True if a crux room settled a claim for two debaters. Only claim events change its status."""
    involved = {debater for side in ledger.timeline(claim).sides for debater in side}
    ends = [
        max((seq_of(key) or 0 for key in card["message_ids"]), default=0)
        for card in cards
        if card["claim"] == claim and card["resolved"] and involved <= set(card["sides"])
    ]
    last = max((message_seq(event) for event in ledger.stances(claim).values()), default=-1)
    return bool(ends) and last <= max(ends)


def awaits_second(room: claim_events.Room) -> bool:
    """Return True if the second debater of a crux room still has to take its turn in the stage."""
    return not room["closed"] and room.get("second", False)


def with_entries(
    rooms: Mapping[str, claim_events.Room], entries: Iterable[Entry]
) -> dict[str, claim_events.Room]:
    """Add the ids of new entries to their crux rooms, and return the changed ones."""
    grown: dict[str, claim_events.Room] = {}
    for entry in entries:
        room = grown.get(entry["room"]) or rooms.get(entry["room"])
        if room is not None and entry["id"] not in room["message_ids"] and traits_of(entry).argues:
            grown[room["id"]] = {**room, "message_ids": [*room["message_ids"], entry["id"]]}
    return grown


class SideFinding(BaseModel):
    """A model's findings about one debater in a side discussion."""

    debater: str
    reasoning: str
    answer: claim_events.CardResult
    falsifier: str
    """Finding that would change the debater's mind."""
    now: claim_events.StanceKind
    """Stance of the debater on the disputed claim after the side discussion."""
    condition: str = ""
    """Condition on which the stance depends, in the debater's words."""
    message_id: str
    quote: str
    """Debater's exact words in the side discussion that show the stance."""


class CruxFinding(BaseModel):
    """A model's findings about a side discussion between two debaters."""

    reasoning: str
    question: str
    sides: list[SideFinding]
    type: claim_events.CruxType
    diagnosis: str
    resolved: bool
    resolution: str


def card_call(debate: DebateContext, room: claim_events.Room, *, call_index: int) -> ModelCall:
    """Return the model call that writes a crux card, the record of a side discussion.

    A later assessment of the same claim shows the earlier one in place of the messages that it has read.
    The background is left out, because the card is about what the two debaters said.
    """
    state, config, count = debate.state, debate.config, debate.count
    size = max(200, config.memory.budget.total - _FRAME)
    earlier = room.get("card")
    if earlier and earlier["claim"] != room["claim"]:
        earlier = None
    finding = ledger_rendering.card_text(earlier, debate.names) if earlier else ""
    system = CARD.render(
        topic=fenced(truncate_middle(state["topic"], size // 6, count), config.fence),
        claim=fenced(claim_text(state, room), config.fence),
        debaters=structured_calls.debater_lines(config, room["between"]),
        sources=LATER_CARD.render(finding=fenced(finding, config.fence)) if finding else FIRST_CARD,
    )
    transcript = state["full_transcript"]
    entries = structured_calls.add_person_messages(
        entries_of([*room["trigger"], *room["message_ids"]], transcript), transcript
    )
    read_through = max((seq_of(key) or 0 for key in earlier["message_ids"]), default=0) if earlier else -1
    entries = [entry for entry in entries if entry["seq"] > read_through]
    prompt_texts = structured_calls.shown_entries(entries, config, size * 2 // 3, count)
    names = [debate.names[debater] for debater in room["between"]]
    quotable_ids = [entry["id"] for entry in entries if entry["id"] in room["message_ids"]]
    side = narrow_schema(
        SideFinding, {"debater": one_of(room["between"]), "message_id": one_of(quotable_ids)}
    )
    return structured_calls.structured_call(
        "reflect",
        config,
        system,
        prompt_texts,
        narrow_schema(CruxFinding, {"sides": many(side, 2, 2)}),
        count,
        memory_kind="cruxes",
        call_index=call_index,
        debaters=names,
        about=entries,
    )


def card_by_model(
    debate: DebateContext, room: claim_events.Room, data: Mapping[str, Any]
) -> claim_events.CruxCard:
    """Build a crux card from a model's reply, and from the claim ledger for debaters who are missing."""
    names = {debater: debate.names[debater] for debater in room["between"]}
    findings = {structured_calls.match_debater(side["debater"], names): side for side in data["sides"]}
    card = card_by_rule(debate, room)
    for debater in findings.keys() & card["sides"].keys():
        side = findings[debater]
        reasoning, falsifier = (
            ledger_rendering.board_text(side["reasoning"], LONG),
            ledger_rendering.board_text(side["falsifier"], LONG),
        )
        card["sides"][debater] = {"answer": side["answer"], "reasoning": reasoning, "falsifier": falsifier}
    answers = {side["answer"] for side in card["sides"].values()}
    return {
        **card,
        "question": ledger_rendering.board_text(data["question"]) or card["question"],
        "type": data["type"],
        "diagnosis": ledger_rendering.board_text(data["diagnosis"], LONG),
        # Opposite answers are not a resolution, whatever the model says.
        "resolved": bool(data["resolved"]) and answers != {"yes", "no"},
        "resolution": ledger_rendering.board_text(data["resolution"], LONG),
    }


def card_events(
    debate: DebateContext,
    room: claim_events.Room,
    data: Mapping[str, Any],
    before: Sequence[claim_events.ClaimEvent] = (),
) -> list[claim_events.ClaimEvent]:
    """Return events for the stances after a crux room. One without a quotation from it is dropped."""
    state = debate.state
    entries = {entry["id"]: entry for entry in entries_of(room["message_ids"], state["full_transcript"])}
    extraction = claim_extraction.ClaimExtraction(
        known=[*(state.get("claim_events") or []), *before],
        topic=state["topic"],
        entries=entries,
        debaters=room["between"],
        by="model",
    )
    names = {debater: debate.names[debater] for debater in room["between"]}
    for side in data["sides"]:
        entry = entries.get(cited_id(side["message_id"]))
        debater = structured_calls.match_debater(side["debater"], names)
        stance = extraction.ledger.stance(debater, room["claim"])
        is_known = stance and (stance["message_id"], stance["kind"]) == (
            cited_id(side["message_id"]),
            side["now"],
        )
        if entry is not None and entry["speaker"] == debater and not is_known:
            event = {"claim": room["claim"], "kind": side["now"], "confidence": 1.0, "ground": False}
            condition = side["condition"] if side["now"] in ("conditional", "denies") else ""
            fields = {"message_id": entry["id"], "quote": side["quote"], "condition": condition}
            extraction.apply({"events": [{**event, **fields}]})
    return extraction.new


def card_by_rule(debate: DebateContext, room: claim_events.Room) -> claim_events.CruxCard:
    """Build a crux card from the claim ledger. It is resolved if the debaters no longer differ."""
    state, config = debate.state, debate.config
    text, ledger = claim_text(state, room), ledger_of(state)
    answers: dict[int, claim_events.CardResult] = {1: "yes", -1: "no", 0: "nuanced"}
    sides: dict[str, claim_events.CruxSide] = {}
    for debater in room["between"]:
        stance, flips = ledger.stance(debater, room["claim"]), config.debater(debater).flip_conditions
        sign = 0 if stance is None or is_conditional(stance) else leaning(stance)
        sides[debater] = {
            "answer": answers[sign],
            "reasoning": ledger_rendering.board_text(stance["quote"], LONG) if stance else "",
            "falsifier": ledger_rendering.board_text(flips[0], LONG) if flips else "",
        }
    is_resolved = not ledger.differ(room["claim"], *room["between"])
    return {
        "id": f"card-{room['id']}",
        "claim": room["claim"],
        "message_ids": [*room["trigger"], *room["message_ids"]],
        "round": int(state.get("round", 0)),
        "room": room["id"],
        "question": ledger_rendering.board_text(f"Is this so: {text}") if text else "",
        "sides": sides,
        "type": "claim",
        "diagnosis": "" if is_resolved else "The two differ on this statement.",
        "resolved": is_resolved,
        "resolution": "The two no longer differ on this statement." if is_resolved else "",
    }


def is_room_over(state: ConversationState, room: claim_events.Room, card: claim_events.CruxCard) -> bool:
    """Return True if a side discussion of two debaters should be closed."""
    is_at_cap = room["cycle"] >= room.get("cycles", CYCLES)
    if card["resolved"] or is_at_cap:
        return True
    # The room repeats itself if both debaters make the same statements as in the previous cycle.
    entries = entries_of(room["message_ids"], state["full_transcript"])
    for debater in room["between"]:
        statements = [entry["content"] for entry in entries if entry["speaker"] == debater]
        if (
            len(statements) < 4
            or jaccard_similarity("\n".join(statements[-2:]), "\n".join(statements[-4:-2]))
            < SIMILARITY_THRESHOLD
        ):
            return False
    return True


def claim_text(state: StateValues, room: claim_events.Room) -> str:
    """Return the text of the claim that a side discussion is about."""
    claim = ledger_of(state).claims.get(room["claim"])
    return ledger_rendering.board_text(claim["text"]) if claim else ""


LEADING = ("Cruxes", "What would change minds", "Where they stand")
"""Titles of the sections in the short overview of a debate's result."""
GLANCE = 4
"""Maximum number of items in each section of the short overview of a debate's result."""


def claim_statuses(state: StateValues) -> dict[str, ClaimStatus]:
    """Return the status of each claim by claim id, most salient claim first."""
    ledger = ledger_of(state)
    is_closing = (state.get("step") or {}).get("kind") in ("judge", "close")
    is_over = is_closing or state.get("status") in ENDED_STATUSES
    in_rooms = {room["claim"] for room in (state.get("crux_rooms") or {}).values() if not room["closed"]}
    return {
        key: ledger.claim_status(key, is_over=is_over, in_room=key in in_rooms and not is_over)
        for key in ledger.by_salience
    }


def findings_text(
    state: StateValues,
    names: ledger_rendering.Names,
    flips: Mapping[str, Sequence[str]],
    *,
    extracts: bool = True,
) -> str:
    """Return the results of a debate, such as cruxes and concessions, as Markdown text.

    The results are computed from the claim ledger. `flips` are the findings that would change a debater's
    mind. Without claims, the text says why (`extracts`).
    """
    ledger, statuses = ledger_of(state), claim_statuses(state)
    display_names = {debater: sanitize_line(name) for debater, name in names.items()}

    def by(claim_event: claim_events.StanceEvent | claim_events.Gap) -> str:
        return display_names.get(claim_event["debater"], claim_event["debater"])

    stances = [
        f"{by(event)}: {ledger_rendering.answer_text(ledger, event)}: "
        f"{event['condition'] and event['condition'] + ': '}"
        f"{ledger_rendering.quotation(event, ledger_rendering.TEXT)}"
        for debater in names
        if (event := ledger.stance(debater))
    ]
    changes = []
    for change in ledger.changes:
        earlier_text = (
            f"from “{ledger_rendering.board_text(change.before['quote'], ledger_rendering.SHORT)}” to "
            if change.before
            else ""
        )
        note = f" (same answer, {change.conditions_note})" if change.conditions_note else ""
        changes.append(f"{by(change.event)}: {earlier_text}{ledger_rendering.quotation(change.event)}{note}")
    moved_ids = {change.event["id"] for change in ledger.changes} | ledger.repeated_concessions
    concessions = [
        f"{by(event)}{', core' if ledger.is_core(event) else ''}: {ledger_rendering.quotation(event)}"
        for event in ledger.concessions()
        if event["id"] not in moved_ids
    ]
    sections = (
        ("Cruxes", list(_cruxes(state, display_names))),
        ("What would change minds", list(_flips(state, ledger, display_names, flips))),
        ("Where they stand", stances),
        ("Changes of mind", changes),
        ("Conceded", concessions),
        ("Claims", list(_claims(ledger, statuses, display_names))),
        ("Admitted not to know", [f"{by(gap)}: {ledger_rendering.quotation(gap)}" for gap in ledger.gaps]),
    )
    missing = ledger_rendering.why_no_claims(state.get("claim_events") or (), extracts=extracts)
    section_texts = ["\n- ".join([f"## {title}", *lines]) for title, lines in sections if lines]
    return "\n\n".join(filter(None, [missing, *section_texts]))


def _cruxes(state: StateValues, names: ledger_rendering.Names) -> Iterator[str]:
    for card in ledger_rendering.cards_of(state):
        outcome = card["resolution"] or card["diagnosis"]
        results, status = ledger_rendering.card_results_text(card, names), ledger_rendering.card_status(card)
        yield f"{card['question']} ({results}; {status}): {outcome}"


def _flips(
    state: StateValues, ledger: Ledger, names: ledger_rendering.Names, flips: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield lines about what would change the debaters' minds.

    What debaters said in a side discussion is included for all of them, everything else only for debaters who
    have kept their positions.
    """
    main, first_sides = ledger.timeline(claim_events.MAIN_QUESTION), dict[str, str]()
    for change in main:
        if change.side:
            first_sides.setdefault(change.event["debater"], change.side)
    moved_debaters = main.given_up | {
        debater for debater, last in main.last.items() if last.side not in ("", first_sides.get(debater))
    }
    for debater, texts in flips.items():
        if debater in moved_debaters:
            continue
        yield from (f"{names.get(debater, debater)}: {sanitize_line(text)}" for text in texts)
    for event in ledger.reversals:
        if event["debater"] not in moved_debaters:
            yield f"{names.get(event['debater'], event['debater'])}: {ledger_rendering.quotation(event)}"
    for card in ledger_rendering.cards_of(state):
        for debater, side in card["sides"].items():
            if side["falsifier"]:
                yield f"{names.get(debater, debater)}, on “{card['question']}”: {side['falsifier']}"


_UNSETTLED = ("disputed", "unresolved", "conditional")


def _claims(
    ledger: Ledger, statuses: Mapping[str, ClaimStatus], names: ledger_rendering.Names
) -> Iterator[str]:
    """Yield a line for each claim that is not `open`: disputed, unresolved and conditional ones first."""
    for key in sorted(statuses, key=lambda key: statuses[key].status not in _UNSETTLED):
        status = statuses[key]
        if key == claim_events.MAIN_QUESTION or status.status == "open":
            continue
        text, stances = (
            ledger_rendering.board_text(ledger.claims[key]["text"]),
            ledger_rendering.stances_text(ledger, names, key),
        )
        yield f"{text} ({status.label}; {stances})"


def at_a_glance(outcome: str) -> str:
    """Shorten a Markdown result to its main sections and the number of points in each other one."""
    sections = re.split(r"^(?=## )", outcome, flags=re.MULTILINE)
    shown_sections, omitted_titles = list[str](), list[str]()
    for section in filter(None, map(str.strip, sections)):
        lines = section.split("\n")
        title = lines[0].removeprefix("## ")
        points = [index for index, line in enumerate(lines) if line.startswith("- ")]
        if section.startswith("## ") and title not in LEADING:
            omitted_titles.append(f"{title.lower()} ({len(points)})")
            continue
        if len(points) > GLANCE:
            lines[points[GLANCE] :] = [f"- … and {len(points) - GLANCE} more, in the report"]
        shown_sections.append("\n".join(lines))
    return "\n\n".join(
        [*shown_sections, *([f"In the report: {', '.join(omitted_titles)}."] if omitted_titles else [])]
    )

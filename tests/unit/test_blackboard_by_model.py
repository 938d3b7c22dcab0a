"""Claims, crux cards and reflections that a model writes are checked before they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from moot.calls.effects import run_body_with
from moot.calls.model_calls import ModelCall, Reply
from moot.claims.blackboard import render_blackboard
from moot.claims.crux_cards import (
    card_by_model,
    card_by_rule,
    card_call,
    card_events,
    is_room_over,
    make_room,
    rooms_to_assess,
    with_entries,
)
from moot.claims.ledger_from_events import ledger_of
from moot.claims.ledger_rendering import current_reflections, reflections_text
from moot.claims.model_extraction import uses_model
from moot.claims.reflections import reflection_due, reflections_by_model, reflections_by_rule
from moot.config import OFFLINE, DebateConfig
from moot.config.memory_config import BlackboardConfig
from moot.memory.cross_debate_memory import memory_items
from moot.memory.window import window_message
from moot.nodes.extract import due_through, extract
from moot.nodes.reflect import reflect, reflect_due
from moot.prompts.debate_context import DebateContext
from moot.prompts.structured_calls import match_debater
from moot.protocols.registry import protocol_named
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.state.claim_events import StanceKind
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from moot.text.tokens import counter
from tests.support.ledger_state import stance_event

NAMES = {"ada": "Ada", "bob": "Bob"}
CONFIG = DebateConfig.model_validate(
    {"model": "m", "debaters": [{"name": "Ada"}, {"name": "Bob", "flip_conditions": ["a dry winter"]}]}
)
LISTS = (
    "claims",
    "events",
    "challenges",
    "questions",
    "answers",
    "evidence",
    "gaps",
    "same",
    "retractions",
)


def _event(message_id: str, kind: str, quote: str, claim: str = "n1", **fields: Any) -> dict[str, Any]:
    base = {"condition": "", "ground": False, "confidence": 0.9, "message_id": message_id, "quote": quote}
    return {**base, "kind": kind, "claim": claim, **fields}


def _extraction(**lists: Any) -> Reply:
    return Reply(data={"reasoning": "read", **{name: [] for name in LISTS}, **lists})


def _verification(*kinds: str) -> Reply:
    checks = [{"number": n, "reasoning": "", "kind": kind} for n, kind in enumerate(kinds, 1)]
    return Reply(data={"checks": checks})


MESSAGES = (
    make_entry(1, "ada", "speech", "Barges are slow, Bob.", tokens=6),
    make_entry(2, "bob", "speech", "I do not think that barges are slow.", tokens=9),
)
NEW_CLAIMS = [{"ref": "n1", "text": "Barges are slow"}]
DISPUTE = [
    _event("m000001", "asserts", "Barges are slow"),
    _event("m000002", "denies", "I do not think that"),
]
EVENTS: list[Any] = [
    {"type": "claim", "id": "p001", "text": "Barges are slow", "aspect": "overall", "seq": 1},
    {**_event("m000001", "asserts", "Barges are slow", "p001"), "id": "e001", "debater": "ada"},
    {**_event("m000002", "denies", "I do not", "p001"), "id": "e002", "debater": "bob"},
]
EVENTS[1:] = [{**event, "type": "event", "by": "model"} for event in EVENTS[1:]]


def test_debaters_are_matched_by_id_or_name() -> None:
    assert [match_debater(name, NAMES) for name in ("ada", " BOB ", "Zoe", "")] == ["ada", "bob", "", ""]


@pytest.mark.parametrize(
    ("protocol", "extraction", "by_model"),
    [
        ("dialogue", "auto", True),
        ("council", "auto", False),
        ("round-robin", "auto", False),
        ("round-robin", "llm", True),
        ("dialogue", "none", False),
    ],
)
def test_extraction_by_model_depends_on_protocol_and_configuration(
    protocol: str, extraction: str, by_model: bool
) -> None:
    config = DebateConfig.model_validate(
        {"protocol": protocol, "model": "m", "blackboard": {"extraction": extraction}}
    )
    offline = config.model_copy(update={"model": OFFLINE})
    auto = protocol_named(protocol).extracts_by_default
    assert not uses_model(offline.blackboard, offline.model, auto=auto)
    assert uses_model(config.blackboard, config.model, auto=auto) is by_model


def _state(config: DebateConfig = CONFIG, entries: Sequence[Entry] = (), **fields: Any) -> ConversationState:
    base = {
        "topic": "Barges?",
        "config": config.to_json(),
        "full_transcript": [make_entry(0, "user", "topic", "Barges?"), *entries],
        "messages": [window_message(entry) for entry in entries],
        "step": {"number": 1, "phase": "argument", "round": 1},
        "round": 1,
        "claim_events": EVENTS,
    }
    return cast(ConversationState, {**base, **fields})


def _debate(state: ConversationState) -> DebateContext:
    return DebateContext(state, CONFIG, counter())


def _drive(body: Any, *replies: Reply) -> tuple[dict[str, Any], list[ModelCall]]:
    """Run a node body. Each batch of calls gets the next reply; the last reply is repeated."""
    calls: list[ModelCall] = []
    left = list(replies)

    def outcomes(effect: Any) -> Any:
        if not isinstance(effect, list):
            return None
        calls.extend(effect)
        reply = left.pop(0) if len(left) > 1 else left[0]
        return [reply for _ in effect]

    return run_body_with(body, outcomes), calls


def _extraction_config(**fields: Any) -> DebateConfig:
    board = CONFIG.blackboard.model_copy(update={"extraction": "llm", **fields})
    return CONFIG.model_copy(update={"blackboard": board})


def _extract(*replies: Reply, **fields: Any) -> tuple[dict[str, Any], list[ModelCall]]:
    state = _state(_extraction_config(**fields), MESSAGES, claim_events=[], turn_count=6)
    update, calls = _drive(extract(node_context(Environment(), state)), *replies)
    return {**state, **update}, calls


def test_failed_extraction_stores_no_claims_and_names_its_messages() -> None:
    state, calls = _extract(Reply(error="down"))
    assert len(calls) == 1
    assert [event["type"] for event in state["claim_events"]] == ["extraction_pass"]
    assert state["errors"][0]["error"] == "no claims of m000001 to m000002: down"
    assert (
        due_through(node_context(Environment(), cast(ConversationState, state)), 2)
        == ledger_of(state).read_through
    )


TOPIC_EVENTS: list[Any] = [{**event, "claim": "p000"} for event in DISPUTE]


def test_only_positions_on_the_topic_are_verified() -> None:
    extraction = _extraction(claims=NEW_CLAIMS, events=[*DISPUTE, *TOPIC_EVENTS])
    state, calls = _extract(extraction, _verification("asserts", "denies"))
    assert [call.schema.__name__ for call in calls if call.schema] == ["ExtractedClaims", "QuotationChecks"]
    assert calls[1].messages[1]["content"].count("Quotation:") == 1
    assert {ledger_of(state).status(key) for key in ("p000", "p001")} == {"disputed"}
    assert len(_extract(_extraction(claims=NEW_CLAIMS, events=DISPUTE))[1]) == 1


def test_verification_names_the_option_that_a_debater_withdraws() -> None:
    chosen = {**TOPIC_EVENTS[0], "kind": "asserts", "option": "barges"}
    left = {**TOPIC_EVENTS[0], "kind": "withdraws", "option": ""}
    fields = {
        "claim_events": [],
        "turn_count": 6,
        "question": {"question": "Which?", "options": ["barges", "rail"]},
    }
    state = _state(_extraction_config(), MESSAGES, **fields)
    replies = (_extraction(events=[chosen, left]), _verification("asserts", "withdraws"))
    _, calls = _drive(extract(node_context(Environment(), state)), *replies)
    prompt = calls[1].messages[1]["content"]
    assert prompt.count("Claim: the right answer to the topic is: barges") == 2
    assert "answered with yes" not in prompt


def test_extraction_prompt_includes_interjections_as_context() -> None:
    news = make_entry(3, "user", "interjection", "The barge broke down.")
    entries = [*MESSAGES, news, make_entry(4, "bob", "speech", "So rail it is, as [m000003] shows.")]
    state = _state(_extraction_config(), entries, claim_events=[], turn_count=6)
    _, calls = _drive(extract(node_context(Environment(), state)), _extraction())
    texts = [each["content"] for each in calls[0].messages]
    (place,) = (n for n, text in enumerate(texts) if "The barge broke down." in text)
    assert texts[place].startswith("(for context)")
    assert "[m000004]" in texts[place + 1]
    assert not texts[place - 1].startswith("(for context)")


def test_event_is_dropped_if_the_verification_disagrees() -> None:
    state, _ = _extract(_extraction(events=TOPIC_EVENTS), _verification("asserts", "open"))
    ledger = ledger_of(state)
    assert ledger.status("p000") == "open"
    assert ledger.dropped == {"verification": 1}


def test_disabled_or_failed_verification_keeps_the_events() -> None:
    extraction = _extraction(events=TOPIC_EVENTS)
    state, calls = _extract(extraction, verify_changes=False)
    assert len(calls) == 1
    assert ledger_of(state).status("p000") == "disputed"
    assert ledger_of(_extract(extraction, Reply(error="down"))[0]).status("p000") == "disputed"


def test_invented_and_inverted_quotations_are_dropped() -> None:
    invented = [DISPUTE[0], _event("m000002", "denies", "barges are fast, Ada")]
    state, _ = _extract(_extraction(claims=NEW_CLAIMS, events=invented))
    assert (ledger_of(state).status("p001"), dict(ledger_of(state).dropped)) == (
        "open",
        {"quotation not found": 1},
    )
    inverted = [TOPIC_EVENTS[0], {**TOPIC_EVENTS[1], "kind": "asserts"}]
    state, _ = _extract(_extraction(events=inverted), _verification("denies", "denies"))
    assert ledger_of(state).status("p000") == "open"


def test_events_below_the_configured_confidence_are_dropped() -> None:
    unsure = [DISPUTE[0], _event("m000002", "denies", "I do not think that", confidence=0.45)]
    extraction = _extraction(claims=NEW_CLAIMS, events=unsure)
    assert ledger_of(_extract(extraction)[0]).status("p001") == "open"
    assert ledger_of(_extract(extraction, confidence=0.4)[0]).status("p001") == "disputed"


QUESTION_EVENTS: list[Any] = [
    {
        "type": "question",
        "id": "q001",
        "debater": "ada",
        "to": "bob",
        "message_id": "m000001",
        "quote": "Barges are slow, Bob.",
    }
]


@pytest.mark.parametrize(
    ("known", "asked_for"),
    [([], set()), (EVENTS, {"retractions"}), (QUESTION_EVENTS, {"answers"})],
    ids=["nothing", "stances", "a question"],
)
def test_extraction_does_not_ask_for_lists_that_must_be_empty(known: list[Any], asked_for: set[str]) -> None:
    state = _state(_extraction_config(), MESSAGES, claim_events=known, turn_count=6)
    _, calls = _drive(extract(node_context(Environment(), state)), _extraction())
    prompt, optional = calls[0].messages[0]["content"], {"answers", "retractions"}
    assert calls[0].schema is not None
    assert calls[0].schema.model_fields.keys() & optional == asked_for
    assert {name for name in optional if f"`{name}`" in prompt} == asked_for


def test_extraction_schema_lists_valid_ids_and_prompt_shows_the_ledger() -> None:
    state = _state(_extraction_config(), [*MESSAGES, make_entry(3, "ada", "speech", "Slow.")], turn_count=6)
    read_to: Any = {"type": "extraction_pass", "through": 2, "by": "model", "dropped": {}}
    state["claim_events"] = [*EVENTS, read_to]
    _, calls = _drive(extract(node_context(Environment(), state)), _extraction())
    schema = str(calls[0].schema.model_json_schema()) if calls[0].schema else ""
    assert "'m000003'" in schema
    assert "'m000001'" not in schema
    assert "'p001'" in schema
    shown = calls[0].messages[0]["content"]
    assert "- p001: Barges are slow | ada asserts (e001); bob denies (e002)" in shown


def test_ledger_cites_the_message_of_a_position_if_the_prompt_shows_it() -> None:
    state = _state(
        _extraction_config(),
        [*MESSAGES, make_entry(3, "ada", "speech", "Slow, see [m000001].")],
        turn_count=6,
    )
    read_to: Any = {"type": "extraction_pass", "through": 2, "by": "model", "dropped": {}}
    state["claim_events"] = [*EVENTS, read_to]
    _, calls = _drive(extract(node_context(Environment(), state)), _extraction())
    shown = calls[0].messages[0]["content"]
    assert "| ada asserts (e001 in m000001); bob denies (e002)" in shown
    assert "Under discussion" not in shown


@pytest.mark.parametrize(
    ("protocol", "fields", "extraction", "reads"),
    [
        ("round-robin", {"turn_count": 2}, "llm", False),
        ("round-robin", {"turn_count": 6}, "llm", True),
        ("round-robin", {"turn_count": 6}, "auto", False),
        ("dialogue", {"turn_count": 2}, "none", False),
        ("dialogue", {"step": {"number": 1, "phase": "opening", "round": 1}}, "auto", False),
        ("dialogue", {"step": {"number": 2, "phase": "take", "round": 2}}, "auto", False),
        ("dialogue of three", {"step": {"number": 2, "phase": "take", "round": 2}}, "auto", True),
        ("dialogue", {"step": {"number": 4, "phase": "reply", "round": 2}}, "auto", True),
        ("dialogue", {"step": {"number": 3, "phase": "respond", "round": 2}}, "auto", False),
        ("council", {"step": {"number": 1, "phase": "propose", "round": 1}}, "llm", False),
        ("council", {"step": {"number": 1, "phase": "refine", "round": 1}}, "llm", True),
        ("council", {"step": {"number": 1, "phase": "refine", "round": 1}}, "auto", False),
    ],
)
def test_extraction_runs_only_where_its_claims_are_used(
    protocol: str, fields: dict[str, Any], extraction: str, reads: bool
) -> None:
    name, _, size = protocol.partition(" of ")
    config = _extraction_config(extraction=extraction).model_copy(update={"protocol": name, "turns": 6})
    if size:
        third = config.debaters[0].model_copy(update={"id": "cyd", "name": "Cyd"})
        config = config.model_copy(update={"debaters": (*config.debaters, third)})
    state = _state(config, MESSAGES, claim_events=[], **fields)
    update, _ = _drive(extract(node_context(Environment(), state)), _extraction())
    assert ("claim_events" in update) is reads


# Crux cards


def _room(cycle: int = 1, last: str = "I concede that, Ada: barges are slow.") -> Any:
    messages = [
        make_entry(3, "ada", "speech", "Barges took 9 hours.", room="room-01"),
        make_entry(4, "bob", "speech", last, room="room-01"),
    ]
    room = make_room("room-01", "p001", ("ada", "bob"), ("m000001",), 1)
    room = with_entries({"room-01": room}, messages)["room-01"]
    return {**room, "stage": "steelman", "cycle": cycle}, [*MESSAGES, *messages]


SIDE = {
    "debater": "Ada",
    "reasoning": "hours",
    "answer": "yes",
    "falsifier": "a fast barge",
    "now": "asserts",
    "message_id": "m000003",
    "quote": "Barges took 9 hours.",
}


def _card(**fields: Any) -> Any:
    room, entries = _room()
    data = {
        "reasoning": "",
        "question": "Are barges slow?",
        "sides": [SIDE, {**SIDE, "debater": "Zoe"}, {**SIDE, "debater": "bob", "answer": "no"}],
        "type": "evidence",
        "diagnosis": "d",
        "resolved": True,
        "resolution": "r",
    }
    return card_by_model(_debate(_state(entries=entries)), room, {**data, **fields})


def test_card_with_opposite_answers_is_not_resolved() -> None:
    assert not _card()["resolved"]


def test_card_has_exactly_the_two_debaters_of_its_room() -> None:
    assert list(_card()["sides"]) == ["ada", "bob"]
    assert list(_card(sides=[])["sides"]) == ["ada", "bob"]
    assert _card()["message_ids"] == ["m000001", "m000003", "m000004"]


def test_card_events_quote_each_debaters_own_messages_in_the_room() -> None:
    room, entries = _room()
    bob = {**SIDE, "debater": "Bob", "now": "concedes", "message_id": "m000004", "quote": "barges are slow"}
    foreign = {**SIDE, "debater": "Bob", "now": "denies", "message_id": "m000003"}
    state = _state(entries=entries)
    events = card_events(_debate(state), room, {"sides": [SIDE, bob, foreign]})
    assert [event["kind"] for event in events if event["type"] == "event"] == ["asserts", "concedes"]
    assert ledger_of({**state, "claim_events": [*EVENTS, *events]}).status("p001") == "settled"


def test_card_event_keeps_the_condition_of_a_denial() -> None:
    room, entries = _room(last="No, unless barges are slow.")
    bob = {**SIDE, "debater": "Bob", "now": "denies", "condition": "unless barges are slow"}
    bob |= {"message_id": "m000004", "quote": "No, unless barges are slow"}
    events = card_events(_debate(_state(entries=entries)), room, {"sides": [bob]})
    (event,) = [event for event in events if event["type"] == "event"]
    assert (event["kind"], event["leans"], event["condition"]) == (
        "conditional",
        "no",
        "unless barges are slow",
    )


@pytest.mark.parametrize(("kind", "resolved"), [("concedes", True), ("denies", False)])
def test_rule_based_card_follows_the_ledger(kind: StanceKind, resolved: bool) -> None:
    room, entries = _room()
    events = [*EVENTS, stance_event(4, "bob", kind, quote="barges are slow")]
    card = card_by_rule(_debate(_state(entries=entries, claim_events=events)), room)
    answers = {"ada": "yes", "bob": "nuanced" if resolved else "no"}
    assert {who: side["answer"] for who, side in card["sides"].items()} == answers
    assert card["sides"]["bob"]["reasoning"] == "barges are slow"
    assert card["sides"]["bob"]["falsifier"] == "a dry winter"
    assert card["resolved"] is resolved


def test_card_prompt_includes_interjections() -> None:
    news = make_entry(3, "user", "interjection", "Barges took 5 hours in May.")
    said = [
        make_entry(number, who, "speech", "Hm.", room="room-01") for number, who in ((4, "ada"), (5, "bob"))
    ]
    room = make_room("room-01", "p001", ("ada", "bob"), ("m000001",), 1)
    room = with_entries({"room-01": room}, said)["room-01"]
    state = _state(entries=[*MESSAGES, news, *said])
    call = card_call(_debate(state), room, call_index=0)
    shown = [m["content"] for m in call.messages if "5 hours in May" in m["content"] or "Hm." in m["content"]]
    assert ["May" in text for text in shown] == [True, False, False]
    assert call.schema is not None
    assert "m000003" not in str(call.schema.model_json_schema())


def test_later_card_prompt_has_the_earlier_card_instead_of_its_messages() -> None:
    room, entries = _room()
    later = [make_entry(5, "ada", "speech", "So 9 hours it is.", room="room-01")]
    room["card"] = _card()
    room = with_entries({"room-01": room}, later)["room-01"]
    state = _state(entries=[*entries, *later])
    call = card_call(_debate(state), room, call_index=0)
    prompt = "\n".join(message["content"] for message in call.messages[1:])
    assert "Are barges slow?" in call.messages[0]["content"]
    assert ("So 9 hours it is." in prompt, "Barges took 9 hours." in prompt) == (True, False)
    moved_on = {**room, "claim": "p002"}
    other = card_call(_debate(state), cast(Any, moved_on), call_index=0)
    assert "Barges took 9 hours." in str(other.messages)


@pytest.mark.parametrize(("phase", "asked"), [("closing", False), ("reply", True)])
def test_extraction_of_closings_asks_for_no_questions_or_challenges(phase: str, asked: bool) -> None:
    config = _extraction_config().model_copy(update={"protocol": "dialogue"})
    said = [{**entry, "phase": phase} for entry in MESSAGES]
    step: Any = {"number": 1, "phase": phase, "round": 1, "is_final": phase == "closing"}
    state = _state(config, cast(Any, said), claim_events=[], step=step)
    _, calls = _drive(extract(node_context(Environment(), state)), _extraction())
    assert calls[0].schema is not None
    assert ("challenges" in calls[0].schema.model_fields) == asked
    assert ("`questions`" in calls[0].messages[0]["content"]) == asked


def test_room_closes_only_at_its_cycle_limit() -> None:
    open_card = _card()
    room, entries = _room()
    assert not is_room_over(_state(entries=entries), room, open_card)
    assert is_room_over(_state(entries=entries), _room(cycle=2)[0], open_card)
    assert ledger_of(_state()).claim_status("p001", is_over=True).status == "unresolved"


def test_room_is_assessed_once_per_cycle() -> None:
    room, entries = _room()
    conceded = stance_event(4, "bob", "concedes", quote="barges are slow")
    state = _state(entries=entries, crux_rooms={"room-01": room}, claim_events=[*EVENTS, conceded])
    assert [each["id"] for each in rooms_to_assess(state)] == ["room-01"]
    update, _ = _drive(reflect(node_context(Environment(), state)), Reply())
    seen = update["crux_rooms"]["room-01"]
    assert (seen["assessed"], seen["closed"]) == (2, True)
    assert not rooms_to_assess(_state(crux_rooms=update["crux_rooms"]))


# Reflections


def _ledger_events(disagreements: int, concessions: int, shifts: int) -> list[Any]:
    """Return events with the given numbers of disputes, concessions and withdrawals."""
    events: list[Any] = []

    def add(key: str, who: str, kind: str) -> None:
        number = len(events)
        event = _event("m000001", kind, "No.", key)
        events.append({**event, "type": "event", "id": f"e{number:03d}", "debater": who, "by": "model"})

    for number in range(disagreements + concessions + shifts):
        key = f"p{number:03d}" if number else "p000"
        if number:
            events.append(
                {
                    "type": "claim",
                    "id": key,
                    "text": f"Statement {number}",
                    "aspect": "overall",
                    "seq": 1,
                }
            )
        if number < disagreements:
            add(key, "ada", "asserts")
            add(key, "bob", "denies")
        else:
            add(key, "ada", "concedes" if number < disagreements + concessions else "withdraws")
    return events


@pytest.mark.parametrize(
    ("disagreements", "concessions", "shifts", "due"),
    [(5, 0, 0, False), (0, 3, 1, True), (0, 0, 3, False), (2, 0, 2, True), (0, 4, 0, True)],
)
def test_a_reflection_is_due_when_the_weighted_events_pass_the_threshold(
    disagreements: int, concessions: int, shifts: int, due: bool
) -> None:
    assert reflection_due(_state(claim_events=_ledger_events(disagreements, concessions, shifts))) is due


@pytest.mark.parametrize(("turn_count", "tokens", "due"), [(2, 9, True), (6, 9, False), (6, 9_000, True)])
def test_last_reflection_is_due_only_if_the_judge_cannot_see_everything(
    turn_count: int, tokens: int, due: bool
) -> None:
    said = [make_entry(1, "ada", "speech", "No.", tokens=tokens)]
    state = _state(entries=said, claim_events=_ledger_events(6, 0, 0), turn_count=turn_count)
    assert reflect_due(node_context(Environment(), state)) is due


def test_reflection_resets_the_counts_and_cites_existing_messages() -> None:
    state = _state(entries=[make_entry(1, "ada", "speech", "No.")], claim_events=_ledger_events(6, 0, 0))
    assert reflect_due(node_context(Environment(), state))
    update, calls = _drive(reflect(node_context(Environment(), state)), Reply())
    assert calls == []
    assert not reflection_due(
        cast(Any, {**state, "claim_events": [*state["claim_events"], *update["claim_events"]]})
    )
    (reflection,) = update["reflections"]
    assert (reflection["kind"], reflection["about"]) == ("escalation", ["ada", "bob"])
    assert reflection["message_ids"] == ["m000001"]
    assert "6" not in reflection["content"]


def test_reflection_by_model_drops_unknown_debaters_and_messages() -> None:
    data = {
        "content": "# A heading\nand more",
        "kind": "pattern",
        "about": ["Ada", "Zoe"],
        "message_ids": ["m000000", "m000099", "x"],
        "importance": 4,
    }
    (reflection,) = reflections_by_model(_debate(_state()), {"reflections": [data]})
    assert reflection["content"] == "A heading and more"
    assert (reflection["about"], reflection["message_ids"]) == (["ada"], ["m000000"])


@pytest.mark.parametrize(
    ("counts", "kind", "about", "content"),
    [
        (
            (2, 0, 0),
            "escalation",
            ["ada", "bob"],
            "Ada and Bob contradict each other on the topic itself; neither has named evidence for it yet",
        ),
        ((1, 2, 0), "convergence", ["ada"], "Ada gave way on one point: “No.”"),
        ((1, 1, 2), "shift", ["ada"], "Ada no longer holds what it held: “No.”"),
    ],
    ids=["dispute", "concession", "withdrawal"],
)
def test_reflection_by_rule_prefers_shifts_and_concessions_to_disputes(
    counts: tuple[int, int, int], kind: str, about: list[str], content: str
) -> None:
    state = _state(claim_events=_ledger_events(*counts))
    (reflection,) = reflections_by_rule(_debate(state))
    assert (reflection["kind"], reflection["about"], reflection["content"]) == (kind, about, content)
    assert reflections_by_rule(_debate(_state(claim_events=[]))) == []


def test_reflection_drops_earlier_ones_that_the_model_contradicts() -> None:
    def insight(number: int, content: str) -> Any:
        fields = {"kind": "pattern", "about": ["ada"], "message_ids": ["m000001"], "round": 1}
        return {"id": f"r{number:04d}", "content": content, "importance": 5, **fields}

    earlier = [insight(1, "Nobody has mentioned money."), insight(2, "Ada repeats herself.")]
    transcript = [make_entry(1, "ada", "speech", "It costs five million.")]
    config = CONFIG.model_copy(update={"blackboard": BlackboardConfig(extraction="llm")})
    state = _state(entries=transcript, claim_events=_ledger_events(6, 0, 0), reflections=earlier)
    state["config"] = config.to_json()
    found = {"reasoning": "r", "reflections": [], "contradicted": ["r0001", "r0099"]}
    update, calls = _drive(reflect(node_context(Environment(), state)), Reply(data=found))
    system = calls[0].messages[0]["content"]
    assert "- r0001: Nobody has mentioned money." in system
    assert update["claim_events"] == [{"type": "reflection_pass", "dropped": ["r0001"]}]
    later: Any = {**state, "claim_events": [*state["claim_events"], *update["claim_events"]]}
    assert [each["id"] for each in current_reflections(later)] == ["r0002"]
    assert reflections_text(later) == "- Ada repeats herself. (noted in round 1)"
    assert "money" not in render_blackboard(later, "", max_tokens=500, count=len, names=config.names())
    items = memory_items(ledger_of(later), {}, earlier, config.names(), len)
    assert [item.id for item in items] == ["r0002"]

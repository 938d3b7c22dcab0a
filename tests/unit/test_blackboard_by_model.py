"""Notes, cards and reflections by a model: what it finds is checked before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from moot.nodes.blackboard.by_model import known_debater
from moot.nodes.blackboard.folding import ledger_of
from moot.nodes.blackboard.reflections import reflection_due, reflections_by_model, reflections_by_rule
from moot.nodes.blackboard.rooms import (
    card_by_model,
    card_by_rule,
    card_events,
    make_room,
    room_closes,
    to_assess,
    with_entries,
)
from moot.nodes.blackboard.standing import stage_of
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.environment import Environment, NodeContext
from moot.nodes.effects import drive_with
from moot.nodes.memory.window import window_message
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.record import record
from moot.nodes.reflect import reflect, reflect_due
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry

NAMES = {"ada": "Ada", "bob": "Bob"}
CONFIG = DebateConfig.model_validate(
    {"model": "m", "debaters": [{"name": "Ada"}, {"name": "Bob", "flip_conditions": ["a dry winter"]}]}
)
LISTS = (
    "propositions",
    "events",
    "challenges",
    "questions",
    "answers",
    "evidence",
    "gaps",
    "same",
    "retractions",
)


def _event(message_id: str, kind: str, quote: str, proposition: str = "n1", **fields: Any) -> dict[str, Any]:
    base = {"condition": "", "ground": False, "confidence": 0.9, "message_id": message_id, "quote": quote}
    return {**base, "kind": kind, "proposition": proposition, **fields}


def _minutes(**lists: Any) -> Reply:
    return Reply(data={"reasoning": "read", **{name: [] for name in LISTS}, **lists})


def _looks(*kinds: str) -> Reply:
    looks = [{"number": n, "reasoning": "", "kind": kind} for n, kind in enumerate(kinds, 1)]
    return Reply(data={"looks": looks})


SAID = (
    make_entry(1, "ada", "speech", "Barges are slow, Bob.", tokens=6),
    make_entry(2, "bob", "speech", "I do not think that barges are slow.", tokens=9),
)
OPENED = [{"ref": "n1", "text": "Barges are slow"}]
DISPUTE = [
    _event("m000001", "asserts", "Barges are slow"),
    _event("m000002", "denies", "I do not think that"),
]
NOTED: list[Any] = [
    {"note": "proposition", "id": "p001", "text": "Barges are slow", "aspect": "overall", "seq": 1},
    {**_event("m000001", "asserts", "Barges are slow", "p001"), "id": "e001", "debater": "ada"},
    {**_event("m000002", "denies", "I do not", "p001"), "id": "e002", "debater": "bob"},
]
NOTED[1:] = [{**note, "note": "event", "by": "model"} for note in NOTED[1:]]


def test_debaters_are_known_by_id_or_name_and_nobody_else_is() -> None:
    assert [known_debater(name, NAMES) for name in ("ada", " BOB ", "Zoe", "")] == ["ada", "bob", "", ""]


@pytest.mark.parametrize(
    ("protocol", "extraction", "by_model"),
    [
        ("dialogue", "auto", True),
        ("council", "auto", False),
        ("round-robin", "auto", False),
        ("round-robin", "llm", True),
        ("dialogue", "rule-based", False),
    ],
)
def test_who_reads_is_configured(protocol: str, extraction: str, by_model: bool) -> None:
    config = DebateConfig.model_validate(
        {"protocol": protocol, "model": "m", "blackboard": {"extraction": extraction}}
    )
    assert protocol_named(protocol).reads_by_model(config) is by_model


def _state(config: DebateConfig = CONFIG, entries: Sequence[Entry] = (), **fields: Any) -> ConversationState:
    base = {
        "topic": "Barges?",
        "config": config.to_json(),
        "full_transcript": [make_entry(0, "user", "topic", "Barges?"), *entries],
        "messages": [window_message(entry) for entry in entries],
        "step": {"no": 1, "phase": "argument", "round": 1},
        "round": 1,
        "minutes": NOTED,
    }
    return cast(ConversationState, {**base, **fields})


def _drive(body: Any, *replies: Reply) -> tuple[dict[str, Any], list[ModelCall]]:
    """Answer each batch with the next reply, the last one for all that follow."""
    calls: list[ModelCall] = []
    left = list(replies)

    def outcomes(effect: Any) -> Any:
        if not isinstance(effect, list):
            return None
        calls.extend(effect)
        reply = left.pop(0) if len(left) > 1 else left[0]
        return [reply for _ in effect]

    return drive_with(body, outcomes), calls


def _llm(**fields: Any) -> DebateConfig:
    board = CONFIG.blackboard.model_copy(update={"extraction": "llm", **fields})
    return CONFIG.model_copy(update={"blackboard": board})


def _read(*replies: Reply, **fields: Any) -> tuple[dict[str, Any], list[ModelCall]]:
    state = _state(_llm(**fields), SAID, minutes=[], turn_count=6)
    update, calls = _drive(record(state, NodeContext(Environment())), *replies)
    return {**state, **update}, calls


def test_a_step_is_read_in_one_call_and_by_rule_where_that_fails() -> None:
    said = [
        make_entry(1, "ada", "speech", "I believe that barges should go."),
        make_entry(2, "bob", "speech", "I am for barges."),
    ]
    state = _state(_llm(), said, minutes=[], turn_count=6)
    update, calls = _drive(record(state, NodeContext(Environment())), Reply(error="down"))
    assert len(calls) == 1
    stance = ledger_of({**state, **update}).stance("bob")
    assert stance
    assert (stance["quote"], stance["by"]) == ("I am for barges.", "rule")
    assert "down" in update["errors"][0]["error"]


def test_what_would_change_a_standing_is_looked_at_again_in_one_call() -> None:
    found = _minutes(propositions=OPENED, events=DISPUTE)
    state, calls = _read(found, _looks("asserts", "denies"))
    assert [call.schema.__name__ for call in calls if call.schema] == ["StepMinutes", "SecondLook"]
    assert ledger_of(state).status("p001") == "disputed"


def test_where_the_second_look_differs_nothing_is_noted() -> None:
    found = _minutes(propositions=OPENED, events=DISPUTE)
    state, _ = _read(found, _looks("asserts", "open"))
    ledger = ledger_of(state)
    assert ledger.status("p001") == "open"
    assert ledger.dropped == {"second look": 1}


def test_a_second_look_that_is_not_wanted_or_fails_changes_nothing() -> None:
    found = _minutes(propositions=OPENED, events=DISPUTE)
    state, calls = _read(found, second_look=False)
    assert len(calls) == 1
    assert ledger_of(state).status("p001") == "disputed"
    assert ledger_of(_read(found, Reply(error="down"))[0]).status("p001") == "disputed"


def test_an_answer_with_an_invented_or_inverted_quotation_is_caught() -> None:
    invented = [DISPUTE[0], _event("m000002", "denies", "barges are fast, Ada")]
    state, _ = _read(_minutes(propositions=OPENED, events=invented), _looks("asserts"))
    assert (ledger_of(state).status("p001"), dict(ledger_of(state).dropped)) == ("open", {"not said": 1})
    inverted = [DISPUTE[0], _event("m000002", "asserts", "I do not think that")]
    state, _ = _read(_minutes(propositions=OPENED, events=inverted), _looks("denies", "denies"))
    assert ledger_of(state).status("p001") == "open"


def test_the_configured_confidence_decides_what_is_noted() -> None:
    unsure = [DISPUTE[0], _event("m000002", "denies", "I do not think that", confidence=0.45)]
    found = _minutes(propositions=OPENED, events=unsure)
    assert ledger_of(_read(found)[0]).status("p001") == "open"
    assert (
        ledger_of(_read(found, _looks("asserts", "denies"), confidence=0.4)[0]).status("p001") == "disputed"
    )


def test_every_id_that_may_be_used_is_enumerated_and_the_ledger_is_shown_with_ids() -> None:
    state = _state(_llm(), [*SAID, make_entry(3, "ada", "speech", "Slow.")], turn_count=6)
    read_to: Any = {"note": "reading", "through": 2, "by": "model", "dropped": {}}
    state["minutes"] = [*NOTED, read_to]
    _, calls = _drive(record(state, NodeContext(Environment())), _minutes())
    schema = str(calls[0].schema.model_json_schema()) if calls[0].schema else ""
    assert "'m000003'" in schema
    assert "'m000001'" not in schema
    assert "'p001'" in schema
    shown = calls[0].messages[0]["content"]
    assert "- p001: Barges are slow | ada asserts (e001, m000001); bob denies (e002, m000002)" in shown


@pytest.mark.parametrize(
    ("protocol", "fields", "extraction", "reads"),
    [
        ("round-robin", {"turn_count": 2}, "llm", False),
        ("round-robin", {"turn_count": 6}, "llm", True),
        ("round-robin", {"turn_count": 2}, "rule-based", False),
        ("round-robin", {"turn_count": 6}, "rule-based", True),
        ("dialogue", {"turn_count": 2}, "auto", True),
        ("council", {"step": {"no": 1, "phase": "propose", "round": 1}}, "llm", False),
        ("council", {"step": {"no": 1, "phase": "refine", "round": 1}}, "llm", True),
        ("council", {"step": {"no": 1, "phase": "refine", "round": 1}}, "auto", False),
    ],
)
def test_minutes_are_taken_where_somebody_reads_them(
    protocol: str, fields: dict[str, Any], extraction: str, reads: bool
) -> None:
    config = _llm(extraction=extraction).model_copy(update={"protocol": protocol, "turns": 6})
    state = _state(config, SAID, minutes=[], **fields)
    update, _ = _drive(record(state, NodeContext(Environment())), _minutes())
    assert ("minutes" in update) is reads


# Crux cards


def _room(cycle: int = 1, last: str = "I concede that, Ada: barges are slow.") -> Any:
    said = [
        make_entry(3, "ada", "speech", "Barges took 9 hours.", room="room-01"),
        make_entry(4, "bob", "speech", last, room="room-01"),
    ]
    room = make_room("room-01", "p001", ("ada", "bob"), ("m000001",), 1)
    room = with_entries({"room-01": room}, said)["room-01"]
    return {**room, "stage": "steelman", "cycle": cycle}, [*SAID, *said]


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
    return card_by_model(_state(entries=entries), CONFIG, room, {**data, **fields})


def test_opposite_answers_are_no_resolution_whatever_the_model_says() -> None:
    assert not _card()["resolved"]


def test_a_card_has_the_two_who_were_in_the_room_and_no_one_else() -> None:
    assert list(_card()["sides"]) == ["ada", "bob"]
    assert list(_card(sides=[])["sides"]) == ["ada", "bob"]
    assert _card()["message_ids"] == ["m000001", "m000003", "m000004"]


def test_a_card_becomes_what_each_now_holds_in_its_own_words_from_the_room() -> None:
    room, entries = _room()
    bob = {**SIDE, "debater": "Bob", "now": "concedes", "message_id": "m000004", "quote": "barges are slow"}
    foreign = {**SIDE, "debater": "Bob", "now": "denies", "message_id": "m000003"}
    state = _state(entries=entries)
    notes = card_events(state, CONFIG, room, {"sides": [SIDE, bob, foreign]})
    assert [note["kind"] for note in notes if note["note"] == "event"] == ["asserts", "concedes"]
    assert ledger_of({**state, "minutes": [*NOTED, *notes]}).status("p001") == "settled"


def test_by_rule_a_point_granted_beside_the_claim_resolves_no_room() -> None:
    room, entries = _room(last="I accept that the crews were well paid, but I have not moved at all.")
    assert not card_by_rule(_state(entries=entries), CONFIG, room)["resolved"]


def test_by_rule_a_concession_in_the_last_words_resolves_a_room() -> None:
    room, entries = _room()
    card = card_by_rule(_state(entries=entries), CONFIG, room)
    assert {who: side["answer"] for who, side in card["sides"].items()} == {"ada": "yes", "bob": "nuanced"}
    assert card["sides"]["bob"]["falsifier"] == "a dry winter"
    assert card["resolved"]
    assert stage_of(ledger_of(_state()), "p001", [card]) == "resolved"


def test_a_room_closes_at_its_cap_and_not_before() -> None:
    open_card = _card()
    room, entries = _room()
    assert not room_closes(_state(entries=entries), room, open_card)
    assert room_closes(_state(entries=entries), _room(cycle=2)[0], open_card)
    assert stage_of(ledger_of(_state()), "p001", [open_card], over=True) == "abandoned"


def test_a_room_is_looked_at_once_a_cycle() -> None:
    room, entries = _room()
    state = _state(entries=entries, crux_rooms={"room-01": room})
    assert [each["id"] for each in to_assess(state)] == ["room-01"]
    update, _ = _drive(reflect(state, NodeContext(Environment())), Reply())
    seen = update["crux_rooms"]["room-01"]
    assert (seen["assessed"], seen["closed"]) == (1, True)
    assert not to_assess(_state(crux_rooms=update["crux_rooms"]))


# Reflections


def _happened(disagreements: int, concessions: int, shifts: int) -> list[Any]:
    """Return notes of so many disputes, concessions and changes of mind."""
    notes: list[Any] = []

    def add(key: str, who: str, kind: str) -> None:
        number = len(notes)
        event = _event("m000001", kind, "No.", key)
        notes.append({**event, "note": "event", "id": f"e{number:03d}", "debater": who, "by": "model"})

    for number in range(disagreements + concessions + shifts):
        key = f"p{number:03d}" if number else "p000"
        if number:
            notes.append(
                {
                    "note": "proposition",
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
    return notes


@pytest.mark.parametrize(
    ("disagreements", "concessions", "shifts", "due"),
    [(5, 0, 0, False), (0, 3, 1, True), (0, 0, 3, False), (2, 0, 2, True), (0, 4, 0, True)],
)
def test_a_reflection_is_due_when_the_weighted_events_pass_the_threshold(
    disagreements: int, concessions: int, shifts: int, due: bool
) -> None:
    assert reflection_due(_state(minutes=_happened(disagreements, concessions, shifts))) is due


def test_a_reflection_sets_the_counts_back_and_cites_only_what_was_said() -> None:
    state = _state(entries=[make_entry(1, "ada", "speech", "No.")], minutes=_happened(6, 0, 0))
    assert reflect_due(state)
    update, calls = _drive(reflect(state, NodeContext(Environment())), Reply())
    assert calls == []
    assert not reflection_due(cast(Any, {**state, "minutes": [*state["minutes"], *update["minutes"]]}))
    (reflection,) = update["reflections"]
    assert (reflection["kind"], reflection["about"]) == ("escalation", ["ada", "bob"])
    assert reflection["message_ids"] == ["m000001"]
    assert "6" not in reflection["content"]


def test_a_model_s_reflection_loses_people_and_messages_that_do_not_exist() -> None:
    found = {
        "content": "# A heading\nand more",
        "kind": "pattern",
        "about": ["Ada", "Zoe"],
        "message_ids": ["m000000", "m000099", "x"],
        "importance": 4,
    }
    (reflection,) = reflections_by_model(_state(), CONFIG, {"reflections": [found]})
    assert reflection["content"] == "A heading and more"
    assert (reflection["about"], reflection["message_ids"]) == (["ada"], ["m000000"])


def test_reflections_by_rule_are_the_same_for_the_same_state() -> None:
    state = _state(minutes=_happened(0, 0, 4))
    assert reflections_by_rule(state, CONFIG) == reflections_by_rule(state, CONFIG)

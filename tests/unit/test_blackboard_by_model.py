"""Notes, cards and reflections by a model: what it finds is checked before it counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from moot.nodes.blackboard.bounds import TEXT
from moot.nodes.blackboard.by_model import known_debater, notes_by_model
from moot.nodes.blackboard.cards import card_by_model, card_by_rule, room_closes, settled
from moot.nodes.blackboard.notes import Accord
from moot.nodes.blackboard.reflections import reflection_due, reflections_by_model, reflections_by_rule
from moot.nodes.blackboard.rooms import make_room, to_assess, with_entries
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.environment import Environment, NodeContext
from moot.nodes.effects import drive_with
from moot.nodes.record import reads_by_model, record
from moot.nodes.reflect import reflect, reflect_due
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry

NAMES = {"ada": "Ada", "bob": "Bob"}
CONFIG = DebateConfig.model_validate(
    {"debaters": [{"name": "Ada"}, {"name": "Bob", "flip_conditions": ["a dry winter"]}]}
)
ENTRY = make_entry(3, "ada", "speech", "Bob, barges are slow.")
CLAIM: Any = {
    "id": "c1",
    "claim": "Barges are slow",
    "between": ["ada", "bob"],
    "status": "active",
    "round": 1,
    "message_ids": ["m000001"],
    "aspect": "overall",
    "confidence": 0.8,
    "specific": True,
    "touched": 1,
    "room": "",
    "resolution": "",
    "card": "",
}


def _finding(**fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "message_id": "m000003",
        "speaker": "ada",
        "position": "Barges should go",
        "key_argument": "They are slow",
        "evidence": [],
        "concessions": [],
        "agreements": [],
        "disagreements": [],
        "changed_mind": False,
        "answered": [],
    }
    return {"entries": [{**base, **fields}]}


def _notes(**fields: Any) -> Any:
    challenged = ["Barges are clean [m000002]", "Trains are loud [m000001]"]
    return notes_by_model(_finding(**fields), ENTRY, NAMES, aspect="freight", challenged=challenged)


def _dispute(to: str) -> dict[str, Any]:
    claim = "Barges take\n# Now\n9 hours"
    return {"with_debater": to, "claim": claim, "strength": "mild", "specific": True, "confidence": 0.7}


def test_a_finding_on_another_message_is_not_taken() -> None:
    assert _notes(message_id="m000009") is None


def test_debaters_are_known_by_id_or_name_and_nobody_else_is() -> None:
    assert [known_debater(name, NAMES) for name in ("ada", " BOB ", "Zoe", "")] == ["ada", "bob", "", ""]


def test_a_dispute_with_oneself_or_with_nobody_is_dropped_and_its_text_is_one_inert_line() -> None:
    notes = _notes(disagreements=[_dispute("Ada"), _dispute("Zoe"), _dispute("Bob")])
    (opposition,) = notes.oppositions
    assert (opposition.to, opposition.claim) == ("bob", "Barges take Now 9 hours")


def test_answered_challenges_are_those_that_stand_on_the_ledger() -> None:
    assert _notes(answered=["[m000002]", "m000777"]).answered == ("Barges are clean [m000002]",)


def test_a_changed_mind_is_a_shift_to_the_position_stated() -> None:
    assert _notes(changed_mind=True).shift == "Barges should go"
    assert _notes().shift == ""


def test_a_changed_mind_without_a_position_is_a_shift_to_what_was_argued_or_said() -> None:
    assert _notes(changed_mind=True, position=" ").shift == "They are slow"
    assert _notes(changed_mind=True, position="", key_argument="").shift == "Bob, barges are slow."


def test_long_findings_are_clipped() -> None:
    notes = _notes(position="x" * 5000, concessions=[{"with_debater": "bob", "on": "y" * 5000}])
    assert len(notes.position) <= TEXT
    assert notes.concessions == (Accord("bob", "y" * (TEXT - 1) + "…"),)


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
    config = DebateConfig.model_validate({"protocol": protocol, "blackboard": {"extraction": extraction}})
    assert reads_by_model(config) is by_model


def _state(config: DebateConfig = CONFIG, entries: Sequence[Entry] = (), **fields: Any) -> ConversationState:
    base = {
        "topic": "Barges?",
        "config": config.to_json(),
        "full_transcript": [make_entry(0, "user", "topic", "Barges?"), *entries],
        "step": {"no": 1, "phase": "argument", "round": 1},
        "round": 1,
        "claims": {"c1": CLAIM},
    }
    return cast(ConversationState, {**base, **fields})


def _drive(body: Any, reply: Reply) -> tuple[dict[str, Any], list[ModelCall]]:
    calls: list[ModelCall] = []

    def outcomes(effect: Any) -> Any:
        if not isinstance(effect, list):
            return None
        calls.extend(effect)
        return [reply for _ in effect]

    return drive_with(body, outcomes), calls


def test_a_step_is_read_in_one_call_and_by_rule_where_that_fails() -> None:
    config = CONFIG.model_copy(
        update={"blackboard": CONFIG.blackboard.model_copy(update={"extraction": "llm"})}
    )
    said = [
        make_entry(1, "ada", "speech", "I believe that barges should go."),
        make_entry(2, "bob", "speech", "I believe that barges should stay."),
    ]
    state = _state(config, said)
    update, calls = _drive(record(state, NodeContext(Environment())), Reply(error="down"))
    assert len(calls) == 1
    assert update["ledger"]["bob"]["stance"] == "I believe that barges should stay."
    assert "down" in update["errors"][0]["error"]


# Crux cards


def _room(cycle: int = 1) -> Any:
    said = [
        make_entry(2, "ada", "speech", "Barges took 9 hours.", room="room-01"),
        make_entry(3, "bob", "speech", "I concede that, Ada: barges are slow.", room="room-01"),
    ]
    room = with_entries({"room-01": make_room("room-01", CLAIM, 1)}, said)["room-01"]
    started = make_entry(1, "ada", "speech", "Barges are slow, Bob.")
    return {**room, "stage": "steelman", "cycle": cycle}, [started, *said]


def _card(**fields: Any) -> Any:
    room, entries = _room()
    side = {"debater": "Ada", "reasoning": "hours", "answer": "yes", "falsifier": "a fast barge"}
    data = {
        "reasoning": "",
        "question": "Are barges slow?",
        "sides": [side, {**side, "debater": "Zoe"}, {**side, "debater": "bob", "answer": "no"}],
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
    assert _card()["message_ids"] == ["m000001", "m000002", "m000003"]


def test_by_rule_a_concession_in_the_last_words_resolves_a_room() -> None:
    room, entries = _room()
    card = card_by_rule(_state(entries=entries), CONFIG, room)
    assert {who: side["answer"] for who, side in card["sides"].items()} == {"ada": "yes", "bob": "nuanced"}
    assert card["sides"]["bob"]["falsifier"] == "a dry winter"
    assert card["resolved"]
    assert settled(CLAIM, card)["status"] == "resolved"


def test_a_room_closes_at_its_cap_and_not_before() -> None:
    open_card = _card()
    room, entries = _room()
    assert not room_closes(_state(entries=entries), CONFIG, room, open_card)
    assert room_closes(_state(entries=entries), CONFIG, _room(cycle=2)[0], open_card)
    assert settled(CLAIM, open_card)["status"] == "abandoned"


def test_a_room_is_looked_at_once_a_cycle() -> None:
    room, entries = _room()
    state = _state(entries=entries, crux_rooms={"room-01": room})
    assert [each["id"] for each in to_assess(state)] == ["room-01"]
    update, _ = _drive(reflect(state, NodeContext(Environment())), Reply())
    seen = update["crux_rooms"]["room-01"]
    assert (seen["assessed"], seen["closed"]) == (1, True)
    assert not to_assess(_state(crux_rooms=update["crux_rooms"]))


# Reflections


@pytest.mark.parametrize(
    ("disagreements", "concessions", "shifts", "due"),
    [(5, 0, 0, False), (0, 3, 1, True), (0, 0, 3, False), (2, 0, 2, True), (0, 4, 0, True)],
)
def test_a_reflection_is_due_when_the_weighted_events_pass_the_threshold(
    disagreements: int, concessions: int, shifts: int, due: bool
) -> None:
    board = {"disagreements": disagreements, "concessions": concessions, "shifts": shifts}
    assert reflection_due(_state(board_progress=board)) is due


def test_a_reflection_sets_the_counts_back_and_cites_only_what_was_said() -> None:
    board = {"through": 1, "disagreements": 6, "concessions": 0, "shifts": 0, "message_ids": ["m000001"]}
    said = [make_entry(1, "ada", "speech", "No.")]
    state = _state(entries=said, board_progress=board)
    assert reflect_due(state)
    update, calls = _drive(reflect(state, NodeContext(Environment())), Reply())
    assert calls == []
    assert update["board_progress"]["disagreements"] == 0
    (reflection,) = update["reflections"]
    assert (reflection["kind"], reflection["about"]) == ("escalation", ["ada"])


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
    state = _state(board_progress={"shifts": 4, "message_ids": ["m000000"]})
    assert reflections_by_rule(state, CONFIG) == reflections_by_rule(state, CONFIG)

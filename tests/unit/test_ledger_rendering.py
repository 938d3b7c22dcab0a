"""The ledger: statuses and positions computed from claim events."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.claims.crux_cards import findings_text, is_answered
from moot.claims.ledger_from_events import empty_ledger, extend_ledger, fold_events
from moot.state.claim_events import MAIN_QUESTION, ClaimEvent, CruxCard, ReflectionPass
from moot.state.reducers import append
from tests.support.ledger_state import (
    FERRIES,
    LEVY,
    NAMES,
    Board,
    event,
    plain_event,
    retraction_event,
    topic_event,
)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([("ada", "asserts")], "open"),
        ([("ada", "asserts"), ("bob", "asserts")], "agreed"),
        ([("ada", "asserts"), ("bob", "denies")], "disputed"),
        ([("ada", "conditional"), ("bob", "denies")], "disputed"),
        ([("ada", "conditional"), ("bob", "asserts")], "conditional"),
        ([("ada", "asserts"), ("bob", "denies"), ("bob", "concedes")], "settled"),
        ([("ada", "asserts"), ("bob", "denies"), ("ada", "withdraws")], "settled"),
        ([("ada", "asserts"), ("bob", "concedes")], "agreed"),
        ([("ada", "asserts"), ("ada", "withdraws")], "withdrawn"),
        ([("ada", "asserts"), ("bob", "denies"), ("cyd", "denies"), ("bob", "concedes")], "disputed"),
        ([("ada", "asserts"), ("bob", "denies"), ("bob", "concedes"), ("bob", "denies")], "disputed"),
        ([("bob", "concedes")], "open"),
        ([("ada", "unsure")], "open"),
        ([("ada", "asserts"), ("bob", "denies"), ("bob", "conditional")], "conditional"),
        ([("ada", "asserts"), ("bob", "denies"), ("bob", "unsure")], "open"),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(f"{who}-{kind}" for who, kind in each),
)
def test_a_proposition_stands_as_those_who_spoke_of_it_last_left_it(said: Any, status: str) -> None:
    events = [plain_event(number, who, kind) for number, (who, kind) in enumerate(said, 1)]
    assert fold_events([*topic_event("p001"), *events]).status("p001") == status


def test_a_point_that_was_pressed_and_then_granted_is_settled() -> None:
    place = {"debater": "ada", "message_id": "m000001", "quote": "…", "by": "model"}
    pressed: Any = {**place, "type": "challenge", "id": "c001", "to": "bob", "claim": "p001"}
    notes = [
        *topic_event("p001"),
        plain_event(1, "ada", "asserts"),
        pressed,
        plain_event(2, "bob", "concedes"),
    ]
    assert fold_events(notes).status("p001") == "settled"


def test_what_is_retracted_is_as_if_it_had_not_been_said() -> None:
    notes = [
        *topic_event("p001"),
        plain_event(1, "ada", "asserts"),
        plain_event(2, "bob", "denies"),
        retraction_event("e002", "model"),
    ]
    assert fold_events(notes).status("p001") == "open"


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(sorted(NAMES)),
        st.sampled_from(["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"]),
        st.sampled_from(["p001", "p002"]),
        st.sampled_from(["model", "person"]),
    ),
    max_size=8,
)


def _notes(said: Any) -> list[ClaimEvent]:
    return [plain_event(n, who, kind, key, by=by) for n, (who, kind, key, by) in enumerate(said, 1)]


def _standing(notes: Sequence[ClaimEvent]) -> Any:
    ledger = fold_events([*topic_event("p001", "p002"), *notes])
    changes = [change.event["id"] for change in ledger.changes]
    return [{key: (ledger.status(key), ledger.stances(key)) for key in ("p001", "p002")}, changes]


@settings(max_examples=60)
@given(EVENTS, st.data())
def test_when_a_note_was_retracted_makes_no_difference(said: Any, data: Any) -> None:
    notes = _notes(said)
    gone = [retraction_event(f"e{data.draw(st.integers(1, 8)):03d}", "model") for _ in range(2)]
    place = data.draw(st.integers(0, len(notes)))
    assert _standing([*notes[:place], *gone, *notes[place:]]) == _standing([*notes, *gone[::-1]])


@settings(max_examples=60)
@given(EVENTS)
def test_notes_taken_in_any_order_stand_in_the_order_in_which_it_was_said(said: Any) -> None:
    assert _standing(_notes(said)[::-1]) == _standing(_notes(said))


@settings(max_examples=60)
@given(EVENTS)
def test_a_dispute_put_the_other_way_round_is_the_same_dispute(said: Any) -> None:
    flip = {"asserts": "denies", "denies": "asserts"}
    same: ClaimEvent = {"type": "same", "one": "p001", "other": "p002", "opposite": True, "by": "model"}
    straight: list[Any] = [
        {**each, "claim": "p001", "kind": flip.get(each["kind"], each["kind"]), "leans": "no"}
        if each["claim"] == "p002"
        else each
        for each in cast(list[Any], _notes(said))
    ]
    merged = fold_events([*topic_event("p001", "p002"), *_notes(said), same])
    plainly = fold_events([*topic_event("p001"), *straight])
    assert list(merged.claims) == [MAIN_QUESTION, "p001"]
    assert merged.status("p001") == plainly.status("p001")
    assert merged.pairs("p001") == plainly.pairs("p001")


def test_a_negation_s_negation_is_the_statement_itself() -> None:
    same: list[ClaimEvent] = [
        {"type": "same", "one": one, "other": other, "opposite": True, "by": "model"}
        for one, other in (("p001", "p002"), ("p002", "p003"))
    ]
    events = [plain_event(1, "ada", "asserts", "p001"), plain_event(2, "bob", "asserts", "p003")]
    assert fold_events([*topic_event("p001", "p002", "p003"), *events, *same]).status("p001") == "agreed"


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_on_one_message_a_person_outranks_a_model(order: Any) -> None:
    noted = [
        plain_event(1, "ada", "denies", by="model"),
        plain_event(1, "ada", "conditional", by="person", id="e002"),
    ]
    stance = fold_events([*topic_event("p001"), *(noted[place] for place in order)]).stance("ada", "p001")
    assert stance
    assert stance["kind"] == "conditional"


def test_what_a_person_took_back_no_later_reading_brings_back() -> None:
    notes = [
        *topic_event("p001"),
        plain_event(1, "ada", "denies"),
        retraction_event("e001", "person"),
        plain_event(1, "ada", "denies", id="e002"),
    ]
    assert fold_events(notes).stance("ada", "p001") is None
    assert fold_events([*notes, plain_event(2, "ada", "asserts", id="e003")]).stance("ada", "p001")


def test_a_reader_cannot_take_back_what_a_person_noted() -> None:
    notes = [
        *topic_event("p001"),
        plain_event(1, "ada", "denies", by="person"),
        retraction_event("e001", "model"),
    ]
    assert fold_events(notes).stance("ada", "p001")


def test_restating_is_no_change_of_mind_and_crossing_over_is_one() -> None:
    said = [
        ("ada", "asserts"),
        ("ada", "asserts"),
        ("ada", "conditional"),
        ("ada", "denies"),
        ("ada", "denies"),
    ]
    events = [plain_event(number, who, kind) for number, (who, kind) in enumerate(said, 1)]  # type: ignore[arg-type]  # kinds
    changes = fold_events([*topic_event("p001"), *events]).changes
    told = [(change.event["id"], change.before and change.before["id"]) for change in changes]
    assert told == [("e003", "e002"), ("e004", "e003")]


def test_to_concede_again_is_to_say_the_same_again() -> None:
    board = Board()
    for who, kind in (("ada", "asserts"), ("bob", "denies"), ("ada", "concedes"), ("ada", "concedes")):
        board.note(who, kind, LEVY)  # type: ignore[arg-type]  # kinds of events
    assert [board.ledger.sign(who, "p001") for who in ("ada", "bob")] == [-1, -1]
    assert len(board.ledger.changes) == 1
    assert len(board.ledger.concessions("ada")) == 2
    assert board.prompt_section("").count(f"- Ada: not true: {LEVY}") == 1


def test_a_change_of_mind_that_is_told_again_is_one_and_a_yes_on_a_condition_is_one_from_a_no() -> None:
    board = Board()
    for who, kind in (
        ("ada", "asserts"),
        ("ada", "withdraws"),
        ("ada", "withdraws"),
        ("bob", "denies"),
        ("bob", "conditional"),
        ("cyd", "denies"),
        ("cyd", "concedes"),
        ("bob", "concedes"),
        ("cyd", "withdraws"),
    ):
        board.note(who, kind, LEVY)  # type: ignore[arg-type]  # kinds of events
    changes = [(change.event["debater"], change.event["kind"]) for change in board.ledger.changes]
    assert changes == [("ada", "withdraws"), ("bob", "conditional"), ("cyd", "concedes")]


def test_no_number_of_a_note_is_given_twice_after_one_was_dropped() -> None:
    board = Board()
    for _ in range(3):
        board.note("ada", "asserts", FERRIES)
    board.state["claim_events"] = [note for note in board.state["claim_events"] if note.get("id") != "e002"]
    board.note("bob", "denies", FERRIES)
    assert [note["id"] for note in board.state["claim_events"] if note["type"] == "event"] == [
        "e001",
        "e003",
        "e004",
    ]


def test_a_concession_is_core_where_the_stance_on_the_motion_rested_on_it() -> None:
    events = [
        plain_event(1, "ada", "asserts", "p001", ground=True),
        plain_event(2, "ada", "asserts", "p002"),
        plain_event(3, "ada", "concedes", "p001"),
        plain_event(4, "ada", "concedes", "p002"),
        plain_event(5, "ada", "concedes", MAIN_QUESTION),
    ]
    ledger = fold_events([*topic_event("p001", "p002"), *events])
    assert [ledger.is_core(each) for each in ledger.concessions()] == [True, False, True]


def test_a_side_concession_leaves_the_motion_and_every_other_dispute_open() -> None:
    events = [
        plain_event(1, "ada", "asserts", MAIN_QUESTION),
        plain_event(2, "bob", "denies", MAIN_QUESTION),
        plain_event(3, "ada", "asserts", "p001"),
        plain_event(4, "bob", "concedes", "p001"),
    ]
    ledger = fold_events([*topic_event("p001"), *events])
    assert (ledger.status(MAIN_QUESTION), ledger.status("p001")) == ("disputed", "agreed")


def test_agreement_and_difference_follow_from_stances_for_any_number_of_debaters() -> None:
    events = [
        plain_event(1, "ada", "asserts"),
        plain_event(2, "bob", "denies"),
        plain_event(3, "cyd", "asserts"),
        plain_event(4, "bob", "asserts", "p002"),
        plain_event(5, "cyd", "asserts", "p002"),
    ]
    ledger = fold_events([*topic_event("p001", "p002"), *events])
    assert ledger.common_ground("ada", "bob") == ([], ["p001"], [])
    assert ledger.common_ground("ada", "cyd") == (["p001"], [], [])
    assert ledger.common_ground("bob", "cyd") == (["p002"], ["p001"], [])
    assert ledger.pairs("p001") == [("ada", "bob"), ("cyd", "bob")]


def card(*ids: str, resolved: bool = True) -> CruxCard:
    return {
        "id": "card",
        "question": "?",
        "claim": "p001",
        "sides": {who: {"answer": "nuanced", "reasoning": "", "falsifier": ""} for who in ("ada", "bob")},
        "type": "claim",
        "diagnosis": "",
        "resolved": resolved,
        "resolution": "",
        "message_ids": list(ids),
        "round": 1,
    }


def test_nothing_is_final_but_the_end() -> None:
    notes = [*topic_event("p001"), plain_event(1, "ada", "asserts"), plain_event(2, "bob", "denies")]
    before, after = fold_events(notes), fold_events([*notes, plain_event(9, "bob", "denies", id="e009")])
    assert before.claim_status("p001").label == "disputed"
    assert before.claim_status("p001", in_room=True).label == "disputed, in crux room"
    assert is_answered(before, "p001", [card("m000005")])
    assert not is_answered(after, "p001", [card("m000005")])
    assert not is_answered(before, "p001", [card("m000005", resolved=False)])
    assert after.claim_status("p001", is_over=True).label == "unresolved"
    conceded = fold_events([*notes, plain_event(9, "bob", "concedes", id="e009")])
    assert conceded.claim_status("p001", is_over=True).label == "settled: yes"


def test_what_most_rests_on_comes_first_and_age_makes_nothing_fall_off() -> None:
    keys = [f"p{number:03d}" for number in range(1, 60)]
    events: list[ClaimEvent] = [
        plain_event(number, "ada", "asserts", key) for number, key in enumerate(keys, 1)
    ]
    events += [
        plain_event(70, "bob", "denies", "p002"),
        plain_event(71, "cyd", "asserts", "p003", ground=True),
    ]
    order = fold_events([*topic_event(*keys), *events]).by_salience
    assert order[:3] == [MAIN_QUESTION, "p002", "p003"]
    assert set(order) == {MAIN_QUESTION, *keys}


@given(EVENTS, EVENTS)
def test_notes_fold_the_same_in_any_batches(first: Any, second: Any) -> None:
    notes = _notes(first), _notes(second)
    assert append(append([], [notes[0]]), [notes[1]]) == append([], list(notes))


def test_a_no_on_a_condition_disputes_agrees_with_nobody_and_turned_round_is_a_yes_on_it() -> None:
    unless = plain_event(1, "ada", "denies", condition="the levy is not repaid")
    notes = [
        *topic_event("p001", "p002"),
        unless,
        plain_event(2, "bob", "asserts"),
        plain_event(3, "cyd", "denies"),
    ]
    ledger = fold_events(notes)
    assert ledger.timeline("p001").sides == [["bob"], ["ada", "cyd"]]
    both = fold_events([*topic_event("p001"), unless, plain_event(2, "cyd", "denies")])
    assert both.status("p001") == "conditional"
    mirrored: ClaimEvent = {"type": "same", "one": "p002", "other": "p001", "opposite": True, "by": "model"}
    turned = plain_event(4, "ada", "denies", "p002", condition="storms are rare")
    stance = fold_events([*notes, turned, mirrored]).stance("ada", "p001")
    assert stance is not None
    assert (stance["kind"], stance["condition"]) == ("conditional", "storms are rare")
    board = Board()
    entry = board.entry("ada", "No, unless they are repaid.")
    said = event(entry, "denies", LEVY, quote="No, unless they are repaid", condition="they are not repaid")
    board.take([entry], "model", {"claims": [{"ref": "n1", "text": LEVY}], "events": [said]})
    assert "no, on a condition: they are not repaid" in board.prompt_section("cyd", answering=["ada"])


def test_what_somebody_admits_not_to_know_is_told_to_everybody_and_is_no_evidence() -> None:
    board = Board()
    entry = board.entry("bob", "Nobody has counted the night crossings, neither have we.")
    gap = {"message_id": entry["id"], "quote": "Nobody has counted the night crossings", "claim": ""}
    board.take([entry], "model", {"gaps": [gap]})
    heading = "What debaters say they do not know"
    told = f"{heading}:\n- Bob: “Nobody has counted the night crossings” [{entry['id']}]"
    assert told in board.prompt_section("cyd")
    assert told in board.prompt_section("judge")
    assert not board.ledger.evidence
    assert "Admitted not to know" in findings_text(board.state, NAMES, {})


def test_a_look_from_outside_has_seen_what_was_noted_before_it_in_whatever_pieces_it_is_folded() -> None:
    look = ReflectionPass(type="reflection_pass")
    said = [plain_event(1, "ada", "asserts"), plain_event(2, "bob", "denies")]
    notes: list[Any] = [*topic_event("p001"), *said, look, plain_event(3, "bob", "concedes")]
    for cut in range(len(notes) + 1):
        ledger = extend_ledger(extend_ledger(empty_ledger(""), notes[:cut]), notes[cut:])
        assert [note["id"] for note in ledger.claim_events["event"][ledger.reflected_events :]] == [
            notes[-1]["id"]
        ]


def test_a_ledger_without_space_for_the_sections_that_lack_lines_still_says_that_lines_are_missing() -> None:
    board = Board()
    for number in range(12):
        board.note("ada", "asserts", f"Storm {number} would sink a barge of class {number}")
        board.note("bob", "denies", f"Wind {number} would sink a barge of class {number}")
    cut = board.prompt_section("the judge", 140)
    assert cut.endswith("\nLeft out for lack of space, wholly or in part:\n- some lines")

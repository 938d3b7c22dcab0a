"""The ledger: statuses and positions computed from claim events."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from moot.claims.blackboard import render_blackboard
from moot.claims.claim_extraction import correct_event
from moot.claims.crux_cards import findings_text, is_answered
from moot.claims.ledger_from_events import empty_ledger, extend_ledger, fold_events
from moot.claims.ledger_rendering import reflections_text
from moot.claims.round_records import debater_lines, move_lines, round_records
from moot.state.claim_events import MAIN_QUESTION, ClaimEvent, CruxCard, ReflectionPass
from moot.state.conversation import ConversationState
from moot.state.reducers import append
from tests.support.ledger_state import (
    COUNT_TOKENS,
    FERRIES,
    LEVY,
    NAMES,
    Board,
    new_claim_events,
    retraction_event,
    stance_event,
    stance_operation,
)


@pytest.mark.parametrize(
    ("stances", "status"),
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
def test_claim_status_follows_from_the_latest_stances(stances: Any, status: str) -> None:
    events = [stance_event(number, who, kind) for number, (who, kind) in enumerate(stances, 1)]
    assert fold_events([*new_claim_events("p001"), *events]).status("p001") == status


def test_conceded_challenge_settles_the_claim() -> None:
    place = {"debater": "ada", "message_id": "m000001", "quote": "…", "by": "model"}
    pressed: Any = {**place, "type": "challenge", "id": "c001", "to": "bob", "claim": "p001"}
    claim_events = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "asserts"),
        pressed,
        stance_event(2, "bob", "concedes"),
    ]
    assert fold_events(claim_events).status("p001") == "settled"


def test_retracted_event_has_no_effect() -> None:
    claim_events = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "asserts"),
        stance_event(2, "bob", "denies"),
        retraction_event("e002", "model"),
    ]
    assert fold_events(claim_events).status("p001") == "open"


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(sorted(NAMES)),
        st.sampled_from(["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"]),
        st.sampled_from(["p001", "p002"]),
        st.sampled_from(["model", "person"]),
    ),
    max_size=8,
)


def _stance_events(stances: Any) -> list[ClaimEvent]:
    return [stance_event(n, who, kind, key, by=by) for n, (who, kind, key, by) in enumerate(stances, 1)]


def _ledger_state(claim_events: Sequence[ClaimEvent]) -> Any:
    ledger = fold_events([*new_claim_events("p001", "p002"), *claim_events])
    changes = [change.event["id"] for change in ledger.changes]
    return [{key: (ledger.status(key), ledger.stances(key)) for key in ("p001", "p002")}, changes]


@settings(max_examples=60)
@given(EVENTS, st.data())
def test_position_of_a_retraction_makes_no_difference(stances: Any, data: Any) -> None:
    claim_events = _stance_events(stances)
    retractions = [retraction_event(f"e{data.draw(st.integers(1, 8)):03d}", "model") for _ in range(2)]
    place = data.draw(st.integers(0, len(claim_events)))
    assert _ledger_state([*claim_events[:place], *retractions, *claim_events[place:]]) == _ledger_state(
        [*claim_events, *retractions[::-1]]
    )


@settings(max_examples=60)
@given(EVENTS)
def test_events_extracted_out_of_order_give_the_same_ledger(stances: Any) -> None:
    assert _ledger_state(_stance_events(stances)[::-1]) == _ledger_state(_stance_events(stances))


@settings(max_examples=60)
@given(EVENTS)
def test_opposite_claims_merge_into_one_dispute(stances: Any) -> None:
    flip = {"asserts": "denies", "denies": "asserts"}
    same: ClaimEvent = {"type": "same", "one": "p001", "other": "p002", "opposite": True, "by": "model"}
    straight: list[Any] = [
        {**each, "claim": "p001", "kind": flip.get(each["kind"], each["kind"]), "leans": "no"}
        if each["claim"] == "p002"
        else each
        for each in cast(list[Any], _stance_events(stances))
    ]
    merged = fold_events([*new_claim_events("p001", "p002"), *_stance_events(stances), same])
    plainly = fold_events([*new_claim_events("p001"), *straight])
    assert list(merged.claims) == [MAIN_QUESTION, "p001"]
    assert merged.status("p001") == plainly.status("p001")
    assert merged.pairs("p001") == plainly.pairs("p001")


def test_negation_of_a_negation_is_the_original_claim() -> None:
    same: list[ClaimEvent] = [
        {"type": "same", "one": one, "other": other, "opposite": True, "by": "model"}
        for one, other in (("p001", "p002"), ("p002", "p003"))
    ]
    events = [stance_event(1, "ada", "asserts", "p001"), stance_event(2, "bob", "asserts", "p003")]
    assert fold_events([*new_claim_events("p001", "p002", "p003"), *events, *same]).status("p001") == "agreed"


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_persons_event_outranks_the_models_on_the_same_message(order: Any) -> None:
    claim_events = [
        stance_event(1, "ada", "denies", by="model"),
        stance_event(1, "ada", "conditional", by="person", id="e002"),
    ]
    stance = fold_events([*new_claim_events("p001"), *(claim_events[place] for place in order)]).stance(
        "ada", "p001"
    )
    assert stance
    assert stance["kind"] == "conditional"


def test_model_cannot_restore_an_event_that_a_person_retracted() -> None:
    claim_events = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "denies"),
        retraction_event("e001", "person"),
        stance_event(1, "ada", "denies", id="e002"),
    ]
    assert fold_events(claim_events).stance("ada", "p001") is None
    assert fold_events([*claim_events, stance_event(2, "ada", "asserts", id="e003")]).stance("ada", "p001")


def test_model_cannot_retract_a_persons_event() -> None:
    claim_events = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "denies", by="person"),
        retraction_event("e001", "model"),
    ]
    assert fold_events(claim_events).stance("ada", "p001")


def test_only_a_different_stance_is_a_change_of_mind() -> None:
    stances = [
        ("ada", "asserts"),
        ("ada", "asserts"),
        ("ada", "conditional"),
        ("ada", "denies"),
        ("ada", "denies"),
    ]
    events = [stance_event(number, who, kind) for number, (who, kind) in enumerate(stances, 1)]  # type: ignore[arg-type]  # kinds
    changes = fold_events([*new_claim_events("p001"), *events]).changes
    changed = [(change.event["id"], change.before and change.before["id"]) for change in changes]
    assert changed == [("e003", "e002"), ("e004", "e003")]


def test_repeated_concession_is_one_change_of_mind() -> None:
    board = Board()
    for who, kind in (("ada", "asserts"), ("bob", "denies"), ("ada", "concedes"), ("ada", "concedes")):
        board.add_stance(who, kind, LEVY)  # type: ignore[arg-type]  # kinds of events
    assert [board.ledger.sign(who, "p001") for who in ("ada", "bob")] == [-1, -1]
    assert len(board.ledger.changes) == 1
    assert len(board.ledger.concessions("ada")) == 2
    assert board.prompt_section("").count(f"- Ada: not true: {LEVY}") == 1


def test_repeated_changes_count_once_and_a_conditional_yes_counts() -> None:
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
        board.add_stance(who, kind, LEVY)  # type: ignore[arg-type]  # kinds of events
    changes = [(change.event["debater"], change.event["kind"]) for change in board.ledger.changes]
    assert changes == [("ada", "withdraws"), ("bob", "conditional"), ("cyd", "concedes")]


def test_event_ids_are_not_reused_after_an_event_is_removed() -> None:
    board = Board()
    for _ in range(3):
        board.add_stance("ada", "asserts", FERRIES)
    board.state["claim_events"] = [each for each in board.state["claim_events"] if each.get("id") != "e002"]
    board.add_stance("bob", "denies", FERRIES)
    assert [each["id"] for each in board.state["claim_events"] if each["type"] == "event"] == [
        "e001",
        "e003",
        "e004",
    ]


def test_concession_of_a_reason_or_the_main_question_is_core() -> None:
    events = [
        stance_event(1, "ada", "asserts", "p001", ground=True),
        stance_event(2, "ada", "asserts", "p002"),
        stance_event(3, "ada", "concedes", "p001"),
        stance_event(4, "ada", "concedes", "p002"),
        stance_event(5, "ada", "concedes", MAIN_QUESTION),
    ]
    ledger = fold_events([*new_claim_events("p001", "p002"), *events])
    assert [ledger.is_core(each) for each in ledger.concessions()] == [True, False, True]


def test_concession_of_a_side_claim_leaves_the_main_question_disputed() -> None:
    events = [
        stance_event(1, "ada", "asserts", MAIN_QUESTION),
        stance_event(2, "bob", "denies", MAIN_QUESTION),
        stance_event(3, "ada", "asserts", "p001"),
        stance_event(4, "bob", "concedes", "p001"),
    ]
    ledger = fold_events([*new_claim_events("p001"), *events])
    assert (ledger.status(MAIN_QUESTION), ledger.status("p001")) == ("disputed", "agreed")


def test_common_ground_follows_from_the_stances_of_three_debaters() -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(2, "bob", "denies"),
        stance_event(3, "cyd", "asserts"),
        stance_event(4, "bob", "asserts", "p002"),
        stance_event(5, "cyd", "asserts", "p002"),
    ]
    ledger = fold_events([*new_claim_events("p001", "p002"), *events])
    assert ledger.common_ground("ada", "bob") == ([], ["p001"], [])
    assert ledger.common_ground("ada", "cyd") == (["p001"], [], [])
    assert ledger.common_ground("bob", "cyd") == (["p002"], ["p001"], [])
    assert ledger.pairs("p001") == [("ada", "bob"), ("cyd", "bob")]


def crux_card(*ids: str, resolved: bool = True) -> CruxCard:
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


def test_status_labels_change_until_the_debate_is_over() -> None:
    claim_events = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "asserts"),
        stance_event(2, "bob", "denies"),
    ]
    before, after = (
        fold_events(claim_events),
        fold_events([*claim_events, stance_event(9, "bob", "denies", id="e009")]),
    )
    assert before.claim_status("p001").label == "disputed"
    assert before.claim_status("p001", in_room=True).label == "disputed, in crux room"
    assert is_answered(before, "p001", [crux_card("m000005")])
    assert not is_answered(after, "p001", [crux_card("m000005")])
    assert not is_answered(before, "p001", [crux_card("m000005", resolved=False)])
    assert after.claim_status("p001", is_over=True).label == "unresolved"
    conceded = fold_events([*claim_events, stance_event(9, "bob", "concedes", id="e009")])
    assert conceded.claim_status("p001", is_over=True).label == "settled: yes"


def test_claims_are_ordered_by_salience_and_none_is_left_out() -> None:
    keys = [f"p{number:03d}" for number in range(1, 60)]
    events: list[ClaimEvent] = [
        stance_event(number, "ada", "asserts", key) for number, key in enumerate(keys, 1)
    ]
    events += [
        stance_event(70, "bob", "denies", "p002"),
        stance_event(71, "cyd", "asserts", "p003", ground=True),
    ]
    order = fold_events([*new_claim_events(*keys), *events]).by_salience
    assert order[:3] == [MAIN_QUESTION, "p002", "p003"]
    assert set(order) == {MAIN_QUESTION, *keys}


@given(EVENTS, EVENTS)
def test_claim_events_append_the_same_in_any_batches(first: Any, second: Any) -> None:
    claim_events = _stance_events(first), _stance_events(second)
    assert append(append([], [claim_events[0]]), [claim_events[1]]) == append([], list(claim_events))


def test_conditional_denial_disputes_and_inverts_to_conditional_assent() -> None:
    unless = stance_event(1, "ada", "denies", condition="the levy is not repaid")
    claim_events = [
        *new_claim_events("p001", "p002"),
        unless,
        stance_event(2, "bob", "asserts"),
        stance_event(3, "cyd", "denies"),
    ]
    ledger = fold_events(claim_events)
    assert ledger.timeline("p001").sides == [["bob"], ["ada", "cyd"]]
    both = fold_events([*new_claim_events("p001"), unless, stance_event(2, "cyd", "denies")])
    assert both.status("p001") == "conditional"
    mirrored: ClaimEvent = {"type": "same", "one": "p002", "other": "p001", "opposite": True, "by": "model"}
    turned = stance_event(4, "ada", "denies", "p002", condition="storms are rare")
    stance = fold_events([*claim_events, turned, mirrored]).stance("ada", "p001")
    assert stance is not None
    assert (stance["kind"], stance["condition"]) == ("conditional", "storms are rare")
    board = Board()
    entry = board.add_entry("ada", "No, unless they are repaid.")
    operation = stance_operation(
        entry, "denies", LEVY, quote="No, unless they are repaid", condition="they are not repaid"
    )
    board.apply_operations([entry], "model", {"claims": [{"ref": "n1", "text": LEVY}], "events": [operation]})
    assert "no, on a condition: they are not repaid" in board.prompt_section("cyd", answering=["ada"])


def test_admitted_gap_is_shown_to_everybody_and_is_no_evidence() -> None:
    board = Board()
    entry = board.add_entry("bob", "Nobody has counted the night crossings, neither have we.")
    gap = {"message_id": entry["id"], "quote": "Nobody has counted the night crossings", "claim": ""}
    board.apply_operations([entry], "model", {"gaps": [gap]})
    heading = "What debaters say they do not know"
    shown = f"{heading}:\n- Bob: “Nobody has counted the night crossings” [{entry['id']}]"
    assert shown in board.prompt_section("cyd")
    assert shown in board.prompt_section("judge")
    assert not board.ledger.evidence
    assert "Admitted not to know" in findings_text(board.state, NAMES, {})


def test_what_would_change_a_mind_is_no_condition_and_is_shown_until_it_has_changed() -> None:
    board = Board()
    entry = board.add_entry("ada", "Raise the levy. A count above 4,500 would change my mind.")
    stance = stance_operation(entry, "asserts", LEVY, quote="Raise the levy")
    said = {"message_id": entry["id"], "quote": "A count above 4,500 would change my mind", "claim": ""}
    invented = {**said, "quote": "A count above 5,000 would"}
    claims = [{"ref": "n1", "text": LEVY}]
    operations = {"claims": claims, "events": [stance], "reversals": [said, invented]}
    board.apply_operations([entry], "model", operations)
    assert [each["id"] for each in board.ledger.reversals] == ["w001"]
    assert not [event for event in board.ledger.events if event["condition"]]
    shown = f"What debaters say would change their minds:\n- Ada: “{said['quote']}” [{entry['id']}]"
    assert shown in board.prompt_section("cyd")
    assert shown in board.prompt_section("judge")
    assert f"## What would change minds\n- Ada: “{said['quote']}”" in findings_text(board.state, NAMES, {})
    (removed,) = correct_event(cast(ConversationState, board.state), "w001")
    assert not fold_events([*board.state["claim_events"], removed]).reversals


def test_reflection_covers_earlier_events_however_they_are_folded() -> None:
    look = ReflectionPass(type="reflection_pass")
    earlier = [stance_event(1, "ada", "asserts"), stance_event(2, "bob", "denies")]
    claim_events: list[Any] = [*new_claim_events("p001"), *earlier, look, stance_event(3, "bob", "concedes")]
    for cut in range(len(claim_events) + 1):
        ledger = extend_ledger(extend_ledger(empty_ledger(""), claim_events[:cut]), claim_events[cut:])
        assert [each["id"] for each in ledger.claim_events["event"][ledger.reflected_events :]] == [
            claim_events[-1]["id"]
        ]


def test_shortened_ledger_always_says_that_lines_are_missing() -> None:
    board = Board()
    for number in range(12):
        board.add_stance("ada", "asserts", f"Storm {number} would sink a barge of class {number}")
        board.add_stance("bob", "denies", f"Wind {number} would sink a barge of class {number}")
    cut = board.prompt_section("the judge", 140)
    assert cut.endswith("\nLeft out for lack of space, wholly or in part:\n- some lines")


def test_reflections_are_listed_by_importance_then_by_age() -> None:
    ranks = [("r001", 2), ("r002", 5), ("r003", 9), ("r004", 5)]
    reflections = [
        {"id": key, "content": f"Finding {key}", "importance": importance, "round": 0}
        for key, importance in ranks
    ]
    text = reflections_text({"claim_events": [], "reflections": reflections})
    assert re.findall(r"r\d+", text) == ["r003", "r002", "r004", "r001"]


def test_evidence_and_gaps_stay_visible_to_all_readers_and_in_round_records() -> None:
    board = Board()
    for number, speaker in enumerate(("ada", "bob", "ada", "bob", "ada", "bob"), 1):
        entry = board.add_entry(speaker, f"Fact {number} says 9 %. Ask Bob.", round_no=(number + 1) // 2)
        fact = {"message_id": entry["id"], "kind": "figure", "quote": f"Fact {number} says 9 %.", "claim": ""}
        operations: dict[str, Any] = {"evidence": [fact]}
        if speaker == "ada":
            operations["questions"] = [{"message_id": entry["id"], "to": "bob", "quote": "Ask Bob."}]
        board.apply_operations([entry], "model", operations)
    everything = "“Fact 1 says 9 %.” [m000001]"
    assert all(everything in board.prompt_section(reader) for reader in ("", "ada", "bob"))
    render = partial(render_blackboard, board.state, "", max_tokens=110, count=COUNT_TOKENS, names=NAMES)
    assert render(evidence_of="bob").count("- Bob: “Fact") == 3
    assert render().count("- Bob: “Fact") < 3
    record = round_records(board.ledger, board.state["full_transcript"])[0]
    assert debater_lines(record, board.ledger, NAMES) == {
        "ada": f"evidence: {everything}; engaged Bob",
        "bob": "evidence: “Fact 2 says 9 %.” [m000002]",
    }


def test_round_record_says_what_moved() -> None:
    board = Board()
    for kind, speaker, round_no in (("asserts", "ada", 1), ("denies", "bob", 1), ("concedes", "bob", 2)):
        board.add_stance(speaker, cast(Any, kind), FERRIES, round_no=round_no)
    first, second = round_records(board.ledger, board.state["full_transcript"])
    assert list(move_lines(first, board.ledger, NAMES)) == [f"New dispute: {FERRIES}"]
    (line,) = move_lines(second, board.ledger, NAMES)
    assert line.startswith(f"Bob moved on “{FERRIES}”: conceded: yes: “I say of this: concedes.”")
    assert ([*first["arguments"]], [*second["arguments"]]) == (["ada", "bob"], [])  # no concession argues

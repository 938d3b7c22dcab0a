"""Claim statuses that follow from sequences of stances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.claim_status import DATA, judge_case, read_cases
from moot.claims.claim_extraction import ClaimExtraction
from moot.claims.claim_status import ClaimStatus
from moot.claims.crux_cards import findings_text
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import stance_text
from moot.claims.model_extraction import extraction_schema
from moot.claims.reflections import recent_activity
from moot.documents import claim_statuses_of
from moot.state.claim_events import ReflectionPass
from tests.support.ledger_state import FERRIES, Board, new_claim_events, stance_event, stance_operation

IF_TIDE, IF_TIDE_TURNS, IF_CREW = "if the tide allows", "as long as the tide allows it", "if the crew is paid"


def yes(who: str, condition: str = "", **fields: Any) -> dict[str, Any]:
    kind = "conditional" if condition else "asserts"
    return {"debater": who, "kind": kind, "condition": condition, **fields}


def no(who: str, condition: str = "") -> dict[str, Any]:
    if condition:
        return {"debater": who, "kind": "conditional", "condition": condition, "leans": "no"}
    return {"debater": who, "kind": "denies"}


def does(who: str, kind: str) -> dict[str, Any]:
    return {"debater": who, "kind": kind}


@pytest.mark.parametrize(
    ("events", "status", "side", "conditions"),
    [
        ([], "open", "", []),
        ([yes("eva")], "open", "yes", []),
        ([yes("eva"), yes("leo")], "agreed", "yes", []),
        ([no("eva"), no("leo")], "agreed", "no", []),
        ([yes("eva"), no("leo")], "disputed", "", []),
        ([yes("eva", IF_TIDE), no("leo", IF_CREW)], "disputed", "", []),
        ([yes("eva", IF_TIDE), yes("leo")], "conditional", "yes", [IF_TIDE]),
        ([yes("eva", IF_TIDE), yes("leo", IF_CREW)], "conditional", "yes", [IF_TIDE, IF_CREW]),
        ([yes("eva", IF_TIDE), yes("leo", IF_TIDE)], "agreed", "yes", [IF_TIDE]),
        ([yes("eva"), no("leo"), yes("leo", IF_TIDE)], "conditional", "yes", [IF_TIDE]),
        ([yes("eva"), no("leo"), yes("eva", IF_TIDE), yes("leo", IF_TIDE)], "settled", "yes", [IF_TIDE]),
        ([yes("eva"), no("leo"), yes("leo")], "settled", "yes", []),
        ([yes("eva"), no("leo"), does("eva", "concedes")], "settled", "no", []),
        ([yes("eva"), no("leo"), does("eva", "unsure")], "open", "no", []),
        ([yes("eva"), no("leo"), yes("kim"), does("leo", "unsure")], "open", "yes", []),
        ([yes("eva"), does("leo", "concedes")], "agreed", "yes", []),
        ([no("eva"), does("leo", "concedes")], "agreed", "no", []),
        ([yes("eva"), does("eva", "withdraws")], "withdrawn", "", []),
        ([yes("eva"), no("leo"), does("eva", "withdraws"), does("leo", "withdraws")], "withdrawn", "", []),
        ([yes("eva"), no("leo"), does("leo", "concedes"), no("leo")], "disputed", "", []),
        ([yes("eva", IF_TIDE), yes("eva", IF_CREW)], "open", "yes", [IF_CREW]),
        ([yes("eva", option="buy"), yes("leo", option="build")], "disputed", "", []),
        ([yes("eva", option="buy"), yes("leo", option="buy")], "agreed", "buy", []),
        ([yes("eva"), no("leo"), does("eva", "concedes"), does("leo", "concedes")], "withdrawn", "", []),
        ([yes("eva", option="buy"), does("leo", "concedes")], "agreed", "buy", []),
        ([yes("eva", option="buy"), {**does("leo", "concedes"), "option": "buy"}], "agreed", "buy", []),
        ([yes("eva", option="buy"), {**no("leo"), "option": "buy"}], "open", "buy", []),
        ([yes("leo", option="buy"), {**no("leo"), "option": "buy"}], "withdrawn", "", []),
        (
            [yes("leo", option="build"), {**no("leo"), "option": "buy"}, yes("eva", option="build")],
            "agreed",
            "build",
            [],
        ),
    ],
)
def test_a_status_follows_from_the_current_stances(
    events: list[Any], status: str, side: str, conditions: list[str]
) -> None:
    result = judge_case({"id": "x", "events": events, "over": False})
    assert (result.status, result.side, list(result.conditions)) == (status, side, conditions)


EVA_YES, LEO_NO, EVA_IF, LEO_IF = yes("eva"), no("leo"), yes("eva", IF_TIDE), yes("leo", IF_CREW)


@pytest.mark.parametrize(
    ("events", "status", "side", "conditions"),
    [
        ([EVA_YES, LEO_NO, {"retracts": 2}, yes("leo")], "agreed", "yes", []),
        ([EVA_YES, LEO_NO, {"retracts": 2}], "open", "yes", []),
        ([EVA_YES, {"retracts": 1}], "open", "", []),
        ([EVA_YES, LEO_NO, does("leo", "concedes"), {"retracts": 3}], "disputed", "", []),
        ([EVA_YES, does("eva", "withdraws"), {"retracts": 2}], "open", "yes", []),
        ([EVA_IF, LEO_IF, {"retracts": 2}], "open", "yes", [IF_TIDE]),
        ([yes("eva", option="buy"), yes("leo", option="build"), {"retracts": 2}], "open", "buy", []),
    ],
)
def test_a_retracted_event_and_its_dispute_are_ignored(
    events: list[Any], status: str, side: str, conditions: list[str]
) -> None:
    result = judge_case({"id": "x", "events": events, "over": False})
    assert (result.status, result.side, list(result.conditions)) == (status, side, conditions)


@pytest.mark.parametrize(
    ("events", "status", "conditions"),
    [
        ([EVA_IF, yes("eva", IF_CREW), LEO_IF], "agreed", [IF_CREW]),
        ([EVA_IF, yes("leo", IF_TIDE), LEO_IF], "conditional", [IF_TIDE, IF_CREW]),
        ([EVA_YES, LEO_NO, EVA_IF, LEO_IF, yes("eva", IF_CREW)], "settled", [IF_CREW]),
        ([EVA_IF, EVA_YES, yes("leo")], "agreed", []),
        ([EVA_YES, LEO_NO, LEO_IF, yes("leo")], "settled", []),
    ],
)
def test_a_replaced_condition_is_ignored(events: list[Any], status: str, conditions: list[str]) -> None:
    result = judge_case({"id": "x", "events": events, "over": False})
    assert (result.status, list(result.conditions)) == (status, conditions)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([EVA_YES, LEO_NO, does("leo", "unsure"), does("leo", "concedes")], "settled"),
        ([EVA_YES, LEO_NO, does("leo", "concedes"), does("leo", "unsure")], "open"),
        ([EVA_YES, LEO_NO, does("leo", "unsure"), does("leo", "withdraws")], "settled"),
        ([EVA_YES, LEO_NO, does("leo", "unsure"), does("eva", "unsure")], "withdrawn"),
        ([EVA_YES, LEO_NO, no("kim"), does("leo", "concedes"), does("kim", "unsure")], "open"),
        ([EVA_YES, does("eva", "unsure")], "withdrawn"),
        ([does("eva", "unsure"), does("leo", "unsure")], "open"),
    ],
)
def test_an_unsure_debater_concedes_nothing(events: list[Any], status: str) -> None:
    assert judge_case({"id": "x", "events": events, "over": False}).status == status


def test_a_challenge_alone_does_not_make_a_dispute() -> None:
    place = {"debater": "kim", "message_id": "m000003", "quote": "…", "by": "model"}
    events: list[Any] = [
        *new_claim_events("p001"),
        stance_event(1, "eva", "asserts"),
        stance_event(2, "leo", "asserts"),
        {**place, "type": "challenge", "id": "c001", "to": "eva", "claim": "p001"},
        stance_event(4, "eva", "withdraws"),
    ]
    assert fold_events(events).status("p001") == "open"


def test_disputes_at_the_end_of_the_debate_are_unresolved() -> None:
    events = [yes("eva"), no("leo")]
    assert judge_case({"id": "x", "events": events, "over": True}).status == "unresolved"
    agreed = judge_case({"id": "x", "events": [yes("eva"), yes("leo")], "over": True})
    assert agreed.status == "agreed"


@pytest.mark.skipif(not DATA.exists(), reason="the labelled cases are not next to the checkout")
def test_every_labelled_case_has_its_labelled_status() -> None:
    for case in read_cases(DATA):
        result = judge_case(case)
        assert (result.status, result.side, list(result.conditions)) == (
            case["status"],
            case["side"],
            case["conditions"],
        ), case["id"]


def test_the_benchmark_counts_right_cases_and_lists_wrong_ones(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.claim_status import main

    good = {"id": "a", "events": [yes("eva")], "over": False, "status": "open", "side": "yes"}
    wrong = {**good, "id": "b", "status": "settled"}
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{json.dumps({**each, 'conditions': []})}\n" for each in (good, wrong)))
    main(["--data", str(path), "--json"])
    assert json.loads(capsys.readouterr().out) == {"right": 1, "of": 2, "wrong": ["b"]}


def test_conditions_with_the_same_id_are_the_same() -> None:
    events = [
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "bob", "conditional", condition=IF_TIDE_TURNS, condition_id="k001"),
    ]
    assert fold_events([*new_claim_events("p001"), *events]).status("p001") == "agreed"
    events[1] = stance_event(2, "bob", "conditional", condition=IF_TIDE_TURNS, condition_id="k002")
    assert fold_events([*new_claim_events("p001"), *events]).status("p001") == "conditional"


def test_a_debater_keeps_all_conditions_until_one_is_replaced() -> None:
    events = [
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "ada", "conditional", condition=IF_CREW, condition_id="k002"),
    ]
    ledger = fold_events([*new_claim_events("p001"), *events])
    assert ledger.claim_status("p001").conditions == (IF_TIDE, IF_CREW)
    stance = ledger.stance("ada", "p001")
    assert stance is not None
    assert stance["condition"] == f"{IF_TIDE}; {IF_CREW}"
    later = stance_event(
        3, "ada", "conditional", condition="if it is dry", condition_id="k003", replaces="k001"
    )
    ledger = fold_events([*new_claim_events("p001"), *events, later])
    assert ledger.claim_status("p001").conditions == (IF_CREW, "if it is dry")


def test_extraction_reuses_the_ids_of_known_conditions() -> None:
    board = Board()
    first = board.add_entry("ada", f"Yes, {IF_TIDE}.")
    second = board.add_entry("bob", f"Yes, {IF_TIDE_TURNS}.")
    claims = [{"ref": "n1", "text": FERRIES}]
    events = [
        stance_operation(first, "conditional", FERRIES, quote=IF_TIDE, condition=IF_TIDE, condition_id="c1"),
        stance_operation(
            second, "conditional", FERRIES, quote=IF_TIDE_TURNS, condition=IF_TIDE_TURNS, condition_id="c1"
        ),
    ]
    board.apply_operations([first, second], "model", {"claims": claims, "events": events})
    assert board.ledger.status("p001") == "agreed"
    third = board.add_entry("bob", f"Rather {IF_CREW}.")
    replaced = stance_operation(
        third, "conditional", FERRIES, quote=IF_CREW, condition=IF_CREW, replaces="k001"
    )
    board.apply_operations([third], "model", {"events": [{**replaced, "claim": "p001"}]})
    assert [each.get("condition_id") for each in board.ledger.events] == ["k001", "k001", "k002"]
    status = board.ledger.claim_status("p001")
    assert (status.status, status.conditions) == ("conditional", (IF_TIDE, IF_CREW))


def test_a_changed_condition_is_a_change_of_mind() -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(2, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(3, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(4, "ada", "conditional", condition=IF_CREW, condition_id="k002", replaces="k001"),
    ]
    ledger = fold_events([*new_claim_events("p001"), *events])
    pairs = [(each.event["id"], each.before and each.before["id"]) for each in ledger.changes]
    assert pairs == [("e002", "e001"), ("e004", "e003")]
    assert all(change.before and change.before["quote"] for change in ledger.changes)


def test_status_labels_name_side_conditions_and_earlier_disputes() -> None:
    assert ClaimStatus("settled", "no", (), True).label == "settled: no"
    assert ClaimStatus("agreed", "yes", (IF_TIDE,), False).label == "agreed: yes, on a condition"
    several = ClaimStatus("conditional", "yes", (IF_TIDE, IF_CREW), True)
    assert several.label == "conditional: yes, on 2 conditions, disputed before"
    assert ClaimStatus("disputed", "", (), True, in_room=True).label == "disputed, in crux room"


def test_a_quotation_with_a_wrong_id_moves_to_the_matching_message() -> None:
    board = Board()
    first = board.add_entry("ada", "Ferries are cheap to run.")
    second = board.add_entry("bob", "No, ferries cost more every year.")
    moved = stance_operation(first, "denies", FERRIES, quote="ferries cost more every year")
    board.apply_operations(
        [first, second], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [moved]}
    )
    (kept,) = board.ledger.events
    assert (kept["debater"], kept["message_id"]) == ("bob", second["id"])
    assert not any(board.ledger.dropped.values())


def test_a_quotation_in_several_new_messages_is_dropped() -> None:
    board = Board()
    entries = [board.add_entry(who, "Ferries are cheap to run.") for who in ("ada", "bob")]
    last = board.add_entry("cyd", "I see no reason.")
    wanted = stance_operation(last, "asserts", FERRIES, quote="Ferries are cheap to run")
    board.apply_operations(
        [*entries, last], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [wanted]}
    )
    assert not board.ledger.events
    assert dict(board.ledger.dropped) == {"quotation not found": 1}


def test_settled_disputes_count_towards_the_next_reflection() -> None:
    events = [
        stance_event(1, "ada", "asserts"),
        stance_event(2, "bob", "denies"),
        stance_event(3, "bob", "asserts"),
        stance_event(4, "ada", "asserts", "p002"),
        stance_event(5, "bob", "denies", "p002"),
    ]
    claims = new_claim_events("p001", "p002")
    activity = recent_activity(fold_events([*claims, *events]))
    assert (activity.disputes, activity.score) == (["p001", "p002"], 3 + 3 + 5)
    seen = [*claims, *events[:2], ReflectionPass(type="reflection_pass"), *events[2:]]
    assert recent_activity(fold_events(seen)).disputes == ["p002"]


def test_prompts_show_a_changed_condition_with_both_quotations() -> None:
    board = Board()
    first = board.add_entry("ada", "Yes, close them.")
    second = board.add_entry("ada", f"Yes, but only {IF_TIDE}.")
    claims = [{"ref": "n1", "text": FERRIES}]
    events = [
        stance_operation(first, "asserts", FERRIES, quote="Yes, close them"),
        stance_operation(second, "conditional", FERRIES, quote=f"only {IF_TIDE}", condition=IF_TIDE),
    ]
    board.apply_operations([first, second], "model", {"claims": claims, "events": events})
    change = (
        f"“only {IF_TIDE}” [{second['id']}] (same answer, added a condition), "
        f"before: “Yes, close them” [{first['id']}]"
    )
    assert f"you changed your mind: {FERRIES}: {change}" in board.prompt_section("ada")
    assert f"- Ada: {FERRIES}: {change}" in board.prompt_section("judge")


def test_switching_options_in_one_message_is_one_change_of_mind() -> None:
    events = [
        stance_event(1, "ada", "asserts", "p000", option="build"),
        stance_event(2, "ada", "withdraws", "p000"),
        stance_event(3, "ada", "conditional", "p000", option="buy", condition=IF_TIDE, message_id="m000002"),
    ]
    (change,) = fold_events(events).changes
    assert change.event["id"] == "e003"
    assert change.before is not None
    assert change.before["id"] == "e001"


def test_the_new_condition_in_a_message_marks_the_change() -> None:
    place = {"message_id": "m000002"}
    events = [
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "ada", "conditional", condition=IF_CREW, condition_id="k002", **place),
        stance_event(3, "ada", "conditional", condition=IF_TIDE, condition_id="k001", **place),
    ]
    (change,) = fold_events([*new_claim_events("p001"), *events]).changes
    assert change.event["id"] == "e002"
    assert list(change.conditions.values()) == [IF_TIDE, IF_CREW]


def test_a_round_record_lists_the_dispute_about_the_main_question() -> None:
    board = Board()
    board.add_entry("ada", "Build it, I say.")
    board.add_entry("bob", "Buy it, I say.")
    board.state["claim_events"] = [
        stance_event(1, "ada", "asserts", "p000", option="build"),
        stance_event(2, "bob", "asserts", "p000", option="buy"),
    ]
    (record,) = claim_statuses_of(board.state)["rounds"]
    assert record["new_disputes"] == ["p000"]
    assert list(record["positions"]) == ["ada", "bob"]


def test_stance_text_gives_the_number_of_conditions() -> None:
    board = Board()
    board.add_entry("ada", "Yes.")
    board.add_entry("ada", "Yes.")
    board.state["claim_events"] = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "ada", "conditional", condition=IF_CREW, condition_id="k002"),
    ]
    claims = {each["id"]: each for each in claim_statuses_of(board.state)["claims"]}
    assert stance_text(claims["p001"]["stances"]["ada"]) == f"yes, on 2 conditions: {IF_TIDE}; {IF_CREW}"


def test_a_concession_shows_the_condition_that_still_applies() -> None:
    events = [
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "bob", "denies"),
        stance_event(3, "bob", "conditional", condition=IF_CREW, condition_id="k002"),
        stance_event(4, "bob", "concedes"),
    ]
    ledger = fold_events([*new_claim_events("p001"), *events])
    assert ledger.claim_status("p001").conditions == (IF_TIDE, IF_CREW)
    stance = ledger.stance("bob", "p001")
    assert stance is not None
    assert stance_text(stance) == f"conceded, on a condition: {IF_CREW}"


def test_the_ledger_section_mentions_newer_results_of_crux_rooms() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_entry("bob", "No.")
    assert "stood at [m000001], as recorded" in board.prompt_section("ada")
    board.state["claim_events"] = [*board.state["claim_events"], stance_event(2, "bob", "denies")]
    since = "with the results of the side rooms since"
    assert f"stood at [m000001], {since}, as recorded" in board.prompt_section("ada")


def test_findings_omit_flip_conditions_of_debaters_who_moved() -> None:
    board = Board()
    for who in ("ada", "bob"):
        board.add_entry(who, "Yes.")
    board.state["claim_events"] = [
        stance_event(1, "ada", "asserts", "p000"),
        stance_event(2, "bob", "asserts", "p000"),
        stance_event(3, "bob", "denies", "p000"),
    ]
    flips = {"ada": ["a dry winter"], "bob": ["a wet winter"]}
    text = findings_text(board.state, {"ada": "Ada", "bob": "Bob"}, flips)
    assert "Ada: a dry winter" in text
    assert "a wet winter" not in text


def test_findings_give_the_flip_conditions_of_a_crux_room_and_omit_empty_ones() -> None:
    board = Board()
    sides = {
        "ada": {"answer": "yes", "reasoning": "", "falsifier": "a dry winter"},
        "bob": {"answer": "no", "reasoning": "", "falsifier": ""},
    }
    card = {"id": "x1", "question": "Does it flood?", "claim": "p000", "sides": sides, "type": "claim"}
    rest = {"diagnosis": "", "resolved": False, "resolution": "", "message_ids": [], "round": 1}
    board.state["crux_cards"] = {"x1": {**card, **rest}}
    text = findings_text(board.state, {"ada": "Ada", "bob": "Bob"}, {})
    assert "Ada, on “Does it flood?”: a dry winter" in text
    assert "Bob, on" not in text


@pytest.mark.parametrize(
    ("claim", "events", "strength"),
    [
        (
            "p000",
            [stance_event(1, "ada", "asserts", "p000"), stance_event(2, "bob", "denies", "p000")],
            "strong",
        ),
        (
            "p000",
            [
                stance_event(1, "ada", "conditional", "p000", condition=IF_TIDE),
                stance_event(2, "bob", "denies", "p000"),
            ],
            "mild",
        ),
        ("p001", [stance_event(1, "ada", "asserts"), stance_event(2, "bob", "denies")], "mild"),
        (
            "p001",
            [stance_event(1, "ada", "asserts", ground=True), stance_event(2, "bob", "denies")],
            "strong",
        ),
        (
            "p001",
            [
                stance_event(1, "ada", "asserts"),
                stance_event(2, "bob", "denies"),
                stance_event(3, "cyd", "denies", ground=True),
            ],
            "mild",
        ),
    ],
    ids=["main question", "one condition", "side claim", "a reason", "another's reason"],
)
def test_a_disagreement_is_strong_on_core_claims_without_conditions(
    claim: str, events: Any, strength: str
) -> None:
    ledger = fold_events([*new_claim_events("p001"), *events])
    assert ledger.disagreement_strength(claim, "ada", "bob") == strength
    assert ledger.disagreement_strength(claim, "bob", "ada") == strength


@pytest.mark.parametrize(
    ("later", "label"),
    [
        ({"condition": IF_CREW, "condition_id": "k002"}, "added a condition"),
        ({"condition": IF_CREW, "condition_id": "k002", "replaces": "k001"}, "changed the conditions"),
        ({"kind": "asserts"}, "dropped a condition"),
        ({"kind": "denies"}, ""),
    ],
)
def test_a_change_says_how_the_conditions_changed(later: Any, label: str) -> None:
    events = [
        stance_event(1, "ada", "conditional", condition=IF_TIDE, condition_id="k001"),
        stance_event(2, "ada", **{"kind": "conditional", **later}),
    ]
    (change,) = fold_events([*new_claim_events("p001"), *events]).changes
    assert change.conditions_note == label


def test_a_new_condition_is_not_shown_as_a_change_of_side() -> None:
    board = Board()
    claims = [{"ref": "n1", "text": FERRIES}]
    first = board.add_entry("ada", "Yes, close them.")
    second = board.add_entry("ada", f"Yes, but only {IF_TIDE}.", round_no=2)
    events = [
        stance_operation(first, "asserts", FERRIES, quote="Yes, close them"),
        stance_operation(second, "conditional", FERRIES, quote=f"only {IF_TIDE}", condition=IF_TIDE),
    ]
    board.apply_operations([first, second], "model", {"claims": claims, "events": events})
    assert "(same answer, added a condition)" in board.prompt_section("judge")
    board.state["round"] = 3
    assert "Ada moved" not in board.prompt_section("bob")


OTHER_ANSWER = "repair it, and decide in ten years"


def _extract_answers(known: Sequence[Any], *answers: tuple[Any, str, str]) -> ClaimExtraction:
    """Return an extraction in which debaters choose these options or give another answer."""
    extraction = ClaimExtraction(
        known=known,
        topic="Build, or buy?",
        entries={entry["id"]: entry for entry, _, _ in answers},
        debaters=["ada", "bob"],
        by="model",
        options=["build", "buy"],
    )
    events = [
        stance_operation(entry, "asserts", "", quote=entry["content"], option=option, answer=answer)
        for entry, option, answer in answers
    ]
    extraction.apply({"events": events})
    return extraction


def test_an_answer_outside_the_options_is_recorded_and_shared() -> None:
    board = Board()
    first = board.add_entry("ada", "Build it, I say.")
    second = board.add_entry("ada", "No: repair it, then see.")
    third = board.add_entry("bob", "I want to repair it too.")
    fourth = board.add_entry("bob", "As I said, repair it.")
    other = "another answer"
    extraction = _extract_answers(
        [], (first, "build", ""), (second, other, OTHER_ANSWER), (third, other, f"R{OTHER_ANSWER[1:]}.")
    )
    assert extraction.ledger.claim_status("p000").label == f"agreed: {OTHER_ANSWER}"
    (change,) = extraction.ledger.changes
    assert (change.held_change and change.held_change.side, change.side) == ("build", OTHER_ANSWER)
    # A later extraction may use an answer that an earlier one recorded.
    schema = extraction_schema([fourth], ["ada", "bob"], extraction.ledger, options=["build", "buy"])
    assert OTHER_ANSWER in str(schema.model_json_schema())
    again = _extract_answers(extraction.new, (fourth, OTHER_ANSWER, ""))
    assert again.ledger.claim_status("p000").label == f"agreed: {OTHER_ANSWER}"
    assert not again.dropped


def test_a_blank_other_answer_is_dropped() -> None:
    board = Board()
    extraction = _extract_answers([], (board.add_entry("ada", "Something else."), "another answer", " "))
    assert (extraction.new, dict(extraction.dropped)) == ([], {"no option": 1})


def test_a_withdrawn_option_is_shown() -> None:
    board = Board()
    board.add_entry("ada", "Build it.")
    board.add_entry("ada", "I withdraw that.")
    board.state["claim_events"] = [
        stance_event(1, "ada", "asserts", "p000", option="build"),
        stance_event(2, "ada", "withdraws", "p000"),
    ]
    assert "Ada: gave up “build”: “ada withdraws”" in board.prompt_section("judge")
    (main,) = claim_statuses_of(board.state)["claims"]
    assert stance_text(main["stances"]["ada"]) == "gave up “build”"


def test_judges_see_which_challenged_debaters_had_no_turn_since() -> None:
    board = Board()
    first = board.add_entry("bob", "Close them.")
    second = board.add_entry("ada", "Who pays?")
    asked: Any = {"debater": "ada", "message_id": second["id"], "quote": "Who pays?", "by": "model"}
    asked |= {"type": "challenge", "id": "c001", "to": "bob", "claim": ""}
    board.state["claim_events"] = [asked, stance_event(1, "bob", "asserts", "p000", message_id=first["id"])]
    assert "Ada to Bob: “Who pays?” [m000002] (Bob had no turn since)" in board.prompt_section("judge")
    board.add_entry("bob", "Close them, I say.")
    board.state["claim_events"].append(
        {"type": "extraction_pass", "through": 3, "by": "model", "dropped": {}}
    )
    assert "Ada to Bob: “Who pays?” [m000002]" in board.prompt_section("judge")
    assert "no turn since" not in board.prompt_section("judge")

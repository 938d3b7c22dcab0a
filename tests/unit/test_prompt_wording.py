"""Wording of prompts: nothing outdated is shown as new, and nothing is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from moot.calls.model_calls import ModelCall, Reply
from moot.claims.blackboard import render_blackboard
from moot.claims.claim_extraction import ClaimExtraction
from moot.claims.crux_cards import is_answered
from moot.claims.ledger_from_events import fold_events
from moot.claims.model_extraction import extract_claims
from moot.config import DebateConfig
from moot.judging.blinding import make_blinding
from moot.prompts.structured_calls import debater_lines, shown_entries
from moot.protocols.long_form import Moderated
from moot.protocols.prompt_context import members_text
from moot.protocols.schedule import ConsultModels
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import (
    COUNT_TOKENS,
    FERRIES,
    LEVY,
    NAMES,
    TOPIC,
    Board,
    new_claim_events,
    stance_event,
    stance_operation,
)

CONFIG = DebateConfig.model_validate(
    {
        "protocol": "moderated",
        "openings": "sequential",
        "model": "m",
        "debaters": [{"name": name} for name in NAMES.values()],
    }
)


def _add_question(board: Board, speaker: str, to: str, words: str) -> None:
    entry = board.add_entry(speaker, words)
    question = {"message_id": entry["id"], "to": to, "quote": words, "answered_in": "", "answer": ""}
    board.apply_operations([entry], "model", {"questions": [question]})


def test_outdated_ledger_names_its_last_message_and_hides_questions() -> None:
    board = Board()
    board.add_stance("bob", "asserts", FERRIES)
    _add_question(board, "bob", "ada", "Ada, which pier do you mean?")
    assert "# Where the debate stands, as" in board.prompt_section("ada")
    assert "Bob asks: “Ada, which pier do you mean?”" in board.prompt_section("ada")
    assert "Bob to Ada: “Ada, which pier do you mean?”" in board.prompt_section("the moderator")
    board.add_entry("ada", "The one at the mill.")
    stood = "# Where the debate stood at [m000002], as recorded"
    assert stood in board.prompt_section("ada", answering=["bob"])
    assert not any("which pier" in board.prompt_section(who) for who in ("ada", "the moderator"))


def test_crux_room_shows_only_questions_of_the_other_participant() -> None:
    board = Board()
    _add_question(board, "bob", "ada", "Ada, who pays the pilot?")
    _add_question(board, "cyd", "ada", "Ada, and who the buoys?")
    for alone in (True, False):
        shown = render_blackboard(
            board.state,
            "ada",
            max_tokens=400,
            count=COUNT_TOKENS,
            names=NAMES,
            answering=["cyd"],
            alone=alone,
        )
        assert "the buoys" in shown
        assert ("the pilot" in shown) is not alone


@pytest.mark.parametrize("condition", ["unless the fares halve", "as long as the piers stay"])
def test_condition_is_shown_once_in_its_own_words(condition: str) -> None:
    board = Board()
    entry = board.add_entry("ada", f"No, {condition}.")
    board.apply_operations(
        [entry],
        "model",
        {"events": [stance_operation(entry, "denies", "", quote=f"No, {condition}", condition=condition)]},
    )
    assert f"Ada: no, on a condition: “No, {condition}” [m000001]" in board.prompt_section("bob")
    entry = board.add_entry("ada", "Ferries? Not for us.")
    denied = stance_operation(entry, "denies", FERRIES, quote="Not for us", condition=condition)
    board.apply_operations([entry], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [denied]})
    assert f": no, on a condition: {condition} [m000002]" in board.prompt_section("bob", answering=["ada"])


def test_stances_with_different_conditions_are_not_shown_as_agreement() -> None:
    board = Board()
    tide = "if the tide allows"
    for who, kind, condition in (("ada", "asserts", ""), ("bob", "denies", ""), ("bob", "conditional", tide)):
        entry = board.add_entry(who, f"{who} speaks.")
        stance = stance_operation(entry, cast(Any, kind), FERRIES, quote=f"{who} speaks", condition=condition)
        board.apply_operations(
            [entry], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [stance]}
        )
    shown = board.prompt_section("ada", answering=["bob"])
    assert f"same side, different conditions: {FERRIES}: you yes; Bob yes, on a condition: {tide}" in shown
    assert "agree" not in shown


def test_dispute_is_shown_once_to_a_debater() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_stance("bob", "denies", FERRIES)
    board.add_stance("bob", "asserts", LEVY)
    for who, answering in (("ada", []), ("ada", ["cyd"]), ("cyd", ["bob"])):
        assert board.prompt_section(who, answering=answering).count(FERRIES) == 1, (who, answering)
    assert "(you [m000001] yes; Bob [m000002] no)" in board.prompt_section("ada")


def test_conceded_claim_is_shown_once() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_stance("bob", "concedes", FERRIES)
    board.add_stance("ada", "asserts", LEVY)
    shown = board.prompt_section("the judge")
    assert shown.count(FERRIES) == shown.count(LEVY) == 1
    assert f"Conceded:\n- Bob: {FERRIES} [m000002]" in shown


def test_withdrawn_claim_is_not_listed_as_undisputed() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_stance("ada", "withdraws", FERRIES)
    shown = board.prompt_section("the judge")
    assert "Not disputed now" not in shown
    assert f"Changes of mind:\n- Ada: {FERRIES}: “I say of this: withdraws.” [m000002]" in shown


def test_crux_card_does_not_settle_a_claim_that_a_third_debater_denies() -> None:
    sides = {who: {"answer": "yes", "reasoning": "", "falsifier": ""} for who in ("ada", "bob")}
    card: Any = {"claim": "p001", "sides": sides, "resolved": True, "message_ids": ["m000009"]}
    between = [*new_claim_events("p001"), stance_event(1, "ada", "asserts"), stance_event(2, "bob", "denies")]
    assert is_answered(fold_events(between), "p001", [card])
    assert fold_events(between).status("p001") == "disputed"
    third = [
        *new_claim_events("p001"),
        stance_event(1, "ada", "asserts"),
        stance_event(2, "bob", "asserts"),
        stance_event(3, "cyd", "denies"),
    ]
    assert not is_answered(fold_events(third), "p001", [card])


def test_blinding_a_role_removes_its_article() -> None:
    blinding = make_blinding({"pilot": "Pilot", "owner": "Owner"})
    pilot, owner = blinding.labels["pilot"], blinding.labels["owner"]
    text = "As the Pilot [m000001] says, The Owner [m000002] pays; the tides do not."
    assert (
        blinding.blind_text(text) == f"As {pilot} [m000001] says, {owner} [m000002] pays; the tides do not."
    )


def _moderator_call(*messages: tuple[str, str]) -> ModelCall:
    entries = [make_entry(0, "user", "topic", TOPIC)]
    entries += [make_entry(n, who, "speech", text) for n, (who, text) in enumerate(messages, 1)]
    state = {"topic": TOPIC, "config": CONFIG.to_json(), "full_transcript": entries}
    step = Moderated().next_step(cast(ConversationState, {**state, "turn_count": len(messages)}), CONFIG)
    assert isinstance(step, ConsultModels)
    (call,) = step.calls()
    return call


def test_moderator_sees_an_empty_debate_and_later_the_latest_speakers() -> None:
    first = _moderator_call()
    assert [message["content"] for message in first.messages[1:]] == ["There are no messages yet."]
    assert "Latest speakers, oldest first: nobody yet" in first.messages[0]["content"]
    later = _moderator_call(("ada", "Close them."), ("cyd", "Keep them."), ("ada", "Why?"))
    assert "Latest speakers, oldest first: Ada → Cyd → Ada" in later.messages[0]["content"]


def test_long_message_is_cut_while_short_messages_stay_whole() -> None:
    entries = [make_entry(1, "ada", "speech", "short " * 30), make_entry(2, "bob", "speech", "long " * 300)]
    short, long = shown_entries(entries, CONFIG, 200, COUNT_TOKENS)
    assert "cut" not in short
    assert "cut" in long
    assert COUNT_TOKENS(short) + COUNT_TOKENS(long) <= 200


def _extraction_calls(
    extraction: ClaimExtraction, entries: Sequence[Entry], operations: dict[str, Any]
) -> list[ModelCall]:
    """Return the calls of an extraction. The first call returns `operations`, the second no checks."""
    lists = ("claims", "events", "challenges", "questions", "answers", "evidence", "gaps")
    data: dict[str, Any] = {name: [] for name in (*lists, "same", "retractions")}
    flow, calls = extract_claims(extraction, CONFIG, entries, COUNT_TOKENS), list[ModelCall]()
    asked = next(flow)
    try:
        while True:
            calls += asked
            reply = {"reasoning": "", **data, **operations} if len(calls) == 1 else {"checks": []}
            asked = flow.send([Reply(data=reply)])
    except StopIteration:
        return calls


def test_verification_call_shows_whole_messages_and_all_quotations() -> None:
    messages = [
        make_entry(n, who, "speech", f"{'So it is. ' * 60}Point {n}.") for n, who in ((1, "ada"), (2, "bob"))
    ]
    extraction = ClaimExtraction([], TOPIC, {entry["id"]: entry for entry in messages}, list(NAMES), "model")
    for number, entry in enumerate(messages, 1):
        new: dict[str, Any] = {"claims": []}
        events = [stance_operation(entry, "asserts", "", quote=f"Point {number}")]
        if number == 2:
            events.append(stance_operation(entry, "denies", "", quote="So it is"))
        calls = _extraction_calls(extraction, [entry], {**new, "events": events})
        (shown,) = [message["content"] for message in calls[1].messages[1:]]
        assert entry["content"] in shown
        assert shown.count("Quotation:") == number
        assert "[…cut…]" not in shown
    assert "Claim: the topic itself, answered with yes" in shown


def test_quotation_of_an_earlier_message_is_attributed_to_its_author() -> None:
    before = make_entry(1, "ada", "speech", "Fog keeps the boats in port for forty days.")
    now = make_entry(
        2, "bob", "speech", "“Fog keeps the boats in port” [m000001] is wrong: it was nine days."
    )
    extraction = ClaimExtraction(
        [], TOPIC, {each["id"]: each for each in (before, now)}, list(NAMES), "model"
    )
    events = [
        stance_operation(before, "asserts", "x", quote="Fog keeps the boats in port"),
        stance_operation(now, "denies", "x", quote="is wrong: it was nine days"),
    ]
    opening = [{"ref": "n1", "text": "Fog keeps boats in."}]
    call = _extraction_calls(extraction, [now], {"claims": opening, "events": events})[0]
    assert call.messages[1]["content"].startswith(
        f"(for context)\nAda [m000001]: <<{CONFIG.fence}\nFog keeps"
    )
    assert extraction.ledger.status("p001") == "disputed"
    assert extraction.ledger.stance("ada", "p001") is not None


def test_shortened_ledger_names_the_shortened_sections() -> None:
    board = Board()
    for number in range(12):
        board.add_stance("ada", "asserts", f"Storm {number} would sink a barge of class {number}")
    whole, cut = (board.prompt_section("the judge", max_tokens) for max_tokens in (2_000, 200))
    assert "Left out" not in whole
    assert cut.endswith(
        "\nLeft out for lack of space, wholly or in part:\n- Claims that nobody has answered yet"
    )
    assert COUNT_TOKENS(cut) <= 200


def test_shortened_ledger_keeps_changes_of_all_debaters() -> None:
    board = Board()
    for who in ("ada", "bob"):  # all changes by Ada are older than those by Bob
        for number in range(6):
            claim = f"Storm {number} of {who} would sink a barge"
            board.add_stance(who, "asserts", claim)
            board.add_stance(who, "withdraws", claim)
    whole, cut = (board.prompt_section("the judge", max_tokens) for max_tokens in (2_000, 260))
    assert whole.count(", before: “") == 12
    changes = cut.partition("Changes of mind:\n")[2]
    assert abs(changes.count("- Ada: ") - changes.count("- Bob: ")) <= 1
    assert cut.count(", before: “") <= 1


def test_later_change_refers_to_the_earlier_one_by_id() -> None:
    board = Board()
    first, second, _ = (board.add_stance("ada", kind, FERRIES) for kind in ("asserts", "denies", "asserts"))
    shown = board.prompt_section("the judge")
    assert shown.count("“I say of this: denies.”") == 1
    assert f", before: [{second['id']}]" in shown
    assert f", before: “I say of this: asserts.” [{first['id']}]" in shown


def test_claim_of_one_debater_is_listed_as_unanswered() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_stance("bob", "asserts", FERRIES)
    board.add_stance("ada", "asserts", LEVY)
    shown = board.prompt_section("the judge")
    assert f"Not disputed now:\n- {FERRIES} (Ada [m000001] and Bob [m000002] yes)" in shown
    assert f"Claims that nobody has answered yet:\n- {LEVY} (Ada [m000003] yes)" in shown


def test_condition_replaces_a_quotation_that_lacks_it() -> None:
    board = Board()
    entry = board.add_entry("ada", "Yes, once that is settled.")
    stance = stance_operation(
        entry, "conditional", "", quote="once that is settled", condition="if the levy falls"
    )
    board.apply_operations([entry], "model", {"events": [stance]})
    assert "- Ada: yes, on a condition: if the levy falls [m000001]" in board.prompt_section("bob")


def test_concession_in_the_last_round_is_listed_once() -> None:
    board = Board()
    board.add_stance("ada", "asserts", FERRIES)
    board.add_stance("bob", "concedes", FERRIES)
    board.add_entry("cyd", "Well.", round_no=2)
    shown = board.prompt_section("cyd", answering=["bob"])
    assert "In the last round" not in shown
    assert f"Bob, conceded: {FERRIES} [m000002]" in shown
    assert "In the last round" in board.prompt_section("cyd", answering=["ada"])


def test_debater_list_omits_a_role_that_repeats_the_name() -> None:
    debaters = [{"name": "Architect", "role": "architect"}, {"name": "Ann", "role": "pilot", "stance": "no"}]
    config = DebateConfig.model_validate({"debaters": debaters})
    assert debater_lines(config) == "- architect: Architect\n- ann: Ann (pilot; stance: no)"
    assert members_text(config) == "- Architect\n- Ann (pilot; stance: no)"

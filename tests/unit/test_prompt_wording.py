"""Wording of requests: nothing outdated is presented as new, and nothing is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from moot.calls.effects import ModelCall, Reply
from moot.claims.claim_extraction import ClaimExtraction
from moot.claims.crux_cards import is_answered
from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import render_blackboard
from moot.claims.model_extraction import extract_claims
from moot.judging.blinding import make_blinding
from moot.prompts.structured_calls import debater_lines, shown_entries
from moot.protocols.base import ConsultModels
from moot.protocols.long_form import Moderated
from moot.protocols.prompt_context import members_text
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import (
    COUNT,
    FERRIES,
    LEVY,
    NAMES,
    TOPIC,
    Board,
    event,
    plain_event,
    topic_event,
)

CONFIG = DebateConfig.model_validate(
    {
        "protocol": "moderated",
        "openings": "sequential",
        "model": "m",
        "debaters": [{"name": name} for name in NAMES.values()],
    }
)


def _asked(board: Board, maker: str, to: str, words: str) -> None:
    entry = board.entry(maker, words)
    question = {"message_id": entry["id"], "to": to, "quote": words, "answered_in": "", "answer": ""}
    board.take([entry], "model", {"questions": [question]})


def test_a_view_says_where_the_ledger_ends_and_nothing_of_what_may_have_been_answered_since() -> None:
    board = Board()
    board.note("bob", "asserts", FERRIES)
    _asked(board, "bob", "ada", "Ada, which pier do you mean?")
    assert "# Where the debate stands, as" in board.prompt_section("ada")
    assert "Bob asks: “Ada, which pier do you mean?”" in board.prompt_section("ada")
    assert "Bob to Ada: “Ada, which pier do you mean?”" in board.prompt_section("the moderator")
    board.entry("ada", "The one at the mill.")
    stood = "# Where the debate stood at [m000002], as recorded"
    assert stood in board.prompt_section("ada", answering=["bob"])
    assert not any("which pier" in board.prompt_section(who) for who in ("ada", "the moderator"))


def test_in_a_room_only_what_the_other_one_there_asked_waits_for_an_answer() -> None:
    board = Board()
    _asked(board, "bob", "ada", "Ada, who pays the pilot?")
    _asked(board, "cyd", "ada", "Ada, and who the buoys?")
    for alone in (True, False):
        shown = render_blackboard(
            board.state, "ada", max_tokens=400, count=COUNT, names=NAMES, answering=["cyd"], alone=alone
        )
        assert "the buoys" in shown
        assert ("the pilot" in shown) is not alone


@pytest.mark.parametrize("condition", ["unless the fares halve", "as long as the piers stay"])
def test_a_condition_stands_as_it_was_put_and_not_twice(condition: str) -> None:
    board = Board()
    entry = board.entry("ada", f"No, {condition}.")
    board.take(
        [entry],
        "model",
        {"events": [event(entry, "denies", "", quote=f"No, {condition}", condition=condition)]},
    )
    assert f"Ada: no, on a condition: “No, {condition}” [m000001]" in board.prompt_section("bob")
    entry = board.entry("ada", "Ferries? Not for us.")
    denied = event(entry, "denies", FERRIES, quote="Not for us", condition=condition)
    board.take([entry], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [denied]})
    assert f": no, on a condition: {condition} [m000002]" in board.prompt_section("bob", answering=["ada"])


def test_whom_a_condition_divides_does_not_agree_without_a_word_of_it() -> None:
    board = Board()
    tide = "if the tide allows"
    for who, kind, condition in (("ada", "asserts", ""), ("bob", "denies", ""), ("bob", "conditional", tide)):
        entry = board.entry(who, f"{who} speaks.")
        said = event(entry, cast(Any, kind), FERRIES, quote=f"{who} speaks", condition=condition)
        board.take([entry], "model", {"claims": [{"ref": "n1", "text": FERRIES}], "events": [said]})
    shown = board.prompt_section("ada", answering=["bob"])
    assert f"same side, different conditions: {FERRIES}: you yes; Bob yes, on a condition: {tide}" in shown
    assert "agree" not in shown


def test_a_dispute_is_told_once_in_a_debater_s_view() -> None:
    board = Board()
    board.note("ada", "asserts", FERRIES)
    board.note("bob", "denies", FERRIES)
    board.note("bob", "asserts", LEVY)
    for who, answering in (("ada", []), ("ada", ["cyd"]), ("cyd", ["bob"])):
        assert board.prompt_section(who, answering=answering).count(FERRIES) == 1, (who, answering)
    assert "(you [m000001] yes; Bob [m000002] no)" in board.prompt_section("ada")


def test_an_agreed_claim_that_somebody_conceded_is_told_once() -> None:
    board = Board()
    board.note("ada", "asserts", FERRIES)
    board.note("bob", "concedes", FERRIES)
    board.note("ada", "asserts", LEVY)
    shown = board.prompt_section("the judge")
    assert shown.count(FERRIES) == shown.count(LEVY) == 1
    assert f"Conceded:\n- Bob: {FERRIES} [m000002]" in shown


def test_what_was_only_withdrawn_is_not_among_what_is_held() -> None:
    board = Board()
    board.note("ada", "asserts", FERRIES)
    board.note("ada", "withdraws", FERRIES)
    shown = board.prompt_section("the judge")
    assert "Not disputed now" not in shown
    assert f"Changes of mind:\n- Ada: {FERRIES}: “I say of this: withdraws.” [m000002]" in shown


def test_a_room_of_two_settles_nothing_for_a_third_who_still_says_no() -> None:
    sides = {who: {"answer": "yes", "reasoning": "", "falsifier": ""} for who in ("ada", "bob")}
    card: Any = {"claim": "p001", "sides": sides, "resolved": True, "message_ids": ["m000009"]}
    between = [*topic_event("p001"), plain_event(1, "ada", "asserts"), plain_event(2, "bob", "denies")]
    assert is_answered(fold_events(between), "p001", [card])
    assert fold_events(between).status("p001") == "disputed"
    third = [
        *topic_event("p001"),
        plain_event(1, "ada", "asserts"),
        plain_event(2, "bob", "asserts"),
        plain_event(3, "cyd", "denies"),
    ]
    assert not is_answered(fold_events(third), "p001", [card])


def test_a_blinded_role_has_no_article_left_before_its_label() -> None:
    blinding = make_blinding({"pilot": "Pilot", "owner": "Owner"})
    pilot, owner = blinding.labels["pilot"], blinding.labels["owner"]
    said = "As the Pilot [m000001] says, The Owner [m000002] pays; the tides do not."
    assert (
        blinding.blind_text(said) == f"As {pilot} [m000001] says, {owner} [m000002] pays; the tides do not."
    )


def _moderator_call(*speeches: tuple[str, str]) -> ModelCall:
    entries = [make_entry(0, "user", "topic", TOPIC)]
    entries += [make_entry(n, who, "speech", text) for n, (who, text) in enumerate(speeches, 1)]
    state = {"topic": TOPIC, "config": CONFIG.to_json(), "full_transcript": entries}
    step = Moderated().next_step(cast(ConversationState, {**state, "turn_count": len(speeches)}), CONFIG)
    assert isinstance(step, ConsultModels)
    (call,) = step.calls()
    return call


def test_a_moderator_is_told_that_nothing_was_said_and_later_who_spoke() -> None:
    first = _moderator_call()
    assert [message["content"] for message in first.messages[1:]] == ["There are no messages yet."]
    assert "Latest speakers, oldest first: nobody yet" in first.messages[0]["content"]
    later = _moderator_call(("ada", "Close them."), ("cyd", "Keep them."), ("ada", "Why?"))
    assert "Latest speakers, oldest first: Ada → Cyd → Ada" in later.messages[0]["content"]


def test_short_messages_are_shown_whole_where_a_long_one_is_cut() -> None:
    entries = [make_entry(1, "ada", "speech", "short " * 30), make_entry(2, "bob", "speech", "long " * 300)]
    short, long = shown_entries(entries, CONFIG, 200, COUNT)
    assert "cut" not in short
    assert "cut" in long
    assert COUNT(short) + COUNT(long) <= 200


def _read(minutes: ClaimExtraction, entries: Sequence[Entry], found: dict[str, Any]) -> list[ModelCall]:
    """Return the calls of one reading, of which the first finds this, and the second nothing."""
    lists = ("claims", "events", "challenges", "questions", "answers", "evidence", "gaps")
    data: dict[str, Any] = {name: [] for name in (*lists, "same", "retractions")}
    flow, calls = extract_claims(minutes, CONFIG, entries, COUNT), list[ModelCall]()
    asked = next(flow)
    try:
        while True:
            calls += asked
            reply = {"reasoning": "", **data, **found} if len(calls) == 1 else {"checks": []}
            asked = flow.send([Reply(data=reply)])
    except StopIteration:
        return calls


def test_a_second_look_sees_each_message_whole_in_order_and_no_note_twice() -> None:
    said = [
        make_entry(n, who, "speech", f"{'So it is. ' * 60}Point {n}.") for n, who in ((1, "ada"), (2, "bob"))
    ]
    minutes = ClaimExtraction([], TOPIC, {entry["id"]: entry for entry in said}, list(NAMES), "model")
    for number, entry in enumerate(said, 1):
        new: dict[str, Any] = {"claims": []}
        events = [event(entry, "asserts", "", quote=f"Point {number}")]
        if number == 2:
            events.append(event(entry, "denies", "", quote="So it is"))
        calls = _read(minutes, [entry], {**new, "events": events})
        (shown,) = [message["content"] for message in calls[1].messages[1:]]
        assert entry["content"] in shown
        assert shown.count("Quotation:") == number
        assert "[…cut…]" not in shown
    assert "Claim: the topic itself, answered with yes" in shown


def test_words_that_a_message_quotes_from_an_earlier_one_may_be_noted_as_that_one_s() -> None:
    before = make_entry(1, "ada", "speech", "Fog keeps the boats in port for forty days.")
    now = make_entry(
        2, "bob", "speech", "“Fog keeps the boats in port” [m000001] is wrong: it was nine days."
    )
    minutes = ClaimExtraction([], TOPIC, {each["id"]: each for each in (before, now)}, list(NAMES), "model")
    events = [
        event(before, "asserts", "x", quote="Fog keeps the boats in port"),
        event(now, "denies", "x", quote="is wrong: it was nine days"),
    ]
    opening = [{"ref": "n1", "text": "Fog keeps boats in."}]
    call = _read(minutes, [now], {"claims": opening, "events": events})[0]
    assert call.messages[1]["content"].startswith(
        f"(for context)\nAda [m000001]: <<{CONFIG.fence}\nFog keeps"
    )
    assert minutes.ledger.status("p001") == "disputed"
    assert minutes.ledger.stance("ada", "p001") is not None


def test_a_ledger_that_lacks_lines_names_their_sections() -> None:
    board = Board()
    for number in range(12):
        board.note("ada", "asserts", f"Storm {number} would sink a barge of class {number}")
    whole, cut = (board.prompt_section("the judge", most) for most in (2_000, 200))
    assert "Left out" not in whole
    assert cut.endswith(
        "\nLeft out for lack of space, wholly or in part:\n- Claims that nobody has answered yet"
    )
    assert COUNT(cut) <= 200


def test_a_short_ledger_lists_changes_of_all_debaters_before_what_they_held_earlier() -> None:
    board = Board()
    for who in ("ada", "bob"):  # all changes of Ada are older than those of Bob
        for number in range(6):
            claim = f"Storm {number} of {who} would sink a barge"
            board.note(who, "asserts", claim)
            board.note(who, "withdraws", claim)
    whole, cut = (board.prompt_section("the judge", most) for most in (2_000, 260))
    assert whole.count(", before: “") == 12
    changes = cut.partition("Changes of mind:\n")[2]
    assert abs(changes.count("- Ada: ") - changes.count("- Bob: ")) <= 1
    assert cut.count(", before: “") <= 1


def test_a_later_change_refers_to_the_earlier_one_instead_of_quoting_it_again() -> None:
    board = Board()
    first, second, _ = (board.note("ada", kind, FERRIES) for kind in ("asserts", "denies", "asserts"))
    shown = board.prompt_section("the judge")
    assert shown.count("“I say of this: denies.”") == 1
    assert f", before: [{second['id']}]" in shown
    assert f", before: “I say of this: asserts.” [{first['id']}]" in shown


def test_a_claim_of_one_debater_is_not_among_the_undisputed_ones() -> None:
    board = Board()
    board.note("ada", "asserts", FERRIES)
    board.note("bob", "asserts", FERRIES)
    board.note("ada", "asserts", LEVY)
    shown = board.prompt_section("the judge")
    assert f"Not disputed now:\n- {FERRIES} (Ada [m000001] and Bob [m000002] yes)" in shown
    assert f"Claims that nobody has answered yet:\n- {LEVY} (Ada [m000003] yes)" in shown


def test_a_condition_that_the_quotation_lacks_replaces_the_quotation() -> None:
    board = Board()
    entry = board.entry("ada", "Yes, once that is settled.")
    said = event(entry, "conditional", "", quote="once that is settled", condition="if the levy falls")
    board.take([entry], "model", {"events": [said]})
    assert "- Ada: yes, on a condition: if the levy falls [m000001]" in board.prompt_section("bob")


def test_what_somebody_conceded_in_the_last_round_is_listed_once() -> None:
    board = Board()
    board.note("ada", "asserts", FERRIES)
    board.note("bob", "concedes", FERRIES)
    board.entry("cyd", "Well.", round_no=2)
    shown = board.prompt_section("cyd", answering=["bob"])
    assert "In the last round" not in shown
    assert f"Bob, conceded: {FERRIES} [m000002]" in shown
    assert "In the last round" in board.prompt_section("cyd", answering=["ada"])


def test_a_debater_s_role_that_repeats_the_name_is_left_out_and_the_stance_is_named() -> None:
    debaters = [{"name": "Architect", "role": "architect"}, {"name": "Ann", "role": "pilot", "stance": "no"}]
    config = DebateConfig.model_validate({"debaters": debaters})
    assert debater_lines(config) == "- architect: Architect\n- ann: Ann (pilot; stance: no)"
    assert members_text(config) == "- Architect\n- Ann (pilot; stance: no)"

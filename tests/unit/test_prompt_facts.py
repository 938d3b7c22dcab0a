"""Prompts state facts correctly: order, speaker, coverage and citations."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import stances_text
from moot.claims.round_records import round_records
from moot.config.config_files import make_config
from moot.judging.blinding import make_blinding
from moot.memory.summarizers.llm import lacking_points
from moot.memory.summarizers.rule_based import fold, render
from moot.protocols.long_form import INSTRUCTIONS, UNREAD, opening_step, turn_step
from moot.protocols.prompt_context import rules_text
from moot.state.claim_events import StanceKind
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import new_claim_events, stance_event

NAMES = {"una": "Una", "vic": "Vic"}
TOPIC = "Should the island build a second ferry?"


def _message(seq: int, speaker: str, content: str) -> Entry:
    return make_entry(seq, speaker, "speech", content)


def test_rule_based_summary_keeps_the_order_of_sentences() -> None:
    words = (
        "Winter storms stopped the boat. No other way across was open then. A bridge costs forty times more."
    )
    summary = fold(None, [_message(1, "una", words)], max_tokens=900, count=len, names=NAMES)
    assert [line[2:8] for line in render(summary, NAMES).splitlines()[1:]] == ["Winter", "No oth", "A brid"]


def test_key_points_have_only_numbers_and_speakers_missing_in_the_prose() -> None:
    text = "Storms stopped the boat for weeks in winter. Nurses waited 36 hours on the far shore, see 2A.3."
    points = fold(None, [_message(1, "una", text)], max_tokens=900, count=len, names=NAMES)
    lacking = partial(lacking_points, points, names=NAMES)
    assert [each["text"][:6] for each in lacking("Una: storms keep the boat in port.")["points"]] == [
        "Nurses"
    ]
    assert lacking("Una: nurses waited 36 hours.")["points"] == []
    assert len(lacking("The boat waited 36 hours.")["points"]) == 1  # Una is not named
    assert lacking("Storms.", current={7})["points"] == []  # a later message replaces it


def test_denied_claim_is_disputed_only_after_somebody_asserts_it() -> None:
    events = [
        stance_event(1, "ada", "denies"),
        stance_event(2, "ada", "denies"),
        stance_event(3, "bob", "asserts"),
    ]
    transcript = [{**_message(seq, "ada", "…"), "round": seq} for seq in range(4)]
    records = round_records(fold_events([*new_claim_events("p001"), *events]), transcript)  # type: ignore[arg-type]  # entries
    assert [(each["round"], each["new_disputes"]) for each in records] == [(1, []), (2, []), (3, ["p001"])]


def test_blinding_neutralizes_only_pronouns_of_debaters() -> None:
    blind = make_blinding(NAMES)
    text = "Vic has a point. But she counts nothing. Her figure is old. Boats rust. She sails.\nHe rows."
    label = blind.label_of("vic")
    assert blind.blind_text(text) == (
        f"{label} has a point. But he or she counts nothing. His or her figure is old. Boats rust. "
        "She sails.\nHe rows."
    )


@pytest.mark.parametrize(("first", "side"), [("asserts", "no"), ("denies", "yes")])
def test_concession_is_shown_with_the_new_side(first: StanceKind, side: str) -> None:
    other: StanceKind = "denies" if first == "asserts" else "asserts"
    events = [
        stance_event(1, "ada", first),
        stance_event(2, "bob", other),
        stance_event(3, "ada", "concedes"),
    ]
    stances = stances_text(fold_events([*new_claim_events("p001"), *events]), {}, "p001")
    assert stances == f"ada [m000003] conceded: {side}; bob [m000002] {side}"


@pytest.mark.parametrize("order", ["", "The moderator asks you: Answer Una on the storms."])
def test_moderators_request_replaces_the_default_argument_instruction(order: str) -> None:
    config = make_config(
        {"protocol": "moderated", "debaters": [{"name": "Una"}, {"name": "Vic"}], "turns": 9}
    )
    state: Any = {"turn_count": 3, "full_transcript": [_message(1, "una", "Yes."), _message(2, "vic", "No.")]}
    (turn,) = turn_step(state, config, "vic", request=order)["turns"]
    assert (INSTRUCTIONS["argument"] in turn["instruction"]) is not bool(order)
    assert order in turn["instruction"]


def test_independent_opening_says_that_no_message_was_read() -> None:
    debaters = [{"name": "Una"}, {"name": "Vic"}]
    both, alone = (make_config({"debaters": debaters[:n], "turns": 4}) for n in (2, 1))
    assert all(UNREAD in turn["instruction"] for turn in opening_step(both)["turns"])
    assert UNREAD not in opening_step(alone)["turns"][0]["instruction"]


def test_summary_labels_notices_of_the_program() -> None:
    notice = make_entry(1, "moot", "notice", "One answer is missing from the transcript today.")
    summary = render(fold(None, [notice], max_tokens=900, count=len, names=NAMES), NAMES)
    assert summary.startswith("Note by the program:")


def test_rules_name_the_language_to_write_in() -> None:
    assert "- Write in German." in rules_text(make_config({"language": "German"}))

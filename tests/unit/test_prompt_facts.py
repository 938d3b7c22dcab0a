"""Statements in requests are true: order, speaker, coverage and citations."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from moot.claims.ledger_from_events import fold_events
from moot.claims.ledger_rendering import stances_text
from moot.documents import _rounds
from moot.judging.blinding import make_blinding
from moot.memory.summarizers.llm import lacking_points
from moot.memory.summarizers.rule_based import fold, render
from moot.protocols.long_form import INSTRUCTIONS, UNREAD, opening_step, turn_step
from moot.protocols.prompt_context import rules_text
from moot.state.claim_events import StanceKind
from moot.state.config.config_files import make_config
from moot.state.entries import Entry, make_entry
from tests.support.ledger_state import plain_event, topic_event

NAMES = {"una": "Una", "vic": "Vic"}
TOPIC = "Should the island build a second ferry?"


def _said(seq: int, who: str, content: str) -> Entry:
    return make_entry(seq, who, "speech", content)


def test_a_summary_by_rule_tells_a_message_in_the_order_in_which_it_was_said() -> None:
    words = (
        "Winter storms stopped the boat. No other way across was open then. A bridge costs forty times more."
    )
    told = fold(None, [_said(1, "una", words)], max_tokens=900, count=len, names=NAMES)
    assert [line[2:8] for line in render(told, NAMES).splitlines()[1:]] == ["Winter", "No oth", "A brid"]


def test_beside_the_prose_only_points_with_numbers_or_speakers_that_it_lacks_are_told() -> None:
    said = "Storms stopped the boat for weeks in winter. Nurses waited 36 hours on the far shore, see 2A.3."
    points = fold(None, [_said(1, "una", said)], max_tokens=900, count=len, names=NAMES)
    lacking = partial(lacking_points, points, names=NAMES)
    assert [each["text"][:6] for each in lacking("Una: storms keep the boat in port.")["points"]] == [
        "Nurses"
    ]
    assert lacking("Una: nurses waited 36 hours.")["points"] == []
    assert len(lacking("The boat waited 36 hours.")["points"]) == 1  # Una is not named
    assert lacking("Storms.", current={7})["points"] == []  # a later message replaces it


def test_a_no_is_a_dispute_once_somebody_says_yes() -> None:
    said = [
        plain_event(1, "ada", "denies"),
        plain_event(2, "ada", "denies"),
        plain_event(3, "bob", "asserts"),
    ]
    transcript = [{**_said(seq, "ada", "…"), "round": seq} for seq in range(4)]
    records = _rounds(fold_events([*topic_event("p001"), *said]), transcript)  # type: ignore[arg-type]  # entries
    assert [(each["round"], each["new_disputes"]) for each in records] == [(1, []), (2, []), (3, ["p001"])]


def test_pronouns_that_go_on_about_a_debater_are_neutral_and_others_stay() -> None:
    blind = make_blinding(NAMES)
    text = "Vic has a point. But she counts nothing. Her figure is old. Boats rust. She sails.\nHe rows."
    label = blind.label_of("vic")
    assert blind.blind_text(text) == (
        f"{label} has a point. But he or she counts nothing. His or her figure is old. Boats rust. "
        "She sails.\nHe rows."
    )


@pytest.mark.parametrize(("first", "side"), [("asserts", "no"), ("denies", "yes")])
def test_who_conceded_is_told_with_the_side_that_it_now_takes(first: StanceKind, side: str) -> None:
    other: StanceKind = "denies" if first == "asserts" else "asserts"
    said = [plain_event(1, "ada", first), plain_event(2, "bob", other), plain_event(3, "ada", "concedes")]
    told = stances_text(fold_events([*topic_event("p001"), *said]), {}, "p001")
    assert told == f"ada [m000003] conceded: {side}; bob [m000002] {side}"


@pytest.mark.parametrize("order", ["", "The moderator asks you: Answer Una on the storms."])
def test_a_moderators_order_stands_in_the_place_of_what_an_argument_is_asked_for(order: str) -> None:
    config = make_config(
        {"protocol": "moderated", "debaters": [{"name": "Una"}, {"name": "Vic"}], "turns": 9}
    )
    state: Any = {"turn_count": 3, "full_transcript": [_said(1, "una", "Yes."), _said(2, "vic", "No.")]}
    (turn,) = turn_step(state, config, "vic", request=order)["turns"]
    assert (INSTRUCTIONS["argument"] in turn["instruction"]) is not bool(order)
    assert order in turn["instruction"]


def test_an_independent_opening_says_that_nothing_was_read_yet() -> None:
    debaters = [{"name": "Una"}, {"name": "Vic"}]
    both, alone = (make_config({"debaters": debaters[:n], "turns": 4}) for n in (2, 1))
    assert all(UNREAD in turn["instruction"] for turn in opening_step(both)["turns"])
    assert UNREAD not in opening_step(alone)["turns"][0]["instruction"]


def test_a_summary_calls_the_program_and_people_as_messages_do() -> None:
    said = make_entry(1, "moot", "notice", "One answer is missing from the transcript today.")
    told = render(fold(None, [said], max_tokens=900, count=len, names=NAMES), NAMES)
    assert told.startswith("Note by the program:")


def test_debaters_are_told_in_which_language_to_write() -> None:
    assert "- Write in German." in rules_text(make_config({"language": "German"}))

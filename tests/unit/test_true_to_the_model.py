"""What a request says is so: in order, of whom it is said, up to where, and only what can be followed."""

from __future__ import annotations

from typing import Any

import pytest

from moot.graph.documents.making import _rounds
from moot.nodes.blackboard.board_words import stances_text
from moot.nodes.blackboard.by_rule import RuleReader
from moot.nodes.blackboard.folding import fold_notes
from moot.nodes.judging.blinding import make_blinding
from moot.nodes.memory.summarizers.notes import untold_points
from moot.nodes.memory.summarizers.points_layout import render
from moot.nodes.memory.summarizers.rule_based import fold
from moot.nodes.protocols.long_form.long_form import ASKS, speech_step
from moot.nodes.reading.standpoints import standpoint
from moot.state.config.config_files import make_config
from moot.state.entries import Entry, make_entry
from moot.state.ledger import EventKind
from tests.support.board import opened, plain

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


def test_a_key_point_that_the_prose_tells_in_other_words_is_not_told_again() -> None:
    said = "Storms stopped the boat for weeks in winter. Nurses waited two nights on the far shore."
    points = fold(None, [_said(1, "una", said)], max_tokens=900, count=len, names=NAMES)
    prose = "Una: storms keep the winter boat in port. [m000001]"
    assert [each["text"][:6] for each in untold_points(points, prose)["points"]] == ["Nurses"]


def test_a_no_is_a_dispute_once_somebody_says_yes() -> None:
    said = [plain(1, "ada", "denies"), plain(2, "ada", "denies"), plain(3, "bob", "asserts")]
    transcript = [{**_said(seq, "ada", "…"), "round": seq} for seq in range(4)]
    records = _rounds(fold_notes([*opened("p001"), *said]), transcript)  # type: ignore[arg-type]  # entries
    assert [(each["round"], each["new_disputes"]) for each in records] == [(1, []), (2, []), (3, ["p001"])]


def test_what_is_asked_supposed_granted_or_anothers_is_no_evidence_of_the_speakers_own() -> None:
    words = (
        "Vic, your survey of 900 islanders asks nobody over seventy. I would give way if a trial of 30 days "
        "paid for itself. Who pays the 4 million? I concede that 12 % of trips were empty. In March we "
        "counted 310 cars a day."
    )
    ops = RuleReader(NAMES, TOPIC, fold_notes([], TOPIC)).read([_said(1, "una", words)])
    assert [each["quote"] for each in ops["evidence"]] == ["In March we counted 310 cars a day."]


def test_a_concession_that_does_not_say_of_what_is_not_noted() -> None:
    ops = RuleReader(NAMES, TOPIC, fold_notes([], TOPIC)).read([_said(1, "una", "So I stand corrected.")])
    assert not ops.get("events")


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        ("I want the island to have night sailings, not a second ferry.", TOPIC),
        (
            "I want every parish to vote on it.",
            "Should parish councils close rural chapels, halls and schools?",
        ),
    ],
)
def test_wanting_something_else_is_no_yes(words: str, topic: str) -> None:
    assert standpoint(words, topic) is None


def test_pronouns_that_go_on_about_a_debater_are_neutral_and_others_stay() -> None:
    blind = make_blinding(NAMES)
    text = "Vic has a point. But she counts nothing. Her figure is old. Boats rust. She sails.\nHe rows."
    label = blind.label_of("vic")
    assert blind.blind_text(text) == (
        f"{label} has a point. But he or she counts nothing. His or her figure is old. Boats rust. "
        "She sails.\nHe rows."
    )


@pytest.mark.parametrize(("first", "side"), [("asserts", "no"), ("denies", "yes")])
def test_who_conceded_is_told_with_the_side_that_it_now_takes(first: EventKind, side: str) -> None:
    other: EventKind = "denies" if first == "asserts" else "asserts"
    said = [plain(1, "ada", first), plain(2, "bob", other), plain(3, "ada", "concedes")]
    told = stances_text(fold_notes([*opened("p001"), *said]), {}, "p001")
    assert told == f"ada [m000003] conceded: {side}; bob [m000002] {side}"


@pytest.mark.parametrize("order", ["", "The moderator gives you the floor: Answer Una on the storms."])
def test_a_moderators_order_stands_in_the_place_of_what_an_argument_is_asked_for(order: str) -> None:
    config = make_config(
        {"protocol": "moderated", "debaters": [{"name": "Una"}, {"name": "Vic"}], "turns": 9}
    )
    state: Any = {"turn_count": 3, "full_transcript": [_said(1, "una", "Yes."), _said(2, "vic", "No.")]}
    (floor,) = speech_step(state, config, "vic", order=order)["floors"]
    assert (ASKS["argument"] in floor["instruction"]) is not bool(order)
    assert order in floor["instruction"]

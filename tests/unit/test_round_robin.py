"""Round-robin: the order of turns, and which turns open and close a debate."""

from __future__ import annotations

from typing import Any

import pytest

from moot.protocols.long_form import RoundRobin
from moot.state.config.config_files import make_config
from moot.state.config.debate_config import read_stored
from moot.state.entries import make_entry

PEOPLE = [{"name": "A"}, {"name": "B"}, {"name": "C"}]


def turns_of(**settings: Any) -> list[tuple[str, str, int]]:
    """Return speaker, phase and round of every turn of a debate with sequential openings."""
    config = make_config({"debaters": PEOPLE, "openings": "sequential", **settings})
    steps = [RoundRobin().next_step({"turn_count": turn}, config) for turn in range(config.total_turns())]
    return [(s["turns"][0]["speaker"], s["phase"], s["round"]) for s in steps if isinstance(s, dict)]


def test_debaters_speak_in_turn_and_each_opens_and_closes() -> None:
    turns = turns_of(turns=10)
    assert "".join(speaker for speaker, _, _ in turns) == "abcabcabca"
    assert [phase for _, phase, _ in turns] == ["opening"] * 3 + ["argument"] * 4 + ["closing"] * 3
    assert [round_no for _, _, round_no in turns] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]


def test_an_order_decides_whose_turn_it_is() -> None:
    turns = turns_of(turns=12, order=["a", "b", "a", "c"])
    assert "".join(speaker for speaker, _, _ in turns) == "abacabacabac"
    assert [round_no for _, _, round_no in turns] == [1] * 4 + [2] * 4 + [3] * 4


def test_in_an_order_the_first_and_the_last_turn_of_everybody_open_and_close() -> None:
    phases = [phase for _, phase, _ in turns_of(turns=12, order=["a", "b", "a", "c"])]
    middle = ["argument"] * 5
    assert phases == ["opening", "opening", "argument", "opening", *middle, "closing", "closing", "closing"]


@pytest.mark.parametrize("order", [[], ["a", "b", "a", "c"]], ids=["in turn", "in an order"])
def test_a_short_debate_closes_nowhere(order: list[str]) -> None:
    assert "closing" not in [phase for _, phase, _ in turns_of(turns=8, order=order)]


def steps_of(**settings: Any) -> list[tuple[str, str]]:
    """Return the speakers and the phase of every step of a debate with independent openings."""
    config = make_config({"debaters": PEOPLE, **settings})
    steps, turn = [], 0
    while turn < config.total_turns():
        step = RoundRobin().next_step({"turn_count": turn, "full_transcript": []}, config)
        assert isinstance(step, dict)
        steps.append(("".join(each["speaker"] for each in step["turns"]), step["phase"]))
        turn += len(step["turns"])
    return steps


def test_independent_openings_are_one_step_and_the_turns_follow_in_order() -> None:
    steps = steps_of(turns=10)
    assert steps[0] == ("abc", "opening")
    assert [who for who, _ in steps[1:]] == list("abcabca")
    assert [phase for _, phase in steps[1:]] == ["argument"] * 4 + ["closing"] * 3


def test_in_an_order_everybody_opens_before_anybody_speaks_again() -> None:
    assert [who for who, _ in steps_of(turns=8, order=["a", "b", "a", "c"])] == ["abc", *"aabac"]


def test_a_debate_with_fewer_turns_than_debaters_has_fewer_openings() -> None:
    assert steps_of(turns=2) == [("ab", "opening")]


def test_a_continued_transcript_has_no_new_openings() -> None:
    config = make_config({"debaters": PEOPLE})
    said = make_entry(1, "a", "speech", "I begin.")
    step = RoundRobin().next_step({"turn_count": 0, "full_transcript": [said]}, config)
    assert isinstance(step, dict)
    assert [turn["speaker"] for turn in step["turns"]] == ["a"]


def test_a_stored_debate_without_the_setting_keeps_its_sequential_openings() -> None:
    stored = make_config({"debaters": PEOPLE}).to_json()
    del stored["openings"], stored["decide"]
    assert read_stored(stored).openings == "sequential"
    assert (
        read_stored({**stored, "vote": {"answers": 3, "by": "judge"}, "protocol": "vote"}).decide == "judge"
    )

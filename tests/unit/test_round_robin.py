"""Round-robin: order of turns, openings and closings."""

from __future__ import annotations

from typing import Any

import pytest

from moot.config.config_files import make_config
from moot.protocols.long_form import RoundRobin
from moot.protocols.schedule import words_within
from moot.state.entries import make_entry

DEBATERS = [{"name": "A"}, {"name": "B"}, {"name": "C"}]


def turns_of(**settings: Any) -> list[tuple[str, str, int]]:
    """Return speaker, phase and round of every turn of a debate with sequential openings."""
    config = make_config({"debaters": DEBATERS, "openings": "sequential", **settings})
    steps = [RoundRobin().next_step({"turn_count": turn}, config) for turn in range(config.total_turns())]
    return [(s["turns"][0]["speaker"], s["phase"], s["round"]) for s in steps if isinstance(s, dict)]


def test_each_debater_opens_speaks_in_turn_and_closes() -> None:
    turns = turns_of(turns=10)
    assert "".join(speaker for speaker, _, _ in turns) == "abcabcabca"
    assert [phase for _, phase, _ in turns] == ["opening"] * 3 + ["argument"] * 4 + ["closing"] * 3
    assert [round_no for _, _, round_no in turns] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]


def test_order_setting_decides_who_speaks() -> None:
    turns = turns_of(turns=12, order=["a", "b", "a", "c"])
    assert "".join(speaker for speaker, _, _ in turns) == "abacabacabac"
    assert [round_no for _, _, round_no in turns] == [1] * 4 + [2] * 4 + [3] * 4


def test_first_and_last_turns_of_a_custom_order_open_and_close() -> None:
    phases = [phase for _, phase, _ in turns_of(turns=12, order=["a", "b", "a", "c"])]
    middle = ["argument"] * 5
    assert phases == ["opening", "opening", "argument", "opening", *middle, "closing", "closing", "closing"]


@pytest.mark.parametrize("order", [[], ["a", "b", "a", "c"]], ids=["default order", "custom order"])
def test_short_debate_has_no_closings(order: list[str]) -> None:
    assert "closing" not in [phase for _, phase, _ in turns_of(turns=8, order=order)]


def steps_of(**settings: Any) -> list[tuple[str, str]]:
    """Return the speakers and the phase of every step of a debate with independent openings."""
    config = make_config({"debaters": DEBATERS, **settings})
    steps, turn = [], 0
    while turn < config.total_turns():
        step = RoundRobin().next_step({"turn_count": turn, "full_transcript": []}, config)
        assert isinstance(step, dict)
        steps.append(("".join(each["speaker"] for each in step["turns"]), step["phase"]))
        turn += len(step["turns"])
    return steps


def test_independent_openings_are_one_step_before_the_other_turns() -> None:
    steps = steps_of(turns=10)
    assert steps[0] == ("abc", "opening")
    assert [speakers for speakers, _ in steps[1:]] == list("abcabca")
    assert [phase for _, phase in steps[1:]] == ["argument"] * 4 + ["closing"] * 3


def test_all_debaters_of_a_custom_order_open_in_the_first_step() -> None:
    assert [speakers for speakers, _ in steps_of(turns=8, order=["a", "b", "a", "c"])] == ["abc", *"aabac"]


def test_debate_with_fewer_turns_than_debaters_has_fewer_openings() -> None:
    assert steps_of(turns=2) == [("ab", "opening")]


def test_continued_transcript_has_no_new_openings() -> None:
    config = make_config({"debaters": DEBATERS})
    entry = make_entry(1, "a", "speech", "I begin.")
    step = RoundRobin().next_step({"turn_count": 0, "full_transcript": [entry]}, config)
    assert isinstance(step, dict)
    assert [turn["speaker"] for turn in step["turns"]] == ["a"]


@pytest.mark.parametrize(("reply", "words"), [(1000, "550"), (1200, "600"), (120, "60"), (16, "10")])
def test_words_that_a_prompt_asks_for_fit_the_reply_limit(reply: int, words: str) -> None:
    assert words_within(600, make_config({"memory": {"budget": {"reply": reply}}})) == words

"""Round-robin: whose turn it is, and which turns open and close."""

from __future__ import annotations

from typing import Any

import pytest

from moot.nodes.protocols.long_form.long_form import RoundRobin
from moot.state.config.config_files import make_config

PEOPLE = [{"name": "A"}, {"name": "B"}, {"name": "C"}]


def turns_of(**settings: Any) -> list[tuple[str, str, int]]:
    """Return speaker, phase and round of every turn."""
    config = make_config({"debaters": PEOPLE, **settings})
    steps = [RoundRobin().next_step({"turn_count": turn}, config) for turn in range(config.total_turns())]
    return [(s["floors"][0]["speaker"], s["phase"], s["round"]) for s in steps if isinstance(s, dict)]


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

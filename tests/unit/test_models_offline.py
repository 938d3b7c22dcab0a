from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, ToolMessage

from moot.calls.effects import Hints
from moot.models.offline import OfflineModel, placeholder_text

RULES = HumanMessage("You take part in a debate.\n\n# Topic\nShould buses be free?\n")
PLACE: Hints = {
    "purpose": "turn",
    "phase": "critique",
    "speaker": "Ada Lovelace",
    "round": 2,
    "targets": ["Ben"],
}


def say(hints: Hints, **more: Any) -> str:
    """Let the model speak."""
    return OfflineModel().respond([RULES], hints=hints, **more).text


def test_a_placeholder_names_its_place_in_the_debate() -> None:
    assert say(PLACE) == (
        "[offline model] Placeholder for the critique of Ada Lovelace to Ben in round 2. "
        "Set a model to get an argument."
    )
    assert say({"purpose": "summary", "phase": "summary"}) == (
        "[offline model] Placeholder for the summary. Set a model to get a real one."
    )


def test_texts_differ_by_speaker_phase_round_and_target() -> None:
    others: list[Hints] = [
        {**PLACE, "speaker": "Cy"},
        {**PLACE, "phase": "refine"},
        {**PLACE, "round": 3},
        {**PLACE, "targets": ["Cy"]},
    ]
    assert len({say(hints) for hints in (PLACE, *others)}) == 5


def test_neither_seed_nor_prompt_changes_the_text() -> None:
    other = OfflineModel().respond([HumanMessage("Buses should be free.")], hints=PLACE, seed=9)
    assert other.text == say(PLACE, seed=1)


def test_one_message_in_a_notebook_is_enough() -> None:
    assert OfflineModel().invoke("Should towns plant more trees?").text.startswith("[offline model]")


def test_a_reply_keeps_to_max_tokens() -> None:
    assert len(say(PLACE, max_tokens=16)) <= 48 < len(say(PLACE, max_tokens=2_000))


def test_it_streams_its_reply() -> None:
    model = OfflineModel()
    chunks = list(model.stream([RULES]))
    assert "".join(chunk.text for chunk in chunks) == model.invoke([RULES]).text
    assert len(chunks) > 10


def test_usage_is_reported() -> None:
    message = OfflineModel().respond([RULES], prompt_tokens=123)
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 123


@pytest.mark.parametrize("name", ["search", "search_debate", "list_files", "calculator"])
def test_a_tool_is_called_once(name: str) -> None:
    tools = [{"function": {"name": "unheard_of"}}, {"function": {"name": name}}]
    called = OfflineModel().respond([RULES], tools=tools)
    assert [call["name"] for call in called.tool_calls] == [name]
    after = OfflineModel().respond([RULES, called, ToolMessage("3", tool_call_id="call_1")], tools=tools)
    assert not after.tool_calls
    assert after.text


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_any_hints_give_a_text(phase: str, speaker: str, targets: list[str]) -> None:
    assert placeholder_text({"phase": phase, "speaker": speaker, "targets": targets})

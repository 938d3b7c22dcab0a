"""The offline model: placeholders, streaming, usage and tool calls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import HumanMessage, ToolMessage

from moot.calls.model_calls import Hints
from moot.models.offline import OfflineModel, placeholder_text

RULES = HumanMessage("You take part in a debate.\n\n# Topic\nShould buses be free?\n")
HINTS: Hints = {
    "purpose": "turn",
    "phase": "critique",
    "speaker": "Ada Lovelace",
    "round": 2,
    "targets": ["Ben"],
}


def reply_text(hints: Hints, **more: Any) -> str:
    """Return the text of the model's reply."""
    return OfflineModel().respond([RULES], hints=hints, **more).text


def test_placeholder_names_phase_speaker_target_and_round() -> None:
    assert reply_text(HINTS) == (
        "[offline model] Placeholder for the critique of Ada Lovelace to Ben in round 2. "
        "Set a model to get an argument."
    )
    assert reply_text({"purpose": "summary", "phase": "summary"}) == (
        "[offline model] Placeholder for the summary. Set a model to get a real one."
    )


def test_placeholders_differ_by_speaker_phase_round_and_target() -> None:
    others: list[Hints] = [
        {**HINTS, "speaker": "Cy"},
        {**HINTS, "phase": "refine"},
        {**HINTS, "round": 3},
        {**HINTS, "targets": ["Cy"]},
    ]
    assert len({reply_text(hints) for hints in (HINTS, *others)}) == 5


def test_seed_and_prompt_do_not_change_the_placeholder() -> None:
    other = OfflineModel().respond([HumanMessage("Buses should be free.")], hints=HINTS, seed=9)
    assert other.text == reply_text(HINTS, seed=1)


def test_offline_model_replies_to_a_plain_string() -> None:
    assert OfflineModel().invoke("Should towns plant more trees?").text.startswith("[offline model]")


def test_reply_respects_max_tokens() -> None:
    assert len(reply_text(HINTS, max_tokens=16)) <= 48 < len(reply_text(HINTS, max_tokens=2_000))


def test_offline_model_streams_its_reply() -> None:
    model = OfflineModel()
    chunks = list(model.stream([RULES]))
    assert "".join(chunk.text for chunk in chunks) == model.invoke([RULES]).text
    assert len(chunks) > 10


def test_offline_model_reports_usage() -> None:
    message = OfflineModel().respond([RULES], prompt_tokens=123)
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 123


@pytest.mark.parametrize("name", ["search", "search_debate", "list_files", "calculator"])
def test_offline_model_calls_a_tool_once(name: str) -> None:
    tools = [{"function": {"name": "unheard_of"}}, {"function": {"name": name}}]
    called = OfflineModel().respond([RULES], tools=tools)
    assert [call["name"] for call in called.tool_calls] == [name]
    after = OfflineModel().respond([RULES, called, ToolMessage("3", tool_call_id="call_1")], tools=tools)
    assert not after.tool_calls
    assert after.text


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_any_hints_give_a_placeholder(phase: str, speaker: str, targets: list[str]) -> None:
    assert placeholder_text({"phase": phase, "speaker": speaker, "targets": targets})

"""The background of a debate in prompts: whole if it fits, otherwise as passages."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.debates.config_checks import warnings_about
from moot.graph.debate import build_graph
from moot.judging.transcript_selection import TranscriptSelector
from moot.memory.background import select_background
from moot.prompts.debate_context import DebateContext
from moot.state.entries import make_entry
from moot.state.errors import ConfigError
from moot.text.tokens import counter
from tests.support.fakes import FakeModel, fake_reply

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
SUBJECTS = ("harbour", "ferry", "school", "bridge", "tram", "museum", "library", "market")
LONG = "\n".join(
    f"The {subject} of district {n} costs {n * 17 + 3} thousand crowns a year, and its roof is {n} years old."
    for n in range(1, 60)
    for subject in SUBJECTS
)
"""A document of about 12,000 tokens, more than a whole prompt."""


def _run(config: DebateConfig, content: str, says: str = "I stay with it.") -> FakeModel:
    def reply(call: ModelCall) -> Reply:
        return fake_reply(call) if call.schema else Reply(text=says, model="m")

    model = FakeModel(reply)
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    documents = [{"name": "figures.md", "content": content}]
    inputs = {"topic": "Should the city repair the museum first?", "context_documents": documents}
    graph.invoke(inputs, THREAD, context=config)
    return model


def _text(call: ModelCall) -> str:
    return "\n".join(message["content"] for message in call.messages)


@pytest.mark.parametrize("protocol", ["round-robin", "council", "dialogue", "vote"])
def test_long_background_is_shown_as_passages_in_every_prompt(protocol: str) -> None:
    config = DebateConfig.model_validate({"protocol": protocol, "debaters": [{"name": "A"}, {"name": "B"}]})
    model = _run(config, LONG, "What does the ferry of district 41 cost?")
    for call in model.calls:
        if call.stream_as or call.purpose == "judge":
            assert call.prompt
            assert call.prompt.total_tokens <= 8_000
            assert _text(call).count("thousand crowns") > 20, (call.purpose, call.hints)
            assert "The museum of district" in _text(call)
            assert {"shown in part"} == {
                each["why"] for each in call.prompt.omitted if each["what"] == "background m000001"
            }


def test_prompts_share_some_passages_and_choose_others_by_the_last_message() -> None:
    model = _run(DebateConfig(turns=6, judge={"enabled": False}), LONG, "And the ferry of district 41?")
    turns = [call for call in model.calls if call.hints["phase"] == "argument"]
    shared = {
        call.messages[call.prompt.layout.index("background")]["content"] for call in turns if call.prompt
    }
    assert len(shared) == 1
    assert "The ferry of district 41 costs 700" in _text(turns[-1])


def test_claim_extraction_prompts_contain_the_background() -> None:
    config = DebateConfig.model_validate({"turns": 2, "blackboard": {"extraction": "llm"}, "model": "m"})
    model = _run(config, "The museum costs 4,711 crowns.")
    extractions = [call for call in model.calls if call.purpose == "extract"]
    assert extractions
    assert all("4,711" in _text(call) for call in extractions)


def test_a_phase_has_its_own_budget_and_an_unknown_phase_is_refused() -> None:
    dialogue = {"protocol": "dialogue", "memory": {"budget": {"phases": {"respond": 1500}}}}
    model = _run(DebateConfig.model_validate(dialogue), "Nothing.", "Boats need a harbour. " * 150)
    for call in model.calls:
        if call.stream_as and call.prompt:
            background = call.prompt.sections["topic"] + call.prompt.sections["background"]
            limit = {"respond": 1500, "opening": 8000, "closing": 8000}.get(call.hints["phase"], 4000)
            assert call.prompt.total_tokens <= limit + background
    unknown = DebateConfig.model_validate({**dialogue, "memory": {"budget": {"phases": {"respnd": 1500}}}})
    with pytest.raises(ConfigError, match="no phase 'respnd'"):
        _run(unknown, "Nothing.")


def test_unknown_summarizer_is_refused_and_unknown_placeholder_warned_of() -> None:
    with pytest.raises(ConfigError, match="'nonsense' is not a summarizer"):
        _run(DebateConfig.model_validate({"memory": {"summarizer": "nonsense"}}), "Nothing.")
    prompted = DebateConfig.model_validate({"memory": {"summary_prompt": "Sum up {transcript}."}})
    assert any("{transcript} is no placeholder" in each for each in warnings_about(prompted))


def test_resume_with_a_different_context_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    model = FakeModel()
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    config = DebateConfig(turns=3, model="m")
    graph.invoke({"topic": "Should we?"}, THREAD, context=config, interrupt_after=["plan"])
    with caplog.at_level(logging.WARNING):
        graph.invoke(None, THREAD, context=config)
        assert not caplog.records
        graph.invoke(None, THREAD, context=DebateConfig(turns=9, language="German", model="m"))
    assert "differs in language, turns" in caplog.text


def test_resume_with_a_different_mapping_logs_the_changed_keys(caplog: pytest.LogCaptureFixture) -> None:
    model, first_context = FakeModel(), {"turns": 3, "openings": "sequential", "model": "offline"}
    graph: Any = build_graph(InMemorySaver(), environment=model.environment())
    graph.invoke({"topic": "Should we?"}, THREAD, context=first_context, interrupt_after=["plan"])
    with caplog.at_level(logging.WARNING):
        graph.invoke(None, THREAD, context={"turns": 3})
        assert not caplog.records
        graph.invoke(None, THREAD, context={"turns": 9})
    assert "differs in turns" in caplog.text


def test_whole_background_is_in_the_order_of_the_transcript() -> None:
    topic = make_entry(0, "user", "topic", "Should we?")
    speech = make_entry(1, "advocate", "speech", "No.")
    remarks = [make_entry(seq, "user", "interjection", f"Remark {seq}.") for seq in (2, 4)]
    document = make_entry(3, "user", "context", "Facts.")
    entries = [topic, speech, remarks[0], document, remarks[1]]
    state: Any = {"topic": "Should we?", "full_transcript": entries, "user_provided": [2, 3, 4]}
    blocks = select_background(DebateContext(state, DebateConfig(), counter()), start=5).blocks
    assert [block.ids for block in blocks] == [("m000002",), ("m000003",), ("m000004",)]


def test_judge_sees_earlier_arguments_despite_a_huge_interjection() -> None:
    earlier = [make_entry(seq, "ada", "critique", "No.", tokens=50) for seq in range(1, 4)]
    final = make_entry(4, "ada", "refinement", "Yes.", tokens=50)
    huge = make_entry(5, "moderator", "interjection", "News.", tokens=9_000)
    shown = TranscriptSelector([*earlier, final, huge], ["ada"], {}, [final]).select("tax", 2_000).messages
    assert {one.entry["seq"] for one in shown} >= {1, 2, 3, 4}

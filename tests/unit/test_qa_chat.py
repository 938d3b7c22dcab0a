"""Messages after the end of a debate: questions are answered, and `Go on` continues the debate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from moot import DebateConfig, build_graph, open_debates
from moot.asking.chat import can_continue
from moot.calls.model_calls import ModelCall, Reply
from moot.debates.prompt_reconstruction import reconstruct_prompt
from tests.support.fakes import FakeModel, fake_reply

ADA: Any = [{"name": "Ada Lovelace", "id": "ada"}, {"name": "Ben", "id": "ben"}]
CONFIG = DebateConfig(turns=2, debaters=ADA, judge={"enabled": False})
THREAD: Any = {"configurable": {"thread_id": "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d6"}}
ASK_REPLY = {
    "reasoning": "r",
    "answer": "Ada, for the cost [m000001].",
    "citations": ["m000001", "m000099"],
    "not_found": ["what it cost"],
}


def replies(call: ModelCall) -> Reply:
    return Reply(data=ASK_REPLY) if call.purpose == "ask" else fake_reply(call)


@pytest.mark.parametrize(
    ("text", "continues"),
    [
        ("Who won, and why?", False),
        ("What did Ben, who spoke last, hold of Ada's cost?", False),
        ("ada won, did she not?", True),  # a name before a comma addresses that debater
        ("Ada Lovelace: what of deliveries?", True),
        ("@ben why?", True),
        ("@Benny why?", False),
        ("Benefits, and costs?", False),
        ("Go on: what about winter?", True),
        ("go on", True),
        ("Going on like this, who would win?", False),
    ],
)
def test_message_to_a_debater_or_go_on_continues_the_debate(text: str, continues: bool) -> None:
    config = DebateConfig(debaters=[{"name": "Ada Lovelace", "id": "ada"}, {"name": "Ben"}])
    if text.startswith("ada won"):
        text = f"ada, {text}"
    assert can_continue(text, config) == continues


def test_question_after_the_end_is_answered_without_changing_the_debate() -> None:
    graph = build_graph(InMemorySaver(), environment=FakeModel(replies).environment())
    graph.invoke({"topic": "Tabs?"}, THREAD, context=CONFIG)
    before = graph.get_state(THREAD).values
    state = graph.invoke({"messages": [HumanMessage("Who won?", id="one")]}, THREAD)
    result = state["messages"][-1]
    assert (result.name, result.text) == (
        "judge",
        "Ada, for the cost [m000001].\n\nFrom m000001.\n\nNot in the transcript:\n- what it cost",
    )
    assert [state["messages"][-2].type, state["messages"][-2].text] == ["human", "Who won?"]
    graph.invoke({"messages": [("human", "And why?")]}, THREAD)
    after = graph.get_state(THREAD)
    same = ("full_transcript", "status", "turn_count", "step", "config", "verdict")
    assert {key: after.values.get(key) for key in same} == {key: before.get(key) for key in same}
    assert after.next == ()
    assert after.values["usage"]["calls"] == before["usage"]["calls"] + 2
    graph.invoke({"messages": [("human", "Go on: and in winter?")]}, THREAD)
    argued = graph.get_state(THREAD).values["full_transcript"]
    assert [each["kind"] for each in argued[2:]] == ["speech", "interjection", "speech", "speech"]
    assert argued[3]["content"] == "Go on: and in winter?"


def test_failed_answer_is_reported_and_later_questions_are_asked() -> None:
    def broken(call: ModelCall) -> Reply:
        return Reply(error="HTTP 401: no key") if call.purpose == "ask" else fake_reply(call)

    graph = build_graph(InMemorySaver(), environment=FakeModel(broken).environment())
    graph.invoke({"topic": "Tabs?"}, THREAD, context=CONFIG)
    for question in ("Who won?", "And why?"):
        result = graph.invoke({"messages": [("human", question)]}, THREAD)
        assert result["messages"][-2].text == question
        assert "No answer.** " in result["messages"][-1].text
        assert "HTTP 401" in result["messages"][-1].text
        assert result["status"] == "done"


def test_prompt_of_a_qa_answer_is_reconstructed_exactly(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "d.sqlite"), environment=FakeModel(replies).environment()) as debates:
        debate = debates.start("Tabs?", CONFIG)
        debate.run()
        session = debate.session
        session.graph.invoke({"messages": [("human", "Who won?")]}, session.run_config)
        receipt = debate.document()["calls"][-1]
        assert receipt["purpose"] == "ask"
        assert reconstruct_prompt(session, receipt["id"]).exact
        assert debate.row.status == "done"


JUDGE_REPLY = {
    "reasoning": "Nobody answered the cost.",
    "question": "Tabs?",
    "decision": "Use spaces.",
    "confidence": 78,
    "conditions": ["editors obey"],
    "would_reverse": ["a study of wrists"],
    "winner": "tie",
    "scores": [],
}


def judged_replies(call: ModelCall) -> Reply:
    if call.purpose == "judge":
        return Reply(data=JUDGE_REPLY, model=call.model)
    if call.purpose == "ask":
        is_offline = call.model == "offline"
        return (
            Reply(provider="offline")
            if is_offline
            else Reply(
                data={**ASK_REPLY, "answer": "Spaces.", "citations": ["verdict", "m000001"], "not_found": []}
            )
        )
    return fake_reply(call)


@pytest.mark.parametrize("budget", [2_000, 8_000])
def test_answers_about_a_judged_debate_can_cite_the_verdict(tmp_path: Path, budget: int) -> None:
    model = FakeModel(judged_replies)
    memory: Any = {"budget": {"total": budget}}
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Tabs?", DebateConfig(turns=2, debaters=ADA, memory=memory, model="m"))
        debate.run()
        answered = debate.ask("What did the judge decide, on what conditions, and how sure?")
        call = model.calls[-1]
        (block,) = (each["content"] for each in call.messages if "# Verdict" in each["content"])
        for part in ("Use spaces.", "78", "editors obey", "a study of wrists", "Nobody answered the cost."):
            assert part in block
        assert "Its id is `verdict`." in call.messages[0]["content"]
        assert (answered.citations, answered.dropped) == (("verdict", "m000001"), 0)
        assert "judge" not in answered.receipt["unknown_terms"]
        assert answered.receipt["sections"]["verdict"] <= 0.15 * budget
        assert answered.receipt["total_tokens"] <= budget
        passages = debate.ask("What did the judge decide?", model="offline").text
        assert passages.startswith("The verdict: Use spaces.")
        assert "No model is configured" in passages


def test_prompt_mentions_no_verdict_if_there_is_none(tmp_path: Path) -> None:
    model = FakeModel(judged_replies)
    with open_debates(str(tmp_path / "d.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Tabs?", CONFIG.model_copy(update={"model": "m"}))
        debate.run()
        answered = debate.ask("Who won?")
        assert "verdict" not in str(model.calls[-1].messages).lower()
        assert (answered.citations, answered.dropped) == (("m000001",), 1)

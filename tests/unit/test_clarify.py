"""Clarification questions before the first round: asking, matching of replies, and entries."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.models.registry import Models
from moot.nodes.clarify import NO_ANSWER, ClarifyingQuestions
from moot.people import PersonQuestion, match_replies, matches_any, remaining_replies
from tests.support.fakes import FakeModel, fake_reply
from tests.support.snapshots import check_snapshot, prompt_markdown
from tests.support.waiting import LONG_TIMEOUT_S

THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
BY_SPEAKER = {
    "Ada": ["Which year?", "Which budget?", "Which  year?", "One too many?"],
    "Bo": ["which YEAR?", "  "],
}


def _reply_with_questions(call: ModelCall) -> Reply:
    if not (call.schema and issubclass(call.schema, ClarifyingQuestions)):
        return fake_reply(call)
    earlier = any("[m0" in message["content"] for message in call.messages[1:-1])
    return Reply(data={"questions": [] if earlier else BY_SPEAKER[call.hints["speaker"]]})


def _config(**clarifications: Any) -> DebateConfig:
    return DebateConfig.model_validate(
        {
            "turns": 2,
            "debaters": [{"name": "Ada"}, {"name": "Bo", "clarification_prompt": "Ask like Bo."}],
            "clarifications": {"enabled": True, "max_per_debater": 3, **clarifications},
        }
    )


def _graph(model: FakeModel) -> Any:
    return build_graph(InMemorySaver(), environment=model.environment())


def _interrupt_values(out: Any) -> list[Any]:
    return [each.value for each in out.get("__interrupt__", ())]


class _GatheringModel(FakeModel):
    """Model that replies to the first call after the second has arrived."""

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Record the call, wait until two have arrived, and reply."""
        reply = await super().complete(call, models, config=config)
        deadline = time.monotonic() + LONG_TIMEOUT_S
        while len(self.calls) < 2:
            assert time.monotonic() < deadline, "the debaters are asked one after the other"
            await asyncio.sleep(0.001)
        return reply


def test_debaters_ask_their_questions_concurrently() -> None:
    model = _GatheringModel(_reply_with_questions)
    (payload,) = _interrupt_values(_graph(model).invoke({"topic": "T?"}, THREAD, context=_config()))
    assert [each["id"] for each in payload["questions"]] == ["ada.1", "ada.2"]


def test_questions_are_limited_and_deduplicated() -> None:
    model = FakeModel(_reply_with_questions)
    (payload,) = _interrupt_values(_graph(model).invoke({"topic": "T?"}, THREAD, context=_config()))
    assert (payload["kind"], payload["round"]) == ("clarifications", 1)
    assert [(each["id"], each["question"]) for each in payload["questions"]] == [
        ("ada.1", "Which year?"),
        ("ada.2", "Which budget?"),
    ]
    assert [call.purpose for call in model.calls] == ["clarify", "clarify"]
    assert "Ask like Bo." in model.calls[1].messages[-1]["content"]
    assert "Ask like Bo." not in model.calls[0].messages[-1]["content"]


def test_replies_become_entries_that_every_turn_prompt_contains() -> None:
    model = FakeModel(_reply_with_questions)
    graph = _graph(model)
    graph.invoke({"topic": "T?"}, THREAD, context=_config())
    graph.invoke(Command(resume={"ada": ["2031"]}), THREAD)
    entries = graph.get_state(THREAD).values["full_transcript"]
    assert [(e["kind"], e["speaker"], e["targets"], e["content"]) for e in entries[1:5]] == [
        ("question", "ada", ["user"], "Which year?"),
        ("answer", "user", ["m000001"], "2031"),
        ("question", "ada", ["user"], "Which budget?"),
        ("answer", "user", ["m000003"], NO_ANSWER),
    ]
    turns = [call for call in model.calls if call.purpose == "turn"]
    assert len(turns) == 2
    assert all(any("2031" in message["content"] for message in call.messages) for call in turns)
    assert [call.purpose for call in model.calls].count("clarify") == 2, (
        "the debaters were asked again after the replies"
    )


def test_second_round_reads_the_replies_and_asks_nothing() -> None:
    model = FakeModel(_reply_with_questions)
    graph = _graph(model)
    (payload,) = _interrupt_values(graph.invoke({"topic": "T?"}, THREAD, context=_config(rounds=3)))
    out = graph.invoke(Command(resume={each["id"]: "" for each in payload["questions"]}), THREAD)
    assert "__interrupt__" not in out
    assert [call.purpose for call in model.calls].count("clarify") == 4
    assert graph.get_state(THREAD).values["clarifications"] == {
        "rounds": 2,
        "settled": True,
    }


def test_failed_clarification_call_is_recorded_and_the_debate_continues() -> None:
    def failing(call: ModelCall) -> Reply:
        return (
            Reply(error="down")
            if call.schema and issubclass(call.schema, ClarifyingQuestions)
            else fake_reply(call)
        )

    graph = _graph(FakeModel(failing))
    out = graph.invoke({"topic": "T?"}, THREAD, context=_config())
    assert "__interrupt__" not in out
    state = graph.get_state(THREAD).values
    assert [each["node"] for each in state["errors"]] == ["clarify", "clarify"]
    assert state["turn_count"] == 2


def test_debaters_ask_no_questions_by_default() -> None:
    model = FakeModel(_reply_with_questions)
    _graph(model).invoke({"topic": "T?"}, THREAD, context=DebateConfig(turns=1))
    assert all(call.purpose != "clarify" for call in model.calls)


def _question(id: str, words: str = "Why?") -> PersonQuestion:
    debater = id.partition(".")[0]
    return {"id": id, "debater": debater, "name": debater.title(), "question": words}


QUESTIONS = [_question("ada.2", "When?"), _question("ada.3", "Where?"), _question("bo.1", "Who?")]


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ("now", ["now", "", ""]),
        (["now", "here"], ["now", "here", ""]),
        (["now", None, "me", "more"], ["now", "", "me"]),
        ({"ada.3": "here"}, ["", "here", ""]),
        ({"Who?": "me", "When?": 2031}, ["2031", "", "me"]),
        ({"ada": "now", "Bo": "me"}, ["now", "", "me"]),
        ({"ada": ["first", "now", "here"]}, ["now", "here", ""]),
        ({"ada": ["first"]}, ["", "", ""]),
        ({"carl": "?"}, ["", "", ""]),
        (None, ["", "", ""]),
        (7, ["7", "", ""]),
        ({}, ["", "", ""]),
    ],
)
def test_match_replies_accepts_replies_of_any_shape(replies: Any, expected: list[str]) -> None:
    assert list(match_replies(QUESTIONS, replies).values()) == expected


def test_prepared_replies_without_a_question_remain() -> None:
    prepared = {"ada": "now", "bo": ["me", "you"], "carl.1": "x"}
    assert matches_any(QUESTIONS, prepared)
    assert remaining_replies(QUESTIONS, prepared) == {"bo": ["me", "you"], "carl.1": "x"}
    assert not matches_any([_question("dan.1")], prepared)
    assert not matches_any([_question("bo.3")], prepared)


def test_clarification_prompt_matches_its_snapshot() -> None:
    model = FakeModel(_reply_with_questions)
    _graph(model).invoke({"topic": "T?"}, THREAD, context=_config())
    check_snapshot("clarify", prompt_markdown(model.calls[0].messages))


def test_clarification_prompt_names_the_concerns_of_a_built_in_role() -> None:
    model = FakeModel(
        lambda call: (
            Reply(data={"questions": []})
            if call.schema and issubclass(call.schema, ClarifyingQuestions)
            else fake_reply(call)
        )
    )
    config = DebateConfig.model_validate(
        {"turns": 1, "debaters": [{"name": "S", "role": "security"}], "clarifications": {"enabled": True}}
    )
    _graph(model).invoke({"topic": "T?"}, THREAD, context=config)
    assert "sensitivity of data" in model.calls[0].messages[-1]["content"]


def test_members_of_a_council_ask_under_the_rules_and_the_rubric_of_the_council() -> None:
    model = FakeModel()
    settings = {"protocol": "council", "rounds": 1, "model": "m", "clarifications": {"enabled": True}}
    _graph(model).invoke({"topic": "T?"}, THREAD, context=DebateConfig.model_validate(settings))
    rules = model.calls[0].messages[0]["content"]
    assert model.calls[0].purpose == "clarify"
    assert rules.startswith("You are a member of a council")


def test_clarification_prompt_does_not_call_documents_answers() -> None:
    model = FakeModel(_reply_with_questions)
    topic = {"topic": "T?", "context_documents": [{"name": "a.md", "content": "Facts."}]}
    graph = _graph(model)
    graph.invoke(topic, THREAD, context=_config(rounds=2))
    prompts = str([call.messages for call in model.calls if call.purpose == "clarify"])
    assert "Facts." in prompts
    assert "The answers so far" not in prompts

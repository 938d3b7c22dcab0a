"""Debates as nodes and tools of other graphs, with messages as input and output."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest
from langchain.agents.middleware.human_in_the_loop import HITLRequest, HITLResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from moot import DebateConfig, InputError, build_graph
from moot.people import match_replies, question_payload, reply_error
from moot.prompts.templates import fenced
from moot.state.config.debate_config import fence_for
from moot.state.reducers import entry_id_of
from tests.support.fakes import FakeModel

LONG = DebateConfig(turns=12)
"""Many more steps than LangChain's default of 25 allows."""
ASKED: Any = {"topic": "Trams?"}
THREAD: Any = {"configurable": {"thread_id": "t"}}


def graph(saver: Any = None) -> Any:
    return build_graph(saver, environment=FakeModel().environment())


async def _events(runnable: Any) -> Any:
    ends = [each async for each in runnable.astream_events(ASKED, context=LONG, version="v2")]
    return ends[-1]["data"]["output"]


async def _streamed(runnable: Any) -> Any:
    return [each async for each in runnable.astream(ASKED, context=LONG, stream_mode="values")][-1]


async def _abatch(runnable: Any) -> Any:
    return (await runnable.abatch([ASKED, ASKED], context=LONG))[-1]


WAYS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda g: g.invoke(ASKED, context=LONG),
    "stream": lambda g: list(g.stream(ASKED, context=LONG, stream_mode="values"))[-1],
    "batch": lambda g: g.batch([ASKED, ASKED], context=LONG)[-1],
    "with a limit": lambda g: g.invoke(ASKED, {"recursion_limit": 5}, context=LONG),
    "ainvoke": lambda g: g.ainvoke(ASKED, context=LONG),
    "astream": _streamed,
    "abatch": _abatch,
    "astream_events": _events,
    "sequence": lambda g: (RunnableLambda(lambda _: ASKED) | g.bind(context=LONG)).invoke(None),
    "fallbacks": lambda g: g.bind(context=LONG).with_fallbacks([RunnableLambda(lambda _: {})]).invoke(ASKED),
    "retry": lambda g: g.bind(context=LONG).with_retry().invoke(ASKED),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_debate_of_any_length_ends_wherever_a_runnable_runs(way: str) -> None:
    found = WAYS[way](graph())
    if isinstance(found, Awaitable):

        async def awaited() -> Any:
            return await found

        found = asyncio.run(awaited())
    assert found["status"] == "done"
    assert found["messages"][-1].name == "judge"


class Parent(TypedDict):
    messages: Annotated[list[Any], add_messages]


def parent(saver: Any = None, inner: Any = None) -> Any:
    builder = StateGraph(Parent)
    builder.add_node("debate", inner or graph())
    builder.add_edge(START, "debate")
    builder.add_edge("debate", END)
    return builder.compile(checkpointer=saver)


def test_debates_in_one_parent_thread_lose_no_messages_and_keep_the_roles_of_others() -> None:
    chat = parent(MemorySaver())
    history = [
        HumanMessage("Trams?", id="h1"),
        AIMessage("", id="a1", tool_calls=[{"name": "look", "args": {}, "id": "c1"}]),
        ToolMessage("Trams are quiet.", id="t1", tool_call_id="c1", name="look"),
    ]
    limit: Any = {**THREAD, "recursion_limit": 6}
    first = chat.invoke({"messages": history}, limit)["messages"]
    assert [(m.type, m.id) for m in first[:3]] == [("human", "h1"), ("ai", "a1"), ("tool", "t1")]
    assert first[-1].name == "judge"
    second = chat.invoke({"messages": [HumanMessage("And buses?", id="h2")]}, limit)["messages"]
    assert [m.id for m in second[: len(first) + 1]] == [*(m.id for m in first), "h2"]
    assert [m.name for m in second].count("judge") == 2
    assert len({m.id for m in second}) == len(second)


def test_in_a_conversation_what_a_person_said_last_is_argued() -> None:
    model = FakeModel()
    chat = parent(MemorySaver(), build_graph(environment=model.environment()))
    for topic in ("Should we buy trams?", "And who pays for buses?"):
        del model.calls[:]
        chat.invoke({"messages": [HumanMessage(topic)]}, THREAD)
        turns = [call for call in model.calls if call.purpose == "turn"]
        assert {call.messages[1]["content"] for call in turns} == {fenced(topic, fence_for(topic), "# Topic")}


def test_what_a_parent_says_is_told_apart_in_the_transcript() -> None:
    run = graph(MemorySaver())
    said = [
        HumanMessage("Trams?"),
        AIMessage("I looked.", name="Scout"),
        ToolMessage("Quiet.", tool_call_id="c"),
    ]
    run.invoke({"messages": said}, THREAD, context=DebateConfig(turns=1))
    entries = run.get_state(THREAD).values["full_transcript"]
    told = [(e["speaker"], e["kind"]) for e in entries if e["kind"] != "speech"]
    assert told == [("user", "topic"), ("scout", "interjection"), ("user", "context")]


def test_a_parents_own_context_is_none_of_the_debates() -> None:
    class Own(TypedDict):
        user: str

    builder = StateGraph(Parent, context_schema=Own)
    builder.add_node("debate", graph())
    builder.add_edge(START, "debate")
    out = builder.compile().invoke({"messages": [HumanMessage("Trams?")]}, context={"user": "u"})
    assert out["messages"][-1].name == "judge"


def test_a_new_topic_on_a_thread_is_refused_and_nothing_changes() -> None:
    run = graph(MemorySaver())
    run.invoke(ASKED, THREAD, context=DebateConfig(turns=1))
    before = run.get_state(THREAD)
    with pytest.raises(InputError, match="this thread already has a debate about 'Trams\\?'"):
        run.invoke({"topic": "Something else?"}, THREAD)
    assert run.get_state(THREAD).config == before.config
    assert run.invoke({"topic": " Trams? "}, THREAD)["topic"].strip() == "Trams?"


HUMAN = DebateConfig.model_validate(
    {"turns": 2, "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}], "judge": {"enabled": False}}
)


def test_a_chat_message_is_the_answer_that_a_debate_waits_for() -> None:
    model = FakeModel()
    run: Any = build_graph(MemorySaver(), environment=model.environment())
    waiting = run.invoke(ASKED, THREAD, context=HUMAN)["__interrupt__"][0].value
    assert waiting["response_schema"]["anyOf"][1]["properties"].keys() == {"bo.1"}
    calls = len(model.calls)
    out = run.invoke({"messages": [HumanMessage("I say no.", id="chat")]}, THREAD)
    entries = run.get_state(THREAD).values["full_transcript"]
    assert [(e["speaker"], e["kind"], e["content"]) for e in entries[2:]] == [("bo", "speech", "I say no.")]
    assert len(model.calls) == calls
    assert [entry_id_of(m) for m in out["messages"]][:3] == ["m000000", "m000001", "m000002"]


def test_an_empty_chat_message_is_asked_again_and_what_can_be_sent_is_told_as_langgraph_tells_it() -> None:
    run = graph(MemorySaver())
    (asked,) = run.invoke(ASKED, THREAD, context=HUMAN)["__interrupt__"]
    assert asked.response_schema == asked.value["response_schema"]
    for blank in ("   ", ""):
        (again,) = run.invoke({"messages": [HumanMessage(blank)]}, THREAD)["__interrupt__"]
        assert again.value["problem"]
    for unusable in ("", {"nobody": "x"}, [{"type": "ignore", "args": None}]):
        again = run.invoke(Command(resume=unusable), THREAD)["__interrupt__"][0].value
        assert again["problem"]
    done = run.invoke(Command(resume=[{"type": "response", "args": "No."}]), THREAD)
    assert [m.text for m in done["messages"]][2] == "No."
    assert not any(e["kind"] == "interjection" for e in run.get_state(THREAD).values["full_transcript"])


QUESTIONS: Any = [{"id": "ada.1", "debater": "ada", "name": "Ada", "question": "When?"}]


@pytest.mark.parametrize(
    "given",
    [
        "now",
        ["now"],
        {"ada.1": "now"},
        {"Ada": "now"},
        HumanMessage("now"),
        {"role": "user", "content": "now"},
        [{"type": "response", "args": "now"}],
        [{"type": "edit", "args": {"action": "turn", "args": {"ada.1": "now"}}}],
        {"decisions": [{"type": "respond", "message": "now"}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "turn", "args": {"ada.1": "now"}}}]},
    ],
)
def test_answers_are_understood_in_the_shapes_of_chats_and_inboxes(given: Any) -> None:
    assert reply_error(QUESTIONS, given) == ""
    assert match_replies(QUESTIONS, given) == {"ada.1": "now"}


def test_decisions_of_langchains_middleware_answer_one_question_each() -> None:
    asked: Any = [*QUESTIONS, {"id": "bo.1", "debater": "bo", "name": "Bo", "question": "Where?"}]
    payload = question_payload("clarifications", 1, asked)
    assert [each["args"] for each in payload["action_requests"]] == [{"ada.1": ""}, {"bo.1": ""}]
    assert payload["action_requests"][1]["description"] == "**Bo**: Where?"
    (review,) = payload["review_configs"]
    assert review == {"action_name": "clarifications", "allowed_decisions": ["respond", "edit"]}
    request = {key: payload[key] for key in HITLRequest.__annotations__}
    TypeAdapter(HITLRequest).validate_python(request, strict=True)
    edited = {"type": "edit", "edited_action": {"name": "clarifications", "args": {"bo.1": "here"}}}
    for first in (
        {"type": "respond", "message": "now"},
        {"type": "edit", "edited_action": {"name": "clarifications", "args": {"ada.1": "now"}}},
    ):
        given = {"decisions": [first, edited]}
        TypeAdapter(HITLResponse).validate_python(given, strict=True)
        assert reply_error(asked, given) == ""
        assert match_replies(asked, given) == {"ada.1": "now", "bo.1": "here"}


def test_an_inbox_can_show_what_is_asked() -> None:
    payload = question_payload("turn", 1, QUESTIONS)
    assert payload["action_request"] == {"action": "turn", "args": {"ada.1": ""}}
    assert payload["config"]["allow_respond"]
    assert "When?" in payload["description"]


def test_no_database_is_opened_on_the_event_loop_whatever_the_checkpointer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[bool] = []
    connect = sqlite3.connect

    def watched(*given: Any, **options: Any) -> Any:
        try:
            opened.append(asyncio.get_running_loop() is not None)
        except RuntimeError:
            opened.append(False)
        return connect(*given, **options)

    monkeypatch.setattr(sqlite3, "connect", watched)
    asyncio.run(graph(MemorySaver()).ainvoke(ASKED, THREAD, context=DebateConfig(turns=1)))
    assert opened
    assert not any(opened)

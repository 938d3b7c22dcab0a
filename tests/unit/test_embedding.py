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
from moot.config.debate_config import fence_for
from moot.people import match_replies, question_payload, reply_error
from moot.prompts.templates import fenced
from moot.state.reducers import entry_id_of
from tests.support.fakes import FakeModel

LONG_DEBATE = DebateConfig(turns=12)
"""Takes many more steps than LangChain's default recursion limit of 25 allows."""
INPUT: Any = {"topic": "Trams?"}
THREAD: Any = {"configurable": {"thread_id": "t"}}


def graph(saver: Any = None) -> Any:
    return build_graph(saver, environment=FakeModel().environment())


async def _events(runnable: Any) -> Any:
    ends = [each async for each in runnable.astream_events(INPUT, context=LONG_DEBATE, version="v2")]
    return ends[-1]["data"]["output"]


async def _streamed(runnable: Any) -> Any:
    return [each async for each in runnable.astream(INPUT, context=LONG_DEBATE, stream_mode="values")][-1]


async def _abatch(runnable: Any) -> Any:
    return (await runnable.abatch([INPUT, INPUT], context=LONG_DEBATE))[-1]


RUN_METHODS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda g: g.invoke(INPUT, context=LONG_DEBATE),
    "stream": lambda g: list(g.stream(INPUT, context=LONG_DEBATE, stream_mode="values"))[-1],
    "batch": lambda g: g.batch([INPUT, INPUT], context=LONG_DEBATE)[-1],
    "recursion limit": lambda g: g.invoke(INPUT, {"recursion_limit": 5}, context=LONG_DEBATE),
    "ainvoke": lambda g: g.ainvoke(INPUT, context=LONG_DEBATE),
    "astream": _streamed,
    "abatch": _abatch,
    "astream_events": _events,
    "sequence": lambda g: (RunnableLambda(lambda _: INPUT) | g.bind(context=LONG_DEBATE)).invoke(None),
    "fallbacks": lambda g: (
        g.bind(context=LONG_DEBATE).with_fallbacks([RunnableLambda(lambda _: {})]).invoke(INPUT)
    ),
    "retry": lambda g: g.bind(context=LONG_DEBATE).with_retry().invoke(INPUT),
}


@pytest.mark.parametrize("method", RUN_METHODS)
def test_long_debate_ends_with_every_method_of_a_runnable(method: str) -> None:
    output = RUN_METHODS[method](graph())
    if isinstance(output, Awaitable):

        async def awaited() -> Any:
            return await output

        output = asyncio.run(awaited())
    assert output["status"] == "done"
    assert output["messages"][-1].name == "judge"


class Parent(TypedDict):
    messages: Annotated[list[Any], add_messages]


def parent(saver: Any = None, inner: Any = None) -> Any:
    builder = StateGraph(Parent)
    builder.add_node("debate", inner or graph())
    builder.add_edge(START, "debate")
    builder.add_edge("debate", END)
    return builder.compile(checkpointer=saver)


def test_two_debates_in_a_parent_thread_keep_all_its_messages() -> None:
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


def test_topic_in_a_conversation_is_the_last_human_message() -> None:
    model = FakeModel()
    chat = parent(MemorySaver(), build_graph(environment=model.environment()))
    for topic in ("Should we buy trams?", "And who pays for buses?"):
        del model.calls[:]
        chat.invoke({"messages": [HumanMessage(topic)]}, THREAD)
        turns = [call for call in model.calls if call.purpose == "turn"]
        assert {call.messages[1]["content"] for call in turns} == {fenced(topic, fence_for(topic), "# Topic")}


def test_parent_messages_become_entries_of_different_kinds() -> None:
    run = graph(MemorySaver())
    messages = [
        HumanMessage("Trams?"),
        AIMessage("I looked.", name="Scout"),
        ToolMessage("Quiet.", tool_call_id="c"),
    ]
    run.invoke({"messages": messages}, THREAD, context=DebateConfig(turns=1))
    entries = run.get_state(THREAD).values["full_transcript"]
    kinds = [(e["speaker"], e["kind"]) for e in entries if e["kind"] != "speech"]
    assert kinds == [("user", "topic"), ("scout", "interjection"), ("user", "context")]


def test_debate_ignores_the_context_of_its_parent_graph() -> None:
    class Own(TypedDict):
        user: str

    builder = StateGraph(Parent, context_schema=Own)
    builder.add_node("debate", graph())
    builder.add_edge(START, "debate")
    out = builder.compile().invoke({"messages": [HumanMessage("Trams?")]}, context={"user": "u"})
    assert out["messages"][-1].name == "judge"


def test_second_topic_on_a_thread_is_rejected_and_changes_nothing() -> None:
    run = graph(MemorySaver())
    run.invoke(INPUT, THREAD, context=DebateConfig(turns=1))
    before = run.get_state(THREAD)
    with pytest.raises(InputError, match="this thread already has a debate about 'Trams\\?'"):
        run.invoke({"topic": "Something else?"}, THREAD)
    assert run.get_state(THREAD).config == before.config
    assert run.invoke({"topic": " Trams? "}, THREAD)["topic"].strip() == "Trams?"


HUMAN = DebateConfig.model_validate(
    {"turns": 2, "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}], "judge": {"enabled": False}}
)


def test_chat_message_is_the_reply_to_a_waiting_debate() -> None:
    model = FakeModel()
    run: Any = build_graph(MemorySaver(), environment=model.environment())
    waiting = run.invoke(INPUT, THREAD, context=HUMAN)["__interrupt__"][0].value
    assert waiting["response_schema"]["anyOf"][1]["properties"].keys() == {"bo.1"}
    calls = len(model.calls)
    out = run.invoke({"messages": [HumanMessage("I say no.", id="chat")]}, THREAD)
    entries = run.get_state(THREAD).values["full_transcript"]
    assert [(e["speaker"], e["kind"], e["content"]) for e in entries[2:]] == [("bo", "speech", "I say no.")]
    assert len(model.calls) == calls
    assert [entry_id_of(m) for m in out["messages"]][:3] == ["m000000", "m000001", "m000002"]


def test_empty_or_unusable_reply_repeats_the_interrupt() -> None:
    run = graph(MemorySaver())
    (interrupt,) = run.invoke(INPUT, THREAD, context=HUMAN)["__interrupt__"]
    assert interrupt.response_schema == interrupt.value["response_schema"]
    for blank in ("   ", ""):
        (repeated,) = run.invoke({"messages": [HumanMessage(blank)]}, THREAD)["__interrupt__"]
        assert repeated.value["problem"]
    for unusable in ("", {"nobody": "x"}, [{"type": "ignore", "args": None}]):
        repeated = run.invoke(Command(resume=unusable), THREAD)["__interrupt__"][0].value
        assert repeated["problem"]
    output = run.invoke(Command(resume=[{"type": "response", "args": "No."}]), THREAD)
    assert [m.text for m in output["messages"]][2] == "No."
    assert not any(e["kind"] == "interjection" for e in run.get_state(THREAD).values["full_transcript"])


QUESTIONS: Any = [{"id": "ada.1", "debater": "ada", "name": "Ada", "question": "When?"}]


@pytest.mark.parametrize(
    "reply",
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
def test_replies_are_accepted_in_chat_and_agent_inbox_formats(reply: Any) -> None:
    assert reply_error(QUESTIONS, reply) == ""
    assert match_replies(QUESTIONS, reply) == {"ada.1": "now"}


def test_each_decision_of_langchain_middleware_answers_one_question() -> None:
    questions: Any = [*QUESTIONS, {"id": "bo.1", "debater": "bo", "name": "Bo", "question": "Where?"}]
    payload = question_payload("clarifications", 1, questions)
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
        reply = {"decisions": [first, edited]}
        TypeAdapter(HITLResponse).validate_python(reply, strict=True)
        assert reply_error(questions, reply) == ""
        assert match_replies(questions, reply) == {"ada.1": "now", "bo.1": "here"}


def test_question_payload_has_the_fields_of_an_agent_inbox() -> None:
    payload = question_payload("turn", 1, QUESTIONS)
    assert payload["action_request"] == {"action": "turn", "args": {"ada.1": ""}}
    assert payload["config"]["allow_respond"]
    assert "When?" in payload["description"]


def test_no_database_is_opened_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[bool] = []
    connect = sqlite3.connect

    def watched(*arguments: Any, **options: Any) -> Any:
        try:
            opened.append(asyncio.get_running_loop() is not None)
        except RuntimeError:
            opened.append(False)
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", watched)
    asyncio.run(graph(MemorySaver()).ainvoke(INPUT, THREAD, context=DebateConfig(turns=1)))
    assert opened
    assert not any(opened)

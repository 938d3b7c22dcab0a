"""`debate_tool` in LangChain agents: streaming, interrupts for people, and resuming."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from moot import DebateConfig, debate_tool, open_debates
from moot.models.offline import ScriptedModel
from tests.support.fakes import FakeModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
HUMAN_DEBATE = DebateConfig.model_validate(
    {"turns": 4, "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}], "judge": {"enabled": False}}
)


class ToolCallingModel(ScriptedModel):
    def __init__(self, script: Any) -> None:
        super().__init__(script)

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def make_agent(*questions: str, tool: Any) -> Any:
    calls = [
        {"name": "debate", "args": {"question": question}, "id": f"call{number}"}
        for number, question in enumerate(questions)
    ]
    replies = [AIMessage("", tool_calls=calls), AIMessage("Both are decided.")]
    return create_agent(ToolCallingModel(script=replies), [tool], checkpointer=InMemorySaver())


AGENT_INPUT: Any = {"messages": [HumanMessage("Decide.")]}


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_parallel_debates_of_an_agent_are_streamed_separately(way: str, tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    tool = debate_tool(DebateConfig(turns=2), database=database)  # the offline model streams
    agent = make_agent("Tabs?", "Trams?", tool=tool)
    modes: Any = {"stream_mode": ["custom", "messages"], "subgraphs": True}

    async def collect() -> list[Any]:
        return [each async for each in agent.astream(AGENT_INPUT, THREAD, **modes)]

    events = list(agent.stream(AGENT_INPUT, THREAD, **modes)) if way == "stream" else asyncio.run(collect())
    debates = defaultdict(list)
    for _, mode, event in events:
        if mode == "custom":
            debates[event["debate"]].append(event)
    messages = [event[0] for _, mode, event in events if mode == "messages"]
    assert {message.name for message in messages} == {"debate", None}
    assert "".join(m.text for m in messages if m.type != "tool") == "Both are decided."
    assert len(debates) == 2
    for each in debates.values():
        assert [event["event"] for event in each].count("entry") >= 2
        assert any(event["event"] == "token" for event in each)
        assert each[-1]["event"] == "end"
    with open_debates(database) as stored:
        assert {row.id for row in stored.rows()} == set(debates)
        assert {row.status for row in stored.rows()} == {"done"}


def test_human_turn_interrupts_the_agent_and_repeats_no_call(tmp_path: Path) -> None:
    model, database = FakeModel(), str(tmp_path / "moot.sqlite")
    tool = debate_tool(HUMAN_DEBATE, database=database, environment=model.environment())
    agent = make_agent("Tabs?", tool=tool)
    (first,) = agent.invoke(AGENT_INPUT, THREAD)["__interrupt__"]
    assert [each["id"] for each in first.value["questions"]] == ["bo.1"]
    (second,) = agent.invoke(Command(resume="I say no."), THREAD)["__interrupt__"]
    assert [each["id"] for each in second.value["questions"]] == ["bo.2"]
    assert second.value["debate"] == first.value["debate"]
    calls = len(model.calls)
    out = agent.invoke(Command(resume="Still no."), THREAD)
    assert out["messages"][-1].text == "Both are decided."
    with open_debates(database) as debates:
        (row,) = debates.rows()
        contents = [entry["content"] for entry in debates.get(row.id).document()["transcript"]]
    assert (row.id, row.status, row.turns) == (first.value["debate"], "done", 4)
    assert [text for text in contents if "no." in text] == ["I say no.", "Still no."]
    assert len(model.calls) - calls <= 2
    prompts = [str(call.messages) for call in model.calls if call.purpose == "turn"]
    assert len(prompts) == len(set(prompts)) == 2


def test_parallel_debates_are_resumed_by_interrupt_id(tmp_path: Path) -> None:
    model, database = FakeModel(), str(tmp_path / "moot.sqlite")
    tool = debate_tool(HUMAN_DEBATE, database=database, environment=model.environment())
    agent = make_agent("Tabs?", "Trams?", tool=tool)
    out = agent.invoke(AGENT_INPUT, THREAD)
    for number in (1, 2):
        interrupts = out["__interrupt__"]
        answers = {each.id: f"Answer {number} to {each.value['debate']}" for each in interrupts}
        assert len(answers) == 2
        out = agent.invoke(Command(resume=answers), THREAD)
    assert out["messages"][-1].text == "Both are decided."
    assert set(Counter(str(call.messages) for call in model.calls).values()) == {1}
    with open_debates(database) as debates:
        for row in debates.rows():
            transcript = debates.get(row.id).document()["transcript"]
            contents = [entry["content"] for entry in transcript if entry["speaker"] == "bo"]
            assert contents == [f"Answer 1 to {row.id}", f"Answer 2 to {row.id}"]

"""A debate as a subagent of a deep agent, with the real package."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from moot import InputError, build_graph, debate_node
from tests.integration.test_debate_tool_in_agents import HUMAN_DEBATE, THREAD, ToolCallingModel

AGENT_INPUT: Any = {"messages": [HumanMessage("Decide.")], "files": {}}


def deep_agent(*questions: str, runnable: Any) -> Any:
    """Return a deep agent that has a debate decide each question."""
    calls = [
        {"name": "task", "args": {"description": question, "subagent_type": "debate"}, "id": f"call{number}"}
        for number, question in enumerate(questions)
    ]
    model = ToolCallingModel(script=[AIMessage("", tool_calls=calls), AIMessage("Decided.")])
    subagent: Any = {"name": "debate", "description": "Debates a question.", "runnable": runnable}
    return create_deep_agent(model=model, subagents=[subagent], checkpointer=InMemorySaver())


def results(output: Any) -> list[str]:
    return [message.text for message in output["messages"] if message.type == "tool"]


@pytest.mark.parametrize("make", [build_graph, debate_node], ids=lambda make: make.__name__)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_deep_agent_gets_the_results_of_parallel_debates(way: str, make: Any) -> None:
    agent = deep_agent("Tabs?", "Trams?", runnable=make())
    if way == "invoke":
        output = agent.invoke(AGENT_INPUT, THREAD)
    else:
        output = asyncio.run(agent.ainvoke(AGENT_INPUT, THREAD))
    assert len(results(output)) == 2
    assert all("placeholder" in result for result in results(output))
    assert output["messages"][-1].text == "Decided."


def test_human_turn_in_a_subagent_interrupts_the_deep_agent() -> None:
    agent = deep_agent("Tabs?", runnable=debate_node(HUMAN_DEBATE))
    (interrupt,) = agent.invoke(AGENT_INPUT, THREAD)["__interrupt__"]
    assert [each["id"] for each in interrupt.value["questions"]] == ["bo.1"]
    (second,) = agent.invoke(Command(resume="I say no."), THREAD)["__interrupt__"]
    output = agent.invoke(Command(resume="Still no."), THREAD)
    assert second.value["questions"]
    assert results(output)


def test_unknown_input_key_without_a_parent_graph_is_an_error() -> None:
    with pytest.raises(InputError, match="files: unknown input key"):
        build_graph().invoke({"messages": [HumanMessage("Tabs?")], "files": {}})

"""Debates inside other programs: as a graph node, as a tool, and in a program with an event loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import trio
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver, MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from moot import (
    ConfigError,
    DebateBusy,
    DebateConfig,
    InputError,
    WaitingForPerson,
    aopen_debates,
    build_graph,
    debate_node,
    debate_tool,
    open_debates,
)
from moot.calls.model_calls import ModelCall, Reply
from moot.text.tokens import counter
from tests.support.fakes import JUDGE_REPLY, FakeModel, fake_reply
from tests.support.transcripts import message_texts
from tests.support.waiting import LONG_TIMEOUT_S

TOPIC = "Should cities ban private cars from their centres?"
SHORT = DebateConfig(turns=2)
THREAD: Any = {"configurable": {"thread_id": "t"}}
HUMAN = DebateConfig.model_validate(
    {"turns": 2, "debaters": [{"name": "Ada"}, {"name": "Bo", "model": "human"}], "judge": {"enabled": False}}
)


class Memo(TypedDict, total=False):
    protocol_update: str
    decision: str
    speeches: int


def parent_graph(state: Any, node: Any, saver: Any = None) -> Any:
    builder = StateGraph(state)
    builder.add_node("debate", node)
    builder.add_edge(START, "debate")
    builder.add_edge("debate", END)
    return builder.compile(checkpointer=saver)


def memo_node(config: DebateConfig = SHORT, model: FakeModel | None = None) -> Any:
    return debate_node(
        config,
        map_in=lambda state: {"topic": state["protocol_update"]},
        map_out=lambda output: {
            "decision": output["status"],
            "speeches": sum(entry["kind"] == "speech" for entry in output["full_transcript"]),
        },
        environment=(model or FakeModel()).environment(),
    )


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_node_maps_the_parent_state_to_a_debate_and_back(way: str) -> None:
    graph = parent_graph(Memo, memo_node())
    output = (
        graph.invoke({"protocol_update": TOPIC})
        if way == "invoke"
        else asyncio.run(graph.ainvoke({"protocol_update": TOPIC}))
    )
    assert output == {"protocol_update": TOPIC, "decision": "done", "speeches": 2}


def test_a_chat_gets_one_result_message_per_question() -> None:
    model = FakeModel()
    chat = parent_graph(MessagesState, debate_node(SHORT, environment=model.environment()), MemorySaver())
    chat.invoke({"messages": [HumanMessage("Trams?")]}, THREAD)
    second = chat.invoke({"messages": [HumanMessage("And buses?")]}, THREAD)["messages"]
    assert [(m.type, m.name) for m in second] == [("human", None), ("ai", "judge")] * 2
    assert len({m.id for m in second}) == 4
    assert any("And buses?" in str(call.messages) for call in model.calls)


def test_a_person_replies_through_the_parent_graph_without_repeated_calls() -> None:
    model = FakeModel()
    graph = parent_graph(Memo, memo_node(HUMAN, model), MemorySaver())
    assert graph.invoke({"protocol_update": TOPIC}, THREAD)["__interrupt__"]
    assert graph.get_state(THREAD, subgraphs=True).tasks[0].state.values["topic"] == TOPIC
    call_count = len(model.calls)
    assert graph.invoke(Command(resume="No."), THREAD)["speeches"] == 2
    assert len(model.calls) == call_count


def test_a_node_rejects_unknown_keys_and_a_missing_topic() -> None:
    with pytest.raises(InputError, match="unknown keys question: use only topic"):
        parent_graph(Memo, debate_node(map_in=lambda _: {"question": "Trams?"})).invoke(
            {"protocol_update": ""}
        )
    with pytest.raises(InputError, match="no topic"):
        parent_graph(Memo, debate_node()).invoke({"protocol_update": TOPIC})


def test_a_tool_returns_a_short_verdict_and_the_id_of_the_stored_debate(tmp_path: Path) -> None:
    def wordy(call: ModelCall) -> Reply:
        data = {**JUDGE_REPLY, "reasoning": "It was weighed at length. " * 200}
        return Reply(data=data, model=call.model) if call.schema is not None else fake_reply(call)

    database = str(tmp_path / "moot.sqlite")
    tool = debate_tool(SHORT, database=database, environment=FakeModel(wordy).environment())
    text = tool.invoke({"question": TOPIC})
    assert text.startswith("The judge gave no decision.\n\n**A tie**")
    assert 80 < counter()(text) <= 300
    with open_debates(database) as debates:
        assert debates.get(text.split()[-1]).row.turns == 2


def test_more_threads_than_workers_can_call_a_tool(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    tool = debate_tool(SHORT, database=database, environment=FakeModel().environment())
    with ThreadPoolExecutor(12) as threads:
        results = list(threads.map(lambda number: tool.invoke(f"{TOPIC} {number}"), range(12)))
    assert all("Debate " in each for each in results)


def test_a_tool_takes_three_arguments_limits_turns_and_explains_errors(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    tool = debate_tool(database=database, most_turns=3, environment=FakeModel().environment())
    assert tool.args.keys() == {"question", "protocol", "turns"}
    assert len(str(tool.tool_call_schema.model_json_schema())) < 1_000  # type: ignore[union-attr]  # pydantic's

    async def story() -> list[str]:
        arguments = ({"turns": 99}, {"protocol": "vote"}, {"protocol": "duel"}, {"protocol": "council"})
        return [await tool.ainvoke({"question": TOPIC, **more}) for more in arguments]

    *_, unknown, longer = asyncio.run(story())
    assert "unknown protocol 'duel': use one of" in unknown
    assert "'council' may need 12 turns, but at most 3 are allowed" in longer
    with open_debates(database) as debates:
        rows = {row.protocol: row.turns for row in debates.rows()}
        assert rows == {"round-robin": 3, "vote": 3}
        vote = next(row for row in debates.rows() if row.protocol == "vote")
        assert debates.get(vote.id).config().names() == {"voter": "Voter"}


@pytest.mark.parametrize("most_turns", [0, -1])
def test_a_tool_that_allows_no_turn_is_rejected(most_turns: int) -> None:
    with pytest.raises(ConfigError, match=f"most_turns is {most_turns}: set it to at least 1"):
        debate_tool(most_turns=most_turns)


def test_an_async_debate_equals_a_sync_one_and_does_not_block_the_loop(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "sync.sqlite"), environment=FakeModel().environment()) as debates:
        expected = debates.start(TOPIC, SHORT).run()

    async def story() -> tuple[list[str], Any, list[str]]:
        database, beats = str(tmp_path / "async.sqlite"), []

        async def beat() -> None:
            while True:
                beats.append(threading.current_thread().name)
                await asyncio.sleep(0)

        async with aopen_debates(database, environment=FakeModel().environment()) as debates:
            debate, beating = debates.start(TOPIC, SHORT), asyncio.create_task(beat())
            kinds: list[str] = [event["event"] async for event in debate.astream()]
            beating.cancel()
            return kinds, await debate.arun(), beats

    kinds, document, beats = asyncio.run(story())
    assert message_texts(document) == message_texts(expected)
    assert kinds[-1] == "end"
    assert len(beats) > len(kinds)


@pytest.mark.parametrize("way", ["break", "cancel"])
def test_an_abandoned_run_is_paused_and_a_resume_repeats_no_call(way: str, tmp_path: Path) -> None:
    whole, model = FakeModel(), FakeModel()
    with open_debates(str(tmp_path / "whole.sqlite"), environment=whole.environment()) as debates:
        expected = debates.start(TOPIC, SHORT).run()

    async def abandon(debate: Any, reached: asyncio.Event) -> None:
        async with aclosing(debate.astream()) as events:
            async for event in events:
                if event["event"] == "entry":
                    reached.set()
                    if way == "break":
                        return
                    await asyncio.sleep(60)

    async def story() -> tuple[str, Any]:
        async with aopen_debates(str(tmp_path / "left.sqlite"), environment=model.environment()) as debates:
            debate, reached = debates.start(TOPIC, SHORT), asyncio.Event()
            running = asyncio.create_task(abandon(debate, reached))
            await asyncio.wait_for(reached.wait(), LONG_TIMEOUT_S)
            if way == "cancel":
                running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            status = debate.row.status
            assert not debate.is_running()
            return status, await debate.arun()

    status, document = asyncio.run(story())
    assert status == "paused"
    assert message_texts(document) == message_texts(expected)
    assert len(model.calls) == len(whole.calls)


def test_errors_of_a_run_are_raised_to_the_awaiting_caller(tmp_path: Path) -> None:
    async def story() -> None:
        database = str(tmp_path / "moot.sqlite")
        async with aopen_debates(database, environment=FakeModel().environment()) as debates:
            debate = debates.start(TOPIC, HUMAN)
            async with aclosing(debate.astream()) as events:
                await anext(events)
                with pytest.raises(DebateBusy):
                    await debate.arun()
            with pytest.raises(WaitingForPerson):
                await debate.arun()
            assert (await debate.arun(answer="No."))["status"] == "done"

    asyncio.run(story())


def test_a_tool_reports_a_waiting_debate_and_its_id(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")
    text = debate_tool(HUMAN, database=database, environment=FakeModel().environment()).invoke(TOPIC)
    assert text.startswith("the debate is waiting for a person's reply")
    with open_debates(database) as debates:
        assert debates.get(text.split()[-1]).row.status == "waiting"


def test_trio_gets_an_error_that_recommends_a_worker_thread(tmp_path: Path) -> None:
    database = str(tmp_path / "moot.sqlite")

    def run() -> str:
        with open_debates(database) as debates:
            return str(debates.start("Tabs?", DebateConfig(turns=2)).run()["status"])

    async def main() -> str:
        with pytest.raises(InputError, match="under trio, call its synchronous version in a worker thread"):
            async with aopen_debates(database):
                pass
        with pytest.raises(InputError, match="the graph needs an asyncio event loop"):
            await build_graph().ainvoke({"topic": "Tabs?"}, context=DebateConfig(turns=2))
        return await trio.to_thread.run_sync(run)

    assert trio.run(main) == "done"


def test_a_checkpointer_without_history_is_rejected() -> None:
    class ShallowPostgresSaver(InMemorySaver):
        """Fake of the LangGraph class of this name, which needs a server."""

    with pytest.raises(ConfigError, match=r"keeps only the latest checkpoint.*: use PostgresSaver"):
        build_graph(ShallowPostgresSaver())

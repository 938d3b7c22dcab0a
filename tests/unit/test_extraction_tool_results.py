"""Tool results as evidence: what a call was about, whether it failed, and what bears on the debate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from moot.graph.debate import build_graph
from moot.nodes.memory.summarizers.points import MAX_POINT
from moot.nodes.memory.summarizers.points_layout import render
from moot.nodes.memory.summarizers.rule_based import fold
from moot.nodes.reading.tool_results import passages, use_of
from moot.nodes.text.terms import terms
from moot.nodes.text.tokens import counter
from moot.state.config import DebateConfig
from moot.state.entries import Entry, make_entry
from tests.support.fakes import FakeModel

SAMPLES = json.loads((Path(__file__).parents[1] / "fixtures" / "tool-results.json").read_text("utf-8"))
"""Results as Moot's tools, LangChain's, MCP servers and programs return them."""
DEBATED = dict.fromkeys(terms("Night trams cost millions; riders of the tram in Tallinn and Bonn."), 9)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["of"])
def test_a_result_is_read_by_its_call_and_its_tools_own_protocol(sample: dict[str, Any]) -> None:
    known = None if sample["status"] is None else sample["status"] == "error"
    use = use_of(sample["name"], sample["arguments"], sample["result"], failed=known)
    assert (use["about"], use["failed"]) == (sample["about"], sample["failed"])
    said = "\n".join(passages(use, sample["result"], DEBATED))
    assert [part for part in sample["holds"] if part not in said] == []
    assert said.startswith(f"{sample['name']} {sample['about']}".strip())


def test_of_a_long_table_the_rows_that_bear_on_the_debate_are_told_with_their_columns() -> None:
    table = "city,riders\n" + "".join(f"Town {n},{n}\n" for n in range(500)) + "Tallinn,1200000\n"
    use = use_of("read_file", {"path": "riders.csv"}, table)
    found = passages(use, table, DEBATED)
    assert "read_file riders.csv: city: Tallinn, riders: 1200000" in found
    assert len(found) <= 12


def told(content: str, *, failed: bool, tokens: int = 400) -> str:
    result: Entry = make_entry(2, "tools", "tool_result", content, targets=["m000001"])
    result["tool"] = {"name": "bash", "about": "make", "failed": failed}
    said = [make_entry(n, "ada", "speech", f"Trams of line {n} cost much at night.") for n in range(3, 9)]
    points = fold(None, [result, *said], max_tokens=tokens, count=counter(), names={}, errors=200)
    return render(points, {})


def test_an_error_stands_whole_in_a_summary_up_to_its_own_budget() -> None:
    error = "main.c:12: error: " + "expected a semicolon, found a brace; " * 9 + "LAST WORDS"
    assert len(error) > MAX_POINT
    assert error in told(error, failed=True)
    assert counter()(told("word " * 3_000 + "LAST WORDS", failed=True)) <= 400
    assert "LAST WORDS" in told("word " * 3_000 + "LAST WORDS", failed=True, tokens=900)
    assert "LAST WORDS" not in told(error, failed=False)


def test_a_parents_tool_messages_are_read_by_the_calls_before_them() -> None:
    run, thread = build_graph(MemorySaver(), environment=FakeModel().environment()), {}
    thread = {"configurable": {"thread_id": "t"}}
    call = {"name": "read_file", "args": {"path": "riders.csv"}, "id": "c1"}
    said = [
        HumanMessage("Trams?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("city,riders\nBonn,88000", tool_call_id="c1"),
        ToolMessage("no such thing", tool_call_id="c2", name="look", status="error"),
    ]
    run.invoke({"messages": said}, thread, context=DebateConfig(turns=1))  # type: ignore[arg-type]
    entries = run.get_state(thread).values["full_transcript"]  # type: ignore[arg-type]
    assert [each["tool"] for each in entries if "tool" in each] == [
        {"name": "read_file", "about": "riders.csv", "failed": False},
        {"name": "look", "about": "", "failed": True},
    ]


@given(st.text(), st.sampled_from(["path", "command", "query", "other"]))
def test_any_result_is_read(content: str, key: str) -> None:
    use = use_of("t", {key: content}, content)
    found = passages(use, content, DEBATED)
    assert 0 < len(found) <= 12
    assert all(len(line.splitlines()) == 1 for line in found)

"""Extraction from tool results: subject, failure and relevant figures."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from moot import open_debates
from moot.config import DebateConfig
from moot.graph.debate import build_graph
from moot.memory.summarizers.rule_based import MAX_POINT, fold, render
from moot.memory.tool_results import make_tool_use, passages, shows_evidence
from moot.state.entries import Entry, make_entry
from moot.text.terms import terms
from moot.text.tokens import counter
from tests.support.fakes import FakeModel

SAMPLES = json.loads((Path(__file__).parents[1] / "fixtures" / "tool-results.json").read_text("utf-8"))
"""Results of Moot's tools, LangChain's tools, MCP servers and programs."""
DEBATE_TERMS = dict.fromkeys(terms("Night trams cost millions; riders of the tram in Tallinn and Bonn."), 9)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["of"])
def test_tool_results_are_interpreted_by_call_and_format(sample: dict[str, Any]) -> None:
    known = None if sample["status"] is None else sample["status"] == "error"
    use = make_tool_use(sample["name"], sample["arguments"], sample["result"], failed=known)
    assert (use["about"], use["failed"]) == (sample["about"], sample["failed"])
    text = "\n".join(passages(use, sample["result"], DEBATE_TERMS))
    assert [part for part in sample["holds"] if part not in text] == []
    assert text.startswith(f"{sample['name']} {sample['about']}".strip())


@pytest.mark.parametrize(
    "text",
    [
        "It rose by 12.5 % last year.",
        "下降了三十。",
        "It costs $3.2 million a year.",
        "In ١٩٩٩ it ended.",
        "See https://example.org/a?b=1 for more.",
        "It was shown before [3].",
        "He wrote “we shall never give up on this”.",
        "他说「我们绝不放弃」。",
    ],
)
def test_figures_sources_and_quotations_are_evidence(text: str) -> None:
    assert shows_evidence(text)


def test_a_lone_digit_is_no_evidence() -> None:
    assert not shows_evidence("There are 2 sides to it.")


@pytest.mark.parametrize("piece", ["a", "1,", "a-", "你好。", "(", "http://", "Abc. "])
def test_a_long_passage_is_searched_in_linear_time(piece: str) -> None:
    began = time.process_time()
    shows_evidence(piece * (200_000 // len(piece)))
    assert time.process_time() - began < 5


def test_passages_of_a_long_table_are_its_relevant_rows() -> None:
    table = "city,riders\n" + "".join(f"Town {n},{n}\n" for n in range(500)) + "Tallinn,1200000\n"
    use = make_tool_use("read_file", {"path": "riders.csv"}, table)
    lines = passages(use, table, DEBATE_TERMS)
    assert "read_file riders.csv: city: Tallinn, riders: 1200000" in lines
    assert len(lines) <= 12


def summary_with_result(content: str, *, failed: bool, tokens: int = 400) -> str:
    result: Entry = make_entry(2, "tools", "tool_result", content, targets=["m000001"])
    result["tool"] = {"name": "bash", "about": "make", "failed": failed}
    messages = [make_entry(n, "ada", "speech", f"Trams of line {n} cost much at night.") for n in range(3, 9)]
    points = fold(None, [result, *messages], max_tokens=tokens, count=counter(), names={}, error_tokens=200)
    return render(points, {})


def test_summaries_keep_errors_whole_up_to_their_budget() -> None:
    error = "main.c:12: error: " + "expected a semicolon, found a brace; " * 9 + "LAST WORDS"
    assert len(error) > MAX_POINT
    assert error in summary_with_result(error, failed=True)
    assert counter()(summary_with_result("word " * 3_000 + "LAST WORDS", failed=True)) <= 400
    assert "LAST WORDS" in summary_with_result("word " * 3_000 + "LAST WORDS", failed=True, tokens=900)
    assert "LAST WORDS" not in summary_with_result(error, failed=False)


def test_tool_messages_of_a_parent_graph_are_matched_to_their_calls() -> None:
    graph: Any = build_graph(MemorySaver(), environment=FakeModel().environment())
    thread: Any = {"configurable": {"thread_id": "t"}}
    call = {"name": "read_file", "args": {"path": "riders.csv"}, "id": "c1"}
    messages = [
        HumanMessage("Trams?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("city,riders\nBonn,88000", tool_call_id="c1"),
        ToolMessage("no such thing", tool_call_id="c2", name="look", status="error"),
    ]
    graph.invoke({"messages": messages}, thread, context=DebateConfig(turns=1))
    entries = graph.get_state(thread).values["full_transcript"]
    assert [each["tool"] for each in entries if "tool" in each] == [
        {"name": "read_file", "about": "riders.csv", "failed": False},
        {"name": "look", "about": "", "failed": True},
    ]


@given(st.text(), st.sampled_from(["path", "command", "query", "other"]))
def test_any_tool_result_yields_single_line_passages(content: str, key: str) -> None:
    use = make_tool_use("t", {key: content}, content)
    lines = passages(use, content, DEBATE_TERMS)
    assert 0 < len(lines) <= 12
    assert all(len(line.splitlines()) == 1 for line in lines)


FAILED_RUN = "Error: Module not found\nexit code: 1"


@pytest.mark.parametrize(
    ("entry", "use"),
    [
        ({"speaker": "tools", "content": f"bash: {FAILED_RUN}"}, ("bash", "", True)),
        ({"speaker": "pytest", "content": FAILED_RUN}, ("pytest", "", True)),
        ({"speaker": "pytest", "content": "No module", "status": "error"}, ("pytest", "", True)),
        (
            {
                "speaker": "tools",
                "content": FAILED_RUN,
                "tool": {"name": "cat", "about": "a.log", "failed": False},
            },
            ("cat", "a.log", False),
        ),
    ],
    ids=["name in the text", "speaker", "status", "tool record"],
)
def test_tool_results_of_a_continued_transcript_keep_their_status(
    entry: dict[str, Any], use: tuple[str, str, bool]
) -> None:
    call = {"id": "c1", "speaker": "ada", "kind": "tool_call", "content": "bash pytest"}
    result = {**entry, "kind": "tool_result", "targets": ["c1"]}
    message = {"speaker": "ada", "content": "The tests fail."}
    graph: Any = build_graph(MemorySaver(), environment=FakeModel().environment())
    config = DebateConfig.model_validate({"turns": 2, "judge": {"enabled": False}})
    thread: Any = {"configurable": {"thread_id": "4ab8a1a6-9f3c-4c55-8a6e-0c4a8cf5c0aa"}}
    graph.invoke({"topic": "Ship it?", "full_transcript": [call, result, message]}, thread, context=config)
    asked, answered = graph.get_state(thread).values["full_transcript"][1:3]
    assert tuple(answered["tool"].values()) == use
    assert answered["targets"] == [asked["id"]]


def test_tool_results_of_an_imported_openai_chat_keep_their_status(tmp_path: Path) -> None:
    function = {"name": "bash", "arguments": json.dumps({"command": "npm test"})}
    chat = [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Is it ready?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_9", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_9", "content": FAILED_RUN},
        {"role": "tool", "tool_call_id": "call_0", "name": "lint", "content": "fine", "status": "error"},
        {"role": "assistant", "content": "No: the tests fail."},
    ]
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        entries = debates.import_transcript(json.dumps(chat), topic="Is it ready?").document()["transcript"]
    kinds = [(entry["speaker"], entry["kind"]) for entry in entries[2:]]
    called, failed, linted, _ = entries[2:]
    assert kinds[:3] == [("assistant", "tool_call"), ("tools", "tool_result"), ("tools", "tool_result")]
    assert failed["tool"] == {"name": "bash", "about": "npm test", "failed": True}
    assert failed["targets"] == [called["id"]]
    assert linted["tool"] == {"name": "lint", "about": "", "failed": True}
    assert FAILED_RUN in failed["content"]


@pytest.mark.parametrize(
    ("result", "outline"),
    [
        ("y = 2\n" * 40, "40 lines"),
        ("\n".join(f"src/mod{n}.py" for n in range(3)), "3 files"),
        ("a/b.py:3: x\na/b.py:9: x\nc.py:1: x", "2 files"),
        ("2 matches for 'x'\nMakefile:2: x\nMakefile:9: x", "1 file"),
        ("notes/a.md:fares are high\nnotes/b.md:fares are low", "2 files"),
        ("src/a.py\n./c/Makefile\nsrc/b.py", "3 files"),
        ("src/a.py:3\nc/Makefile:12", "2 files"),
        ("C:\\src\\a.py:3: x\nC:\\src\\b.py:4: x", "2 files"),
    ],
    ids=["file", "listing", "grep -n", "search", "grep", "grep -l", "grep -c", "Windows"],
)
def test_first_passage_counts_files_or_lines(result: str, outline: str) -> None:
    assert passages(make_tool_use("t", {}, result), result, {})[0] == f"t: {outline}"


def test_passage_of_a_failed_test_starts_with_the_exception() -> None:
    result = "F....\n=== FAILURES ===\n    assert 1 == 2\nE   AssertionError: assert 1 == 2\n1 failed"
    (passage,) = passages(make_tool_use("bash", {}, result, failed=True), result, {})
    assert passage.startswith("bash failed: E AssertionError: assert 1 == 2 F....")


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each["failed"]], ids=lambda each: each["of"])
def test_passage_of_a_failed_run_starts_with_its_error_line(sample: dict[str, Any]) -> None:
    before = "collected 3 items\nplatform linux\n"
    result = before + sample["result"]
    use = make_tool_use("bash", {}, result, failed=True)
    (passage,) = passages(use, result, {})
    assert set(passage.split()) == {"bash", "failed:", *result.split()}
    if not sample["result"].startswith(("{", "<")):
        assert not passage.startswith("bash failed: collected")

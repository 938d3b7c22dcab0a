"""Tool results: their type, their status, and every detail of an error."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.nodes.reading.tool_results import describe, read_result

TRACEBACK = """Traceback (most recent call last):
  File "/srv/app/main.py", line 42, in <module>
    load()
  File "/srv/app/load.py", line 7, in load
    raise KeyError("rate")
KeyError: 'rate'
exit code: 3"""


@dataclass(frozen=True)
class Case:
    name: str
    content: str
    tool: str
    type: str
    status: str
    holds: tuple[str, ...]


CASES = [
    Case(
        "file",
        "1\timport os\n2\tdef main() -> None:\n3\t    pass",
        "",
        "file_read",
        "ok",
        ("def main()", "3 lines"),
    ),
    Case("read", "notes/plan.md\nAll good", "read_file", "file_read", "ok", ("notes/plan.md",)),
    Case("missing", "Error: no such file: data/x.csv", "read_file", "file_read", "error", ("data/x.csv",)),
    Case(
        "errors-in-a-file",
        "def f():\n    pass\n" * 9 + "raise ValueError",
        "read_file",
        "file_read",
        "ok",
        (),
    ),
    Case(
        "crash",
        TRACEBACK,
        "shell",
        "shell",
        "error",
        ("KeyError: 'rate'", "exit code 3", "load.py", "line 7", "line 42"),
    ),
    Case(
        "tests",
        "$ make test\n3 failed, 20 passed\nexit code 1",
        "",
        "shell",
        "error",
        ("3 failed", "exit code 1"),
    ),
    Case("fine", "$ ls\na.txt\nexit code 0", "", "shell", "ok", ("exit code 0",)),
    Case(
        "search",
        "12 results\nhttps://a.org/x\nhttps://b.org/y",
        "",
        "search",
        "ok",
        ("12 results", "b.org/y"),
    ),
    Case(
        "created",
        "Created file src/new.py (120 lines)",
        "",
        "file_created",
        "ok",
        ("src/new.py", "120 lines"),
    ),
    Case(
        "edit",
        "The file src/a.py has been edited.\n@@ -1 +1 @@\n-old\n+new",
        "",
        "edit",
        "ok",
        ("src/a.py", "+new"),
    ),
    Case("sum", "2 * (3 + 4) = 14", "", "calculator", "ok", ("= 14",)),
    Case("other", "The tide is high at noon.", "tides", "default", "ok", ("high at noon",)),
    Case(
        "json",
        json.dumps({"exit_code": 2, "stderr": "line one\nValueError: bad rate\n", "stdout": "x"}),
        "shell",
        "shell",
        "error",
        ("ValueError: bad rate", "exit code 2"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_result_is_read_by_its_type(case: Case) -> None:
    result = read_result(case.content, case.tool)
    assert (result["type"], result["status"]) == (case.type, case.status)
    said = describe(result)
    assert [part for part in case.holds if part not in said] == []


def test_an_error_survives_in_the_middle_of_a_long_log() -> None:
    log = "ok line\n" * 50_000 + "src/a.c:12: error: expected ';'\n" + "ok line\n" * 50_000 + "exit code 1"
    result = read_result(log, "bash")
    assert result["status"] == "error"
    assert any("src/a.c:12: error: expected ';'" in line for line in result["errors"])


@given(st.text(), st.sampled_from(["", "read_file", "bash", "search", "write_file", "edit", "calc", "other"]))
def test_any_result_gives_bounded_json(content: str, tool: str) -> None:
    result = read_result(content, tool)
    assert json.loads(json.dumps(result)) == result
    assert len(result["facts"]) <= 8
    assert len(result["errors"]) <= 12
    assert all(
        len(line) <= 240 and len(line.splitlines()) == 1 for line in [*result["facts"], *result["errors"]]
    )
    assert describe(result)

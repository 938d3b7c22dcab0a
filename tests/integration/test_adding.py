"""What CONTRIBUTING promises: one file and one row add a tool, a command or a summariser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from moot import DebateConfig, open_debates
from moot.nodes.calls import Flow
from moot.nodes.driving.environment import Environment
from moot.nodes.memory.summarizers.summarizer import Draft, SummaryRequest
from moot.nodes.memory.summarizers.summarizer_table import SUMMARIZERS, summarizer_named
from moot.nodes.models.local import ScriptedModel
from moot.nodes.tools.tool import Surroundings, Tool
from moot.nodes.tools.tool_table import TOOLS


class Dice(Tool):
    name = "dice"
    about = "Throws a die."

    sides: int = 6

    def run(self, around: Surroundings) -> str:
        return f"a {self.sides - 2}"


class Nothing:
    name = "nothing"

    def summarize(self, request: SummaryRequest) -> Flow[Draft]:
        yield from ()
        return Draft(text="Much was said.", method=self.name)


def test_a_class_and_a_row_are_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "dice", Dice)
    debaters: list[Any] = [{"name": "Ada", "tools": ["dice"]}]
    config = DebateConfig(turns=1, debaters=debaters, model="m", judge={"enabled": False})
    call = {"id": "c1", "name": "dice", "args": {"sides": 6}}
    model = ScriptedModel([AIMessage("", tool_calls=[call]), "It is: I threw a 4."])
    environment = Environment(factory=lambda name, settings: model)
    with open_debates(str(tmp_path / "d.sqlite"), environment=environment) as debates:
        said = debates.start("Is chance fair?", config).run()["transcript"]
    assert [entry["content"] for entry in said if entry["kind"] == "tool_result"] == ["dice: a 4"]


def test_a_class_and_a_row_are_a_summariser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUMMARIZERS, "nothing", Nothing())
    summarizer_named.cache_clear()
    memory: Any = {"summarizer": "nothing", "keep_recent": 2, "summarize_every": 2}
    with open_debates(str(tmp_path / "d.sqlite")) as debates:
        document = debates.start("Is chance fair?", DebateConfig(turns=8, memory=memory)).run()
    assert {summary["text"] for summary in document["summaries"]} == {"Much was said."}
    summarizer_named.cache_clear()


def test_a_file_and_a_row_are_a_command(tmp_path: Path) -> None:
    (tmp_path / "cheer.py").write_text(
        'def cheer(name: str) -> None:\n    """Cheer."""\n    print("hail", name)\n'
    )
    code = (
        "import sys; from moot.graph.cli import commands\n"
        "from moot.graph.cli.command_table import COMMANDS, Row\n"
        f"commands.__path__.append({str(tmp_path)!r})\n"
        "COMMANDS['cheer'] = Row('cheer:cheer', 'Cheer somebody.', 'Results')\n"
        "from moot.graph.cli import main; sys.argv = ['moot', *sys.argv[1:]]; main()"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )

    assert run("cheer", "Ada").stdout == "hail Ada\n"
    assert "cheer" in run("--help").stdout

"""Strict type checks of programs that use Moot."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
CONFIG_PROGRAM = """\
from moot import Budget, DebateConfig, DebaterConfig, Event, JudgeConfig, MemoryConfig, StepEvent

config = DebateConfig(
    turns=2,
    debaters=(DebaterConfig(name="Ada", stance="yes"), DebaterConfig(name="Ben", temperature=0.2)),
    judge=JudgeConfig(enabled=False),
    memory=MemoryConfig(keep_recent=20, budget=Budget(messages=4000)),
)
print(config.turns)


def phase(event: Event) -> str:
    return event["phase"] if event["event"] == "step" else ""


def speakers(step: StepEvent) -> list[str]:
    return step["speakers"]
"""

EMBEDDING_PROGRAM = """\
from langchain_core.tools import tool

from moot import DebateConfig, LimitsConfig, ModelSettings, aopen_debates, build_graph


@tool
def lookup(word: str) -> str:
    \"\"\"Look up a word.\"\"\"
    return word


config = DebateConfig(limits=LimitsConfig(cost_usd=1), models={"m": ModelSettings(timeout_s=60)})


async def main() -> None:
    async with aopen_debates("moot.sqlite", tools={"lookup": lookup}) as debates:
        debate = debates.start("Trams?", config)
        async for event in debate.astream():
            if event["event"] == "entry":
                print(event["entry"]["speaker"].upper())
            elif event["event"] == "step":
                print(event["number"] + 1, event["speakers"][0].upper())
            elif event["event"] == "end":
                print(event["reason"].upper())
        print((await debate.arun())["status"].upper())
        print(debate.document()["verdict"]["decision"].upper())
        print([claim["status"] for claim in debate.document()["blackboard"]["standing"]["claims"]])
    graph = build_graph()
    await graph.aclose()
"""


@pytest.fixture
def programs(tmp_path: Path) -> list[str]:
    """Write one program for the Python blocks of each page, and two longer ones. Return their names."""
    blocks = {page.stem.replace("-", "_"): _BLOCK.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    programs = {f"page_{page}.py": "\n".join(parts) for page, parts in blocks.items() if parts}
    programs |= {"configured.py": CONFIG_PROGRAM, "embedded.py": EMBEDDING_PROGRAM}
    for name, program in programs.items():
        (tmp_path / name).write_text(program, encoding="utf-8")
    return list(programs)


def _mypy(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull),
            *("--follow-imports", "silent", "--cache-dir", str(folder / "cache"), *files),
        ],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def _pyright(folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "include": ["."],
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        # LangGraph's own annotations leave type parameters open.
        "reportUnknownMemberType": False,
        "reportMissingTypeStubs": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(folder)],
        cwd=folder,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_documented_and_longer_programs_pass_mypy_strict(tmp_path: Path, programs: list[str]) -> None:
    assert {"page_README.py", "page_embedding.py", "page_models.py"} <= {*programs}
    run = _mypy(tmp_path, *programs)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("programs")
def test_documented_and_longer_programs_pass_pyright_strict(tmp_path: Path) -> None:
    run = _pyright(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 errors" in run.stdout


@pytest.mark.slow
def test_an_unknown_document_key_is_a_type_error(tmp_path: Path) -> None:
    wrong = """\
from moot import open_debates

with open_debates() as debates:
    print(debates.get("a").run()["verdicst"])
"""
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    run = _mypy(tmp_path, "wrong.py")
    assert 'TypedDict "DebateDocument" has no key "verdicst"' in run.stdout

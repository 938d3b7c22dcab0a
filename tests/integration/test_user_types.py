"""Strict type checks of programs that use Moot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
CONFIGURED = """\
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

EMBEDDED = """\
from typing import cast

from langchain_core.tools import tool

from moot import DebateConfig, DebateDocument, LimitsConfig, ModelSettings, aopen_debates, build_graph


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
        document = cast(DebateDocument, await debate.arun())
        print(document["status"])
    graph = build_graph()
    await graph.aclose()
"""


@pytest.mark.slow
def test_the_readmes_example_and_a_configured_debate_pass_mypy_strict(tmp_path: Path) -> None:
    (tmp_path / "readme_example.py").write_text(README, encoding="utf-8")
    (tmp_path / "configured.py").write_text(CONFIGURED, encoding="utf-8")
    (tmp_path / "embedded.py").write_text(EMBEDDED, encoding="utf-8")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull),
            *("--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")),
            *("readme_example.py", "configured.py", "embedded.py"),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_the_same_files_and_an_embedding_program_pass_pyright_strict(tmp_path: Path) -> None:
    (tmp_path / "readme_example.py").write_text(README, encoding="utf-8")
    (tmp_path / "configured.py").write_text(CONFIGURED, encoding="utf-8")
    (tmp_path / "embedded.py").write_text(EMBEDDED, encoding="utf-8")
    settings = {"include": ["."], "typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 errors" in run.stdout

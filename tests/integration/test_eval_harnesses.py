"""The documented examples for other evaluation harnesses, run with the real packages."""

from __future__ import annotations

import re
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evaluation.md"


def block(kind: str, name: str) -> str:
    """Return the block of the page that defines a function."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return next(each for each in blocks if f"def {name}" in each)


@pytest.mark.filterwarnings("ignore::UserWarning")  # LangSmith warns that an option is in beta
def test_langsmith_evaluates_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uuid import uuid4

    from langsmith import Client
    from langsmith.evaluation import evaluate
    from langsmith.schemas import Example

    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block("python", "debate_target"), PAGE.name, "exec"), namespace)  # noqa: S102  # our own docs
    target = namespace["debate_target"]
    data = [Example(id=uuid4(), inputs={"question": f"Cars {n}?"}, dataset_id=uuid4()) for n in range(2)]

    def answered(outputs: dict[str, str]) -> dict[str, Any]:
        return {"key": "answered", "score": bool(outputs["answer"])}

    results = evaluate(
        target,
        data=data,
        evaluators=[answered],
        upload_results=False,
        client=Client(api_url="http://127.0.0.1:1", api_key="none"),
    )
    assert [row["evaluation_results"]["results"][0].score for row in results] == [True, True]


RUN_WITH_INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from moot import DebateConfig

exec(open("example.py").read())
task = Task(
    dataset=[Sample(input="Cars?", target="Placeholder"), Sample(input="Trams?", target="nothing of this")],
    solver=debate(DebateConfig(protocol="single")),
    scorer=includes(),
)
(log,) = eval(task, model="mockllm/model", log_dir="logs", display="none")
assert log.status == "success", log.error
print(log.results.scores[0].metrics["accuracy"].value)
"""


@pytest.mark.heavy
@pytest.mark.timeout(1200)
def test_inspect_runs_the_solver(tmp_path: Path) -> None:
    """Inspect needs older packages than the development environment has, so it gets its own one."""
    python = tmp_path / "venv" / "bin" / "python"
    venv.create(tmp_path / "venv", with_pip=True)
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "inspect_ai",
        "--editable",
        str(ROOT),
    ]
    subprocess.run(install, check=True)
    (tmp_path / "example.py").write_text(block("py", "debate"))
    (tmp_path / "run.py").write_text(RUN_WITH_INSPECT)
    ran = subprocess.run([python, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-1] == "0.5"

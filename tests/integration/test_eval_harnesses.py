"""The documented examples for other evaluation harnesses, run with the real packages."""

from __future__ import annotations

import gc
import re
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from moot import DebateConfig, aopen_debates
from moot.calls.model_calls import ModelCall, Reply
from tests.support.fakes import FakeModel

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evaluation.md"


def block(kind: str, name: str) -> str:
    """Return the block of the page that defines a function."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return next(each for each in blocks if f"def {name}" in each)


@pytest.mark.filterwarnings("ignore:ast.Str is deprecated")  # LangSmith, on Python 3.12 and 3.13
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


ANSWERS = {"How many wheels": "It has four.\nAnswer: 4", "How many doors": "Answer: 9", "Which": "Answer: B"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Inspect and the packages that it imports
def test_inspect_runs_and_scores_debates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai import Task, eval as run_eval
    from inspect_ai.dataset import Sample

    from moot.plugins.evals import inspect_solver

    def reply(call: ModelCall) -> Reply:
        text = str(call.messages)
        return Reply(text=next(answer for start, answer in ANSWERS.items() if start in text))

    environment = FakeModel(reply).environment()
    monkeypatch.setattr(
        inspect_solver, "aopen_debates", lambda database: aopen_debates(database, environment=environment)
    )
    samples = [
        Sample(input="How many wheels has a car?", target="4"),
        Sample(input="How many doors has a car?", target="5"),
        Sample(input="Which is a tram?", target="B", choices=["a ship", "a train"]),
    ]
    config = DebateConfig(protocol="single", judge={"enabled": False})
    task = Task(samples, solver=inspect_solver.debate(config), scorer=inspect_solver.debate_answer())
    (log,) = run_eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    assert [sample.scores["debate_answer"].value for sample in log.samples or [] if sample.scores] == [*"CIC"]
    assert all(sample.metadata["moot"]["debate"] for sample in log.samples or [])
    gc.collect()  # Inspect leaves streams open, whose warnings would fail another test


def test_inspect_finds_the_solver_by_its_name() -> None:
    (point,) = (each for each in entry_points(group="inspect_ai") if each.name == "moot")
    assert point.value == "moot.plugins.evals.inspect_solver"

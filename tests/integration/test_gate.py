"""`moot run --gate`, and the GitHub workflow in docs/ci.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.moot_command import Moot, moot_argv
from tests.support.openai_server import OpenAIServer, ServerReply

CI_PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


def replies_with_decision(decision: str, confidence: int) -> Any:
    """Return a server plan: text for each turn, and this decision for the judge."""

    def act(request: dict[str, Any], number: int) -> ServerReply:
        if "response_format" not in request:
            return ServerReply(text="The tests cover the change.")
        verdict = {"reasoning": "weighed", "decision": decision, "confidence": confidence}
        return ServerReply(
            text=json.dumps({**verdict, "winner": "tie", "winner_confidence": 50, "scores": []})
        )

    return act


@pytest.mark.parametrize(
    ("decision", "confidence", "code", "error"),
    [
        ("merge", 80, 0, ""),
        ("merge", 60, 7, "gate 'merge': the confidence is 60, less than 70"),
        ("hold", 90, 7, "gate 'merge': the decision is 'hold'"),
        ("ship it", 90, 7, "gate 'merge': the decision is 'undecided'"),
    ],
)
def test_the_gate_exits_with_0_only_for_a_confident_wanted_decision(
    moot: Moot, decision: str, confidence: int, code: int, error: str
) -> None:
    words = ("run", "Merge?", "--turns", 2, "--options", "merge,hold", "--gate", "Merge")
    with OpenAIServer(replies_with_decision(decision, confidence)) as server:
        variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        done = moot(*words, "--min-confidence", 70, "--model", "m", "--json", "-q", **variables)
    assert done.code == code, done.err
    assert error in done.err
    assert done.json["verdict"]["decision"] == (decision if decision != "ship it" else "undecided")
    assert done.json["verdict"]["options"] == ["merge", "hold"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--gate", " "), "--gate '' is not one of the debate's options: add --options"),
        (
            ("--options", "a,b", "--gate", "c"),
            "--gate 'c' is not one of the debate's options: use one of a, b",
        ),
        (("--min-confidence", "50"), "--min-confidence needs --gate"),
        (("--options", "a,b", "--gate", "a", "--no-judge"), "--gate needs a decision: remove --no-judge"),
    ],
)
def test_a_gate_that_cannot_pass_is_refused_before_the_run(
    moot: Moot, words: tuple[str, ...], error: str
) -> None:
    done = moot("run", "Merge?", *words)
    assert done.code == 2
    assert error in done.err
    assert not moot.db.exists()


def test_the_offline_model_never_passes_a_gate(moot: Moot) -> None:
    done = moot("run", "Merge?", "--turns", 2, "--options", "merge,hold", "--gate", "merge")
    assert done.code == 7
    assert "no model reached a decision" in done.err


@pytest.mark.slow
def test_list_reminds_of_a_revisit_date_until_there_is_feedback(moot: Moot) -> None:
    words = ("run", "Merge?", "--turns", 2, "--options", "merge,hold", "--model", "m", "-q")
    with OpenAIServer(replies_with_decision("merge", 80)) as server:
        variables: Any = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        assert moot(*words, "--id", "due", "--revisit", "2020-01-01", **variables).code == 0
        assert moot(*words, "--id", "later", "--revisit", "2999-01-01", **variables).code == 0
    listed = moot("list")
    assert "revisit due since 2020-01-01: moot feedback due right" in listed.err
    assert "revisit later" not in listed.err
    assert {row["name"]: row["revisit"] for row in moot("list", "--json").json} == {
        "due": "2020-01-01",
        "later": "2999-01-01",
    }
    feedback = moot("feedback", "due", "wrong", "--note", "It was rolled back.", "--json")
    assert feedback.json["forecasts"] == [
        {"judge": "judge", "model": "m", "decision": "merge", "confidence": 80.0, "agrees": True}
    ]
    assert "revisit" not in moot("list").err
    (score,) = moot("eval", "report", "--feedback", "--json").json["scores"]
    assert score == {
        "judge": "judge",
        "model": "m",
        "decisions": 1,
        "brier": 0.64,
        "confidence": 80.0,
        "right": 0.0,
    }
    assert "0.640" in moot("eval", "report", "--feedback").out
    assert moot("feedback", "due", "great").code == 2


def workflow_steps() -> list[dict[str, Any]]:
    text = CI_PAGE.read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(# \.github/workflows/gate\.yml\n.*?)```", text, re.S)
    assert block
    steps: list[dict[str, Any]] = yaml.safe_load(block[1])["jobs"]["gate"]["steps"]
    return [step for step in steps if "run" in step and not step["run"].startswith("pipx install")]


def run_workflow(moot: Moot, variables: Mapping[str, str]) -> dict[str, int]:
    """Run the shell steps of the workflow as GitHub does, in a repository with one change."""
    bin_folder, work = moot.folder / "bin", moot.folder / "repository"
    bin_folder.mkdir()
    work.mkdir()
    program = bin_folder / "moot"
    words = " ".join(f"'{word}'" for word in moot_argv())
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    git = "git -c user.name=a -c user.email=a@example.org -c init.defaultBranch=main"
    setup = (
        f"{git} init -q . && echo one > a.txt && git add . && {git} commit -qm one && "
        f"git update-ref refs/remotes/origin/main HEAD && echo two > a.txt && {git} commit -qam two"
    )
    subprocess.run(["/bin/bash", "-ec", setup], cwd=work, check=True)
    environment = {
        **moot.environment(**variables),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_BASE_REF": "main",
        "GITHUB_RUN_ID": "17",
        "GITHUB_STEP_SUMMARY": str(moot.folder / "summary.md"),
    }
    codes = {}
    for step in workflow_steps():
        run = ["/bin/bash", "-e", "-c", step["run"]]
        done = subprocess.run(run, cwd=work, env=environment, capture_output=True, text=True, timeout=600)
        codes[step["name"]] = done.returncode
        assert done.returncode in (0, 7), done.stderr
    return codes


@pytest.mark.slow
def test_the_documented_workflow_holds_an_unjudged_change(moot: Moot) -> None:
    codes = run_workflow(moot, {"MOOT_MODEL": "offline"})
    assert codes == {"Debate the change": 7, "Show the decision": 0}
    assert "no model judged this" in (moot.folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_documented_workflow_passes_an_approved_change(moot: Moot) -> None:
    with OpenAIServer(replies_with_decision("merge", 88)) as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test", "MOOT_MODEL": "m"}
        codes = run_workflow(moot, variables)
        assert any("+two" in each.body.decode() for each in server.requests)
    assert set(codes.values()) == {0}
    assert "merge" in (moot.folder / "summary.md").read_text(encoding="utf-8")

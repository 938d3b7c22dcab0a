"""Models that the operator configures as commands: processes, replies, failures and permissions."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from moot import ConfigError, DebateConfig, ModelError, open_debates
from moot.config.stages import authorize, requested_config
from moot.models.failures import Failure
from moot.models.offline import CommandModel

ECHO = (
    "import os, sys; words = sys.stdin.read(); "
    "print('I say yes.', len(words) > 100, os.listdir('.') == [], '{' in words)"
)
PROMPT = [SystemMessage("Rules."), HumanMessage("Trams?")]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def config(code: str, **settings: Any) -> DebateConfig:
    models: Any = {"claude": {"command": python(code), **settings}}
    judge: Any = {"enabled": False}
    return DebateConfig(turns=2, model="claude", models=models, judge=judge)


def test_command_reads_the_prompt_on_stdin_and_replies_on_stdout(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        document = debates.start("Trams?", config(ECHO)).run()
    spoken = [entry["content"] for entry in document["transcript"] if entry["kind"] == "speech"]
    assert spoken == ["I say yes. True True False"] * 2


def test_error_of_a_failed_command_includes_its_exit_code_and_stderr(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('please log in'); sys.exit(3)"
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start("Trams?", config(code, max_attempts=1))
        with pytest.raises(ModelError, match="ended with exit code 3: please log in"):
            debate.run()


def test_cancelling_a_call_kills_the_command_and_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; "
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        f"open({str(pid)!r}, 'w').write(str(child.pid)); time.sleep(600)"
    )

    async def cancel_call() -> None:
        model = CommandModel(command=python(code))
        call = asyncio.create_task(model.ainvoke(PROMPT))
        while not (pid.exists() and pid.read_text()):  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel_call())
    stat = Path(f"/proc/{pid.read_text()}/stat")
    until = time.monotonic() + 30
    while stat.exists() and stat.read_text().split(") ")[1][0] != "Z" and time.monotonic() < until:
        time.sleep(0.02)
    assert not stat.exists() or stat.read_text().split(") ")[1][0] == "Z"


def test_command_output_is_limited_and_an_unread_prompt_is_allowed() -> None:
    endless = CommandModel(command=python("import os\nwhile True: os.write(1, b'x' * 65536)"))
    with pytest.raises(Failure, match="wrote more than"):
        asyncio.run(endless.ainvoke(PROMPT))
    deaf = CommandModel(command=python("import os; os.close(0); print('Yes.')"))
    assert asyncio.run(deaf.ainvoke([HumanMessage("x" * 1_000_000)])).text == "Yes."


def test_start_refuses_a_command_whose_program_is_missing(tmp_path: Path) -> None:
    missing: Any = {"claude": {"command": ["no-such-program", "-p"]}}
    with (
        open_debates(str(tmp_path / "moot.sqlite")) as debates,
        pytest.raises(
            ConfigError, match=r"models\.claude\.command: the program 'no-such-program' was not found"
        ),
    ):
        debates.start("Trams?", DebateConfig(model="claude", models=missing))


def test_only_the_operator_configures_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOT_ALLOW_MODELS", "*")
    asked = requested_config(DebateConfig(), {"model": "x", "models": {"x": {"command": ["touch", "here"]}}})
    with pytest.raises(ConfigError, match=r"models\.x\.command: .* needs the operator's permission"):
        authorize(asked, DebateConfig()).authorize()
    operator = config(ECHO)
    changed = requested_config(operator, {"models": {"claude": {"command": ["touch", "here"]}}})
    assert changed.models["claude"].command == python(ECHO)
    authorize(changed, operator).authorize()
    with pytest.raises(ConfigError, match="a model with `command` has no endpoint"):
        DebateConfig(models={"x": {"command": ["a"], "base_url": "http://localhost"}})


def test_command_inherits_the_environment_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/home/operator/.claude")
    model = CommandModel(command=python("import os; print(os.environ['CLAUDE_CONFIG_DIR'])"))
    assert model.invoke(PROMPT).text == os.environ["CLAUDE_CONFIG_DIR"]

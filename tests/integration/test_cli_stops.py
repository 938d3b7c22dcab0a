"""Commands that stop early: signals, failed models, debates in use, and closed pipes."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.moot_command import Moot, moot_argv
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S
from tests.support.warm_process import WarmProcess

TOPIC = "Is it safe to stop?"


@pytest.fixture
def moot(tmp_path: Path) -> Moot:
    return Moot(tmp_path)


@pytest.fixture
def slow_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(latency=0.1) as server:
        yield server


def _start_long_debate(moot: Moot, server: OpenAIServer) -> WarmProcess:
    """Start a long debate, and return its process after two turns."""
    words = ("run", TOPIC, "--turns", 400, "--id", "long", "--model", "m", "--no-judge")
    process = moot.start(*words, OPENAI_BASE_URL=server.base_url)
    while process.poll() is None:
        if "[turn 2/" in process.errors():
            return process
        time.sleep(0.02)
    raise AssertionError(f"it ended: {process.communicate()}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_signal_pauses_the_debate_and_prints_how_to_resume(
    moot: Moot, slow_server: OpenAIServer, number: signal.Signals
) -> None:
    process = _start_long_debate(moot, slow_server)
    process.send_signal(number)
    out, err = process.communicate(timeout=LONG_TIMEOUT_S)
    assert process.returncode == 130, err
    assert "moot resume long" in err
    assert "Traceback" not in err
    assert out == ""
    row = moot("list", "--json").json[0]
    assert (row["status"], row["name"]) == ("paused", "long")
    assert row["turns"] >= 2
    document = moot("show", "long", "--json").json
    assert [entry["seq"] for entry in document["transcript"]] == list(range(len(document["transcript"])))
    assert len(document["transcript"]) >= 2


def test_commands_refuse_a_debate_in_use_and_name_the_process(moot: Moot, slow_server: OpenAIServer) -> None:
    process = _start_long_debate(moot, slow_server)
    try:
        for words in (("resume", "long"), ("delete", "long", "--yes")):
            refused = moot(*words, OPENAI_BASE_URL=slow_server.base_url)
            assert refused.code == 5
            assert f"'long' is in use by process {process.pid}" in refused.err
            assert "moot pause long" in refused.err
        assert moot("show", "long", "--transcript").code == 0
    finally:
        process.kill()
        process.communicate()
    assert moot("show", "long", "--json").json["status"] == "paused"
    assert moot("list", "--json").json[0]["status"] == "paused"
    assert moot("delete", "long", "--yes").code == 0


def test_failed_run_exits_with_3_and_resumes_when_the_model_works(moot: Moot) -> None:
    def plan(request: dict[str, Any], number: int) -> ServerReply | None:
        return ServerReply(status=400, message="refused") if number >= 2 else None

    words = ("run", TOPIC, "--turns", "4", "--seed", "1", "--id", "f", "--model", "m", "--no-judge", "--json")
    with OpenAIServer(plan) as server:
        failed = moot(*words, OPENAI_BASE_URL=server.base_url)
    assert failed.code == 3
    assert "moot resume f" in failed.err
    assert "Traceback" not in failed.err
    assert failed.json["status"] == "failed"
    assert len(failed.json["transcript"]) == 3
    assert "HTTP 400: refused" in failed.json["errors"][-1]["error"]
    shown = moot("show", "f")
    assert "HTTP 400: refused" in shown.out
    assert "moot resume f" in shown.err
    with OpenAIServer() as server:
        resumed = moot("resume", "f", "--json", OPENAI_BASE_URL=server.base_url)
        assert len(server.chats) == 2
    assert resumed.code == 0
    assert resumed.json["transcript"][:3] == failed.json["transcript"]
    assert len(resumed.json["transcript"]) == 5
    assert len(resumed.json["errors"]) == 1
    assert "HTTP 400: refused" in moot("report", "f", "-o", "-").out


def test_failed_verdict_exits_with_3_and_a_resume_judges_again(moot: Moot) -> None:
    def plan(request: dict[str, Any], number: int) -> ServerReply | None:
        return ServerReply(status=400, message="no judging today") if request["model"] == "j" else None

    with OpenAIServer(plan) as server:
        words = ("run", TOPIC, "--turns", "2", "--id", "v", "--judge-model", "j")
        failed = moot(*words, OPENAI_BASE_URL=server.base_url)
    assert failed.code == 3
    assert "moot resume v" in failed.err
    assert "verdict failed" in failed.out + failed.err
    assert "wins" not in failed.out
    document = moot("show", "v", "--json").json
    assert document["verdict"]["status"] == "failed"
    with OpenAIServer() as server:
        resumed = moot("resume", "v", "--json", OPENAI_BASE_URL=server.base_url)
        assert {chat["model"] for chat in server.chats} == {"j"}
    assert (resumed.code, resumed.json["verdict"]["status"]) == (0, "ok")
    assert resumed.json["transcript"] == document["transcript"]


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words",
    [
        ("show", "p", "--json"),
        ("show", "p", "--transcript"),
        ("report", "p", "-o", "-"),
        ("config", "schema"),
    ],
    ids=str,
)
@pytest.mark.slow
def test_closed_output_pipe_is_no_error(moot: Moot, words: tuple[str, ...], unbuffered: str) -> None:
    assert moot("run", TOPIC, "--turns", "60", "--no-judge", "--id", "p", "-q").code == 0
    shown = subprocess.Popen(
        moot_argv(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**moot.environment(), "PYTHONUNBUFFERED": unbuffered},
        cwd=moot.folder,
    )
    assert shown.stdout is not None
    shown.stdout.read(10)
    shown.stdout.close()
    assert shown.stderr is not None
    assert shown.stderr.read() == b""
    shown.stderr.close()
    assert shown.wait(timeout=LONG_TIMEOUT_S) == 0


def test_internal_error_is_one_line_unless_moot_debug_is_set(moot: Moot) -> None:
    code = "from moot.cli import main; from moot.cli import terminal; "
    code += "terminal.print_json = None; main()"
    words = [*moot_argv()[:2], code, "list", "--json"]

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            env=moot.environment(**variables),
            cwd=moot.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    brief, full = run(), run(MOOT_DEBUG="1")
    assert (brief.returncode, full.returncode) == (1, 1)
    assert "MOOT_DEBUG=1" in brief.stderr
    assert len(brief.stderr.splitlines()) == 1
    assert "Traceback" in full.stderr

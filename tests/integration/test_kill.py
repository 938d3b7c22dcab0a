"""A debate killed at any moment goes on where it was, and no finished call is paid twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.warm_process import WarmProcess

TURNS = 30
KILLS = 12
VOLATILE = {"at", "usage"}


def _environment(server: OpenAIServer) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "PYTHONHASHSEED": "0"}


def _start(server: OpenAIServer, folder: Path, *arguments: str) -> WarmProcess:
    return WarmProcess(arguments, folder=folder, environment=_environment(server))


def _finish(server: OpenAIServer, folder: Path, *arguments: str) -> dict[str, Any]:
    with _start(server, folder, *arguments) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def _said(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in entry.items() if k not in VOLATILE} for entry in document["transcript"]]


def _journalled(database: Path) -> int:
    if not database.exists():
        return 0
    with sqlite3.connect(database) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM moot_journal").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def _kill_after(process: WarmProcess, seconds: float) -> None:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_debate_killed_at_a_dozen_random_moments_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    rng = random.Random(7)
    run = ("run", "Should we?", "--model", "m", "--turns", str(TURNS), "--seed", "1", "--json", "--quiet")
    with OpenAIServer(latency=0.2) as server:
        whole = _finish(server, tmp_path, *run, "--id", "whole", "--db", str(tmp_path / "whole.sqlite"))
        paid_whole = len(server.chats)
    database = tmp_path / "killed.sqlite"
    with OpenAIServer(latency=0.2) as server:
        process = _start(server, tmp_path, *run, "--id", "killed", "--db", str(database))
        while _journalled(database) == 0:  # the first kill comes once there is something to resume
            time.sleep(0.02)
        journalled = []
        for _ in range(KILLS):
            _kill_after(process, rng.uniform(0.0, 0.3))
            journalled.append(_journalled(database))
            before = len(server.chats)
            process = _start(server, tmp_path, "resume", "killed", "--json", "--quiet", "--db", str(database))
            deadline = time.monotonic() + 20
            while process.poll() is None and len(server.chats) == before and time.monotonic() < deadline:
                time.sleep(0.01)
        assert process.wait(timeout=120) == 0, process.errors()
        again = _finish(server, tmp_path, "show", "killed", "--json", "--db", str(database))
        paid = Counter(request.body for request in server.requests)
    assert _said(again) == _said(whole)
    assert again["status"] == "done"
    assert again["verdict"] == {**whole["verdict"], "usage": again["verdict"]["usage"]}
    assert journalled[-1] < paid_whole, "the kills came too late to prove anything"
    # Only calls in flight at a kill are asked again: one for each kill on a floor, two while judging.
    repeated = sum(times - 1 for times in paid.values())
    assert sum(paid.values()) - repeated == paid_whole
    assert repeated <= KILLS + 2
    assert _journalled(database) == paid_whole


COUNCIL = """
protocol: council
topic: Design a rate limiter that is fair to small customers.
rounds: 1
model: m
seed: 1
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_council_killed_in_every_phase_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    config = tmp_path / "council.yaml"
    config.write_text(COUNCIL)
    run = ("run", "--config", str(config), "--json", "--quiet")
    with OpenAIServer(latency=0.2) as server:
        whole = _finish(server, tmp_path, *run, "--id", "whole", "--db", str(tmp_path / "whole.sqlite"))
        paid_whole = len(server.chats)
    database = tmp_path / "killed.sqlite"
    with OpenAIServer(latency=0.2) as server:
        process = _start(server, tmp_path, *run, "--id", "killed", "--db", str(database))
        # Three propose, six criticise, three refine: each kill comes while some of a phase's calls are out.
        for asked in (2, 5, 11, paid_whole):
            while len({request.body for request in server.requests}) < asked and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = _start(server, tmp_path, "resume", "killed", "--json", "--quiet", "--db", str(database))
        assert process.wait(timeout=120) == 0, process.errors()
        again = _finish(server, tmp_path, "show", "killed", "--json", "--db", str(database))
        paid = Counter(request.body for request in server.requests)
    assert _said(again) == _said(whole)
    assert again["solution"] == whole["solution"]
    assert len(paid) == paid_whole == _journalled(database)
    assert max(paid.values()) <= 5  # one more for each kill that found it in flight


@pytest.mark.slow
def test_ctrl_c_saves_says_how_to_resume_and_exits_130(tmp_path: Path) -> None:
    database = tmp_path / "moot.sqlite"
    with OpenAIServer(latency=0.2) as server:
        process = _start(
            server, tmp_path, "run", "T?", "--model", "m", "--turns", "6", "--id", "x", "--db", str(database)
        )
        while len(server.chats) < 3:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "moot resume x" in errors
        document = _finish(server, tmp_path, "resume", "x", "--json", "--quiet", "--db", str(database))
    assert [entry["seq"] for entry in document["transcript"]] == list(range(7))


@pytest.mark.slow
def test_calls_under_way_at_ctrl_c_come_in_and_are_not_paid_again(tmp_path: Path) -> None:
    config, database = tmp_path / "council.yaml", tmp_path / "moot.sqlite"
    config.write_text(COUNCIL)
    with OpenAIServer(latency=0.8) as server:
        process = _start(server, tmp_path, "run", "--config", str(config), "--id", "x", "--db", str(database))
        while len(server.requests) < 3:  # all three propose at once
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "calls under way may come in" in errors
        assert _journalled(database) == 3
        document = _finish(server, tmp_path, "resume", "x", "--json", "--quiet", "--db", str(database))
        paid = Counter(request.body for request in server.requests)
    assert document["status"] == "done"
    assert set(paid.values()) == {1}

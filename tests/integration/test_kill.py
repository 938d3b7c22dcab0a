"""A killed debate continues where it stopped, and no finished call is repeated."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from moot import open_debates
from moot.cli.commands.doctor import inspect_database
from tests.support.killing import (
    LONG_TOPIC,
    SCENARIOS,
    KillRunner,
    Scenario,
    ScenarioResult,
    comparable_document,
    count_journal_replies,
)
from tests.support.openai_answers import answer_text
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S, wait_until
from tests.support.warm_process import WarmProcess


def _environment(server: OpenAIServer) -> dict[str, str]:
    return {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "PYTHONHASHSEED": "0"}


def _start(server: OpenAIServer, folder: Path, *arguments: str) -> WarmProcess:
    return WarmProcess(arguments, folder=folder, environment=_environment(server))


def _finish(server: OpenAIServer, folder: Path, *arguments: str) -> dict[str, Any]:
    with _start(server, folder, *arguments) as process:
        out, err = process.communicate(timeout=LONG_TIMEOUT_S)
    assert process.returncode == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def _journal_size(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM moot_journal").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kills"), [("follow-ups", 3), ("council", 3), ("tools", 2)])
def test_debate_killed_at_random_moments_equals_an_uninterrupted_run(
    name: str, kills: int, tmp_path: Path
) -> None:
    killing = KillRunner(tmp_path, random.Random(7))
    whole = killing.run(SCENARIOS[name], str(tmp_path / "whole.sqlite"))
    killed = killing.run(SCENARIOS[name], str(tmp_path / "killed.sqlite"), kills=kills)
    assert (killed.problems, killed.changed_debates(whole), killed.repeated_calls(whole)) == ([], [], 0)
    assert killed.kills
    assert {each.body for each in killed.requests} == {each.body for each in whole.requests}


def strict_server(asked: Any, _: int) -> ServerReply:
    """Reply like a server with a small context, another tokenizer, and no seeds."""
    tokens = len(json.dumps(asked["messages"])) // 3
    if asked.get("seed") is not None:
        return ServerReply(status=400, message="Unrecognized request argument supplied: seed")
    if tokens + asked["max_tokens"] > 3000:
        message = f"The maximum context length is 3000 tokens, but your messages came to {tokens} tokens."
        return ServerReply(status=400, message=message, code="context_length_exceeded")
    text = answer_text(asked)
    long_text = text if text.startswith("{") else " ".join([text] * 12)
    return ServerReply(text=long_text, usage={"prompt_tokens": tokens, "completion_tokens": 90})


@pytest.mark.slow
def test_killed_debate_builds_the_same_requests_from_what_its_models_have_shown(tmp_path: Path) -> None:
    killing = KillRunner(tmp_path, random.Random(3), plan=strict_server)
    scenario = Scenario("learning", {"model": "m", "seed": 1, "turns": 8, "judge": {"swap": False}})
    whole = killing.run(scenario, str(tmp_path / "whole.sqlite"))
    killed = killing.run(scenario, str(tmp_path / "killed.sqlite"), kills=3)
    assert (killed.problems, killed.changed_debates(whole), len(killed.kills)) == ([], [], 3)
    accepted = [{each.body for each in run.requests if each.status == 200} for run in (killed, whole)]
    assert accepted[0] == accepted[1]
    assert {each.status for each in whole.requests} == {200, 400}


COUNCIL = """
protocol: council
topic: Design a rate limiter that is fair to small customers.
rounds: 1
model: m
seed: 1
"""


@pytest.mark.slow
def test_ctrl_c_saves_the_debate_prints_the_resume_command_and_exits_130(tmp_path: Path) -> None:
    database = tmp_path / "moot.sqlite"
    with OpenAIServer(latency=0.2) as server:
        process = _start(
            server, tmp_path, "run", "T?", "--model", "m", "--turns", "6", "--id", "x", "--db", str(database)
        )
        while len(server.chats) < 3:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
        assert process.returncode == 130
        assert "moot resume x" in errors
        document = _finish(server, tmp_path, "resume", "x", "--json", "--quiet", "--db", str(database))
    assert [entry["seq"] for entry in document["transcript"]] == list(range(7))


@pytest.mark.slow
def test_ctrl_c_waits_for_running_calls_which_are_not_repeated(tmp_path: Path) -> None:
    config, database = tmp_path / "council.yaml", tmp_path / "moot.sqlite"
    config.write_text(COUNCIL)
    with OpenAIServer(latency=0.8) as server:
        process = _start(server, tmp_path, "run", "--config", str(config), "--id", "x", "--db", str(database))
        while len(server.requests) < 3:  # all three propose at once
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
        assert process.returncode == 130
        assert "Stopping: running calls get" in errors
        assert _journal_size(database) == 3
        document = _finish(server, tmp_path, "resume", "x", "--json", "--quiet", "--db", str(database))
        request_counts = Counter(request.body for request in server.requests)
    assert document["status"] == "done"
    assert set(request_counts.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_the_first_call_of_a_debate_is_paid_once_after_a_signal(tmp_path: Path, number: int) -> None:
    config, database = tmp_path / "council.yaml", tmp_path / "moot.sqlite"
    config.write_text(COUNCIL)
    with OpenAIServer(latency=0.8) as server:
        arguments = ("--config", str(config), "--id", "x", "--db", str(database))
        process = _start(server, tmp_path, "run", LONG_TOPIC, *arguments)
        while not server.requests:
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=LONG_TIMEOUT_S)
        assert process.returncode == 130
        assert "moot resume x" in errors
        _finish(server, tmp_path, "resume", "x", "--json", "--quiet", "--db", str(database))
        assert set(Counter(request.body for request in server.requests).values()) == {1}


COUNCIL_GRAPH = """
import asyncio, json, sys
from moot import DebateConfig, build_graph
from moot.storage.checkpoints import open_saver

thread, config = sys.argv[1], DebateConfig.model_validate(json.loads(sys.argv[2]))
place = {"configurable": {"thread_id": thread}}


async def run():
    async with open_saver() as saver:
        graph = build_graph(saver, phases_of="council")
        found = await graph.aget_state(place)
        start = None if found.values else {"topic": "Should we?"}
        await graph.ainvoke(start, place, context=config)


asyncio.run(run())
"""


def _kill_after_two_calls(process: subprocess.Popen[bytes], server: OpenAIServer, delay: float) -> None:
    asked = len(server.requests)
    assert wait_until(lambda: len(server.requests) > asked + 1 or process.poll() is not None)
    time.sleep(delay)
    process.kill()


@pytest.mark.slow
def test_killed_council_graph_resumes_in_python_and_on_the_command_line(tmp_path: Path) -> None:
    thread, kills, rng = "5c5a9dd3-7d52-4bd0-9bd9-7b1ccd6cd3d5", 4, random.Random(3)
    config = json.dumps(dict(SCENARIOS["council"].config))

    def run(db: Path, kills: int) -> ScenarioResult:
        done = ScenarioResult({}, ())
        with OpenAIServer(latency=0.1) as server:
            for number in range(kills + 1):
                own = {"MOOT_DB": str(db), "OPENAI_API_KEY": f"k{number}"}
                here = ["-c", COUNCIL_GRAPH, thread, config]
                words = here if number % 2 == 0 else ["-m", "moot", "resume", thread]
                environment = {**_environment(server), **own}
                with subprocess.Popen(
                    [sys.executable, *words], env=environment, stdout=subprocess.DEVNULL
                ) as process:
                    if number < kills:
                        _kill_after_two_calls(process, server, rng.uniform(0, 0.3))
                    ended = process.wait(LONG_TIMEOUT_S)
                assert ended == (-signal.SIGKILL if number < kills else 0)
                if ended:
                    done.kills[number] = count_journal_replies(str(db))
        done.requests = server.requests
        with open_debates(str(db)) as debates:
            assert debates.get(thread).row.status == "done"
            done.documents["d"] = comparable_document(debates.get(thread).document())
            done.problems += [each.message for each in inspect_database(debates) if not each.ok]
        return done

    whole, killed = run(tmp_path / "whole.sqlite", 0), run(tmp_path / "killed.sqlite", kills)
    assert len(killed.kills) == kills
    assert (killed.problems, killed.changed_debates(whole), killed.repeated_calls(whole)) == ([], [], 0)

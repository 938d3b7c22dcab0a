"""The OpenAI-compatible loopback server that other tests use, also as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.openai_server import Act, OpenAIServer
from tests.support.patience import until

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def test_as_a_process_it_prints_its_address_and_records_every_request(tmp_path: Path) -> None:
    record, plan = tmp_path / "calls.jsonl", tmp_path / "plan.json"
    plan.write_text(json.dumps({"m": [{"status": 503, "headers": {"retry-after": "1"}}]}))
    command = [
        sys.executable,
        "-m",
        "tests.support.openai_server",
        "--record",
        str(record),
        "--plan",
        str(plan),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        answers = [httpx.post(f"{base_url}/chat/completions", json=CHAT) for _ in range(2)]
        until(lambda: record.read_text().count("\n") == 2)  # written once the answer is out
        process.kill()
    assert [answer.status_code for answer in answers] == [503, 200]
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["status"] for line in lines] == [503, 200]
    assert all(line["body"] == CHAT and line["delivered"] for line in lines)
    assert lines[0]["digest"] == lines[1]["digest"]
    assert lines[0]["started"] <= lines[0]["ended"]


def test_answers_depend_on_the_request_alone() -> None:
    with OpenAIServer() as one, OpenAIServer(latency=0.01) as two:
        said = [
            httpx.post(f"{server.base_url}/chat/completions", json=CHAT).json()["choices"][0]["message"]
            for server in (one, two)
        ]
        other = httpx.post(f"{one.base_url}/chat/completions", json={**CHAT, "model": "n"}).json()
    assert said[0] == said[1] != other["choices"][0]["message"]


@pytest.mark.parametrize("form", ["float", "base64"])
def test_it_embeds(form: str) -> None:
    with OpenAIServer() as server:
        body = {"model": "e", "input": ["a", "b", "a"], "dimensions": 8, "encoding_format": form}
        data = httpx.post(f"{server.base_url}/embeddings", json=body).json()["data"]
    assert data[0]["embedding"] == data[2]["embedding"] != data[1]["embedding"]


def test_a_plan_can_be_a_function_of_the_request() -> None:
    with OpenAIServer(lambda request, number: Act(text=f"{number}: {request['model']}")) as server:
        said = [httpx.post(f"{server.base_url}/chat/completions", json=CHAT).json() for _ in range(2)]
    assert [body["choices"][0]["message"]["content"] for body in said] == ["0: m", "1: m"]
    assert server.peak == 1

"""The OpenAI-compatible loopback server of the tests, in this process and as its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import wait_until

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def test_the_process_prints_its_address_and_records_requests(tmp_path: Path) -> None:
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
        responses = [httpx.post(f"{base_url}/chat/completions", json=CHAT) for _ in range(2)]
        wait_until(lambda: record.read_text().count("\n") == 2)  # written after the reply is sent
        process.kill()
    assert [response.status_code for response in responses] == [503, 200]
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["status"] for line in lines] == [503, 200]
    assert all(line["body"] == CHAT and line["delivered"] for line in lines)
    assert lines[0]["digest"] == lines[1]["digest"]
    assert lines[0]["started"] <= lines[0]["ended"]


def test_replies_depend_only_on_the_request() -> None:
    with OpenAIServer() as one, OpenAIServer(latency=0.01) as two:
        messages = [
            httpx.post(f"{server.base_url}/chat/completions", json=CHAT).json()["choices"][0]["message"]
            for server in (one, two)
        ]
        other = httpx.post(f"{one.base_url}/chat/completions", json={**CHAT, "model": "n"}).json()
    assert messages[0] == messages[1] != other["choices"][0]["message"]


@pytest.mark.parametrize("form", ["float", "base64"])
def test_embeddings_depend_only_on_the_text(form: str) -> None:
    with OpenAIServer() as server:
        body = {"model": "e", "input": ["a", "b", "a"], "dimensions": 8, "encoding_format": form}
        data = httpx.post(f"{server.base_url}/embeddings", json=body).json()["data"]
    assert data[0]["embedding"] == data[2]["embedding"] != data[1]["embedding"]


def test_a_plan_can_be_a_function_of_the_request() -> None:
    with OpenAIServer(lambda request, number: ServerReply(text=f"{number}: {request['model']}")) as server:
        bodies = [httpx.post(f"{server.base_url}/chat/completions", json=CHAT).json() for _ in range(2)]
    assert [body["choices"][0]["message"]["content"] for body in bodies] == ["0: m", "1: m"]
    assert server.peak == 1

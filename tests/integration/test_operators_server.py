"""A LangGraph server with an operator's configuration file, and the live page of its runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.support.langgraph_server import LangGraphServer, langgraph_server
from tests.support.openai_answers import stream_events
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S, wait_until

pytestmark = pytest.mark.slow

WORDS = [f"word{number} " for number in range(12)]
EVENTS_BEFORE_PAUSE = 5
go = threading.Event()
"""Set when the models may finish their messages."""


class PausedStream:
    """Stream of a message that pauses after its first events until `go` is set."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._events = [*map(json.dumps, stream_events(asked, ServerReply(pieces=WORDS))), "[DONE]"]

    def __iter__(self) -> Iterator[str]:
        yield from self._events[:EVENTS_BEFORE_PAUSE]
        go.wait(LONG_TIMEOUT_S)
        yield from self._events[EVENTS_BEFORE_PAUSE:]


def plan(asked: dict[str, Any], number: int) -> ServerReply:
    return ServerReply(raw_events=PausedStream(asked) if asked.get("stream") else None)


@pytest.fixture(scope="module")
def house() -> Iterator[OpenAIServer]:
    with OpenAIServer(plan) as running:
        yield running


@pytest.fixture(scope="module")
def server(house: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    folder = tmp_path_factory.mktemp("operator")
    models = {"house": {"base_url": house.base_url, "api_key_env": "KEY_A"}}
    line = [{"name": "Op One", "id": "one"}, {"name": "Op Two", "id": "two"}]
    file: dict[str, Any] = {"model": "house", "models": models, "debaters": line, "judge": {"enabled": False}}
    (folder / "moot.json").write_text(json.dumps({**file, "turns": 2, "limits": {"wall_clock_s": 999}}))
    elsewhere = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "other"}
    with langgraph_server(folder, MOOT_CONFIG=str(folder / "moot.json"), KEY_A="a", **elsewhere) as running:
        yield running


@pytest.fixture
def client(server: LangGraphServer) -> Iterator[Any]:
    go.set()
    with get_sync_client(url=server.url) as client:
        yield client


@pytest.mark.parametrize("context", [None, {"model": "house", "limits": {"wall_clock_s": 10**6}}])
def test_run_merges_its_context_with_the_operators_file(
    client: Any, house: OpenAIServer, context: dict[str, Any] | None
) -> None:
    thread, asked = client.threads.create()["thread_id"], len(house.requests)
    client.runs.wait(thread, "debate", input={"topic": "Trams?"}, context=context)
    values = client.threads.get_state(thread)["values"]
    assert [entry["speaker"] for entry in values["full_transcript"]] == ["user", "one", "two"]
    assert values["config"]["limits"]["wall_clock_s"] == 999
    assert [each.headers["authorization"] for each in house.requests[asked:]] == ["Bearer a"] * 2


def test_page_streams_all_parallel_messages_of_another_clients_run(
    client: Any, server: LangGraphServer
) -> None:
    go.clear()
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "debate", input={"topic": "Trams?"})["run_id"]
    address, words = f"{server.url}/moot/api/debates/{thread}", {"one": "", "two": ""}
    assert wait_until(lambda: httpx.get(address, trust_env=False).is_success, every_s=0.2)
    try:
        with httpx.stream("GET", f"{address}/events", trust_env=False, timeout=LONG_TIMEOUT_S) as events:
            for line in events.iter_lines():
                if line.startswith("data: "):
                    for message in json.loads(line.removeprefix("data: ")).get("tokens", {}).values():
                        words[message["speaker"]] += message["text"]
                if all("word2" in each for each in words.values()):
                    break
        shown = {speaker: text.rstrip() for speaker, text in words.items()}  # a space waits for its word
        assert shown == dict.fromkeys(words, "".join(WORDS[:4]).rstrip())
    finally:
        go.set()
    client.runs.join(thread, run)


@pytest.mark.parametrize("sent", [{"checkpoint_ns": "zz"}, {"checkpoint_ns": "zz", "__pregel_task_id": "zz"}])
def test_client_cannot_update_a_debate_through_a_checkpoint_namespace(
    server: LangGraphServer, sent: dict[str, str]
) -> None:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=LONG_TIMEOUT_S) as client:
        thread = client.post("/threads", json={}).json()["thread_id"]
        asked = {"assistant_id": "debate", "input": {"topic": "Trams?"}, "interrupt_before": ["turn"]}
        client.post(f"/threads/{thread}/runs/wait", json=asked)
        before = client.get(f"/threads/{thread}/state").json()
        update = {"update": {"topic": "Buses?", "protocol_state": {"x": 1}}}
        response = client.post(
            f"/threads/{thread}/runs/wait",
            json={"assistant_id": "debate", "command": update, "checkpoint": sent},
        )
        after = client.get(f"/threads/{thread}/state").json()
    assert "checkpoint_ns" in response.text
    assert after["values"] == before["values"]


def test_command_starts_a_debate_on_a_new_thread_of_the_server(client: Any) -> None:
    thread = client.threads.create()["thread_id"]
    update = {"messages": [{"role": "user", "content": "Trams?"}]}
    client.runs.wait(thread, "debate", command={"update": update})
    assert client.threads.get_state(thread)["values"]["status"] == "done"

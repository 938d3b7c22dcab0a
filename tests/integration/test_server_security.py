"""LangGraph's server with Moot's graph: origins, hosts, tokens, and the settings that a request may set."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import MessageToDict, ParseDict
from langgraph_sdk import get_sync_client
from mcp import Client as McpClient

from moot.state.entries import JsonObject
from tests.support.langgraph_server import LangGraphServer, langgraph_server
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import LONG_TIMEOUT_S

pytestmark = pytest.mark.slow

CANARY = "canary-0d2f"
FRONT_END = "http://localhost:3000"
STUDIO = "https://smith.langchain.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    folder = tmp_path_factory.mktemp("border")
    secret = {"OPENAI_API_KEY": CANARY, "AWS_SECRET": CANARY}
    with langgraph_server(folder, MOOT_ALLOW_ORIGINS=FRONT_END, **secret) as running:
        yield running


def search_threads(server: LangGraphServer, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/threads/search", json={}, headers=headers, trust_env=False)


def test_local_and_allowed_origins_are_accepted(server: LangGraphServer) -> None:
    assert search_threads(server).status_code == 200
    assert search_threads(server, Origin=server.url).status_code == 200
    for page in (STUDIO, FRONT_END):
        answer = search_threads(server, Origin=page)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
def test_other_origins_are_refused_without_cors_headers(server: LangGraphServer, origin: str) -> None:
    answer = search_threads(server, Origin=origin)
    assert answer.status_code == 403
    assert "MOOT_ALLOW_ORIGINS" in answer.text
    assert "access-control-allow-origin" not in answer.headers


def test_other_host_names_are_refused_without_a_token(server: LangGraphServer) -> None:
    assert search_threads(server, Host="rebound.example").status_code == 403
    assert search_threads(server, Host="rebound.example", **{"x-api-key": "wrong"}).status_code == 403


def test_malformed_host_and_origin_headers_return_400(server: LangGraphServer) -> None:
    assert search_threads(server, Host="[::1").status_code == 400
    assert search_threads(server, Origin="http://[::1").status_code == 400


def test_local_clients_cannot_delete_all_threads(server: LangGraphServer) -> None:
    answer = httpx.post(f"{server.url}/internal/truncate", json={"checkpointer": True}, trust_env=False)
    assert (answer.status_code, "only the operator" in answer.text) == (403, True)


def test_every_request_needs_the_configured_token(tmp_path: Path) -> None:
    with langgraph_server(tmp_path, MOOT_TOKEN="let-me-in") as guarded:  # noqa: S106  # used only in this test
        for host in ({}, {"Host": "rebound.example"}):
            assert search_threads(guarded, **host).status_code == 403
            assert search_threads(guarded, **host, **{"x-api-key": "wrong"}).status_code == 403
            assert search_threads(guarded, **host, **{"x-api-key": "let-me-in"}).status_code == 200
        setup = httpx.get(
            f"{guarded.url}/moot/api/setup", headers={"x-api-key": "let-me-in"}, trust_env=False
        )
        assert setup.json()["operator"] is True


def _is_over(address: str) -> bool:
    """Follow a debate until the server closes the stream; return whether the debate is over."""
    with httpx.stream("GET", f"{address}/events", trust_env=False, timeout=LONG_TIMEOUT_S) as events:
        parts = (json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: "))
        return any(each["debate"]["over"] for each in parts if "debate" in each)


def test_the_live_page_and_its_api_accept_only_local_requests(server: LangGraphServer) -> None:
    page = httpx.get(f"{server.url}/moot", trust_env=False)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    begun = httpx.post(
        f"{server.url}/moot/api/debates",
        json={"question": "Trams?", "turns": 1},
        trust_env=False,
        timeout=LONG_TIMEOUT_S,
    )
    address = f"{server.url}/moot/api/debates/{begun.json()['id']}"
    assert any(_is_over(address) for _ in range(20))  # the stream may close earlier, so reconnect
    foreign = httpx.post(f"{server.url}/moot/api/debates", json={}, headers={"Origin": STUDIO})
    assert (foreign.status_code, "another origin" in foreign.text) == (403, True)
    assert httpx.get(f"{server.url}/moot", headers={"Host": "rebound.example"}).status_code == 403
    assert "Blocking" not in server.log()


def refusal(server: LangGraphServer, **context: Any) -> str:
    with get_sync_client(url=server.url) as client:
        thread = client.threads.create(graph_id="debate")["thread_id"]
        settings: Any = {"turns": 1, **context}
        result: Any = client.runs.wait(
            thread, "debate", input={"topic": "T?"}, context=settings, raise_error=False
        )
        return str(result["__error__"]["message"])


@pytest.mark.parametrize(
    ("context", "setting"),
    [
        pytest.param({"model": "dear"}, "model: 'dear'", id="model"),
        pytest.param({"context": "/etc/hostname"}, "MOOT_CONTEXT_ROOT", id="file"),
        pytest.param(
            {"memory": {"retrieval": {"embeddings": "os:abort"}}}, "memory.retrieval.embeddings", id="import"
        ),
        pytest.param({"debaters": [{"name": "A", "tools": ["search"]}]}, "debaters.a.tools", id="tool"),
        pytest.param({"judge": {"rubric": "/etc/hostname"}}, "judge.rubric", id="rubric"),
    ],
)
def test_the_error_names_a_setting_that_a_request_may_not_set(
    server: LangGraphServer, context: dict[str, Any], setting: str
) -> None:
    assert re.search(re.escape(setting), refusal(server, **context))


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "AWS_SECRET", None])
def test_no_server_variable_is_sent_to_a_requested_endpoint(
    server: LangGraphServer, variable: str | None
) -> None:
    with OpenAIServer() as elsewhere:
        endpoint = {"base_url": elsewhere.base_url} | ({"api_key_env": variable} if variable else {})
        assert "base_url" in refusal(server, model="m", models={"m": endpoint})
        assert elsewhere.requests == []


def test_a_state_written_by_a_client_gains_no_permissions(server: LangGraphServer) -> None:
    with OpenAIServer() as elsewhere, get_sync_client(url=server.url) as client:
        thread = client.threads.create(graph_id="debate")["thread_id"]
        context: Any = {"turns": 1, "judge": {"enabled": False}}
        client.runs.wait(thread, "debate", input={"topic": "T?"}, context=context)
        state: Any = client.threads.get_state(thread)["values"]
        models = {"m": {"base_url": elsewhere.base_url, "api_key_env": "AWS_SECRET"}}
        config = {**state["config"], "model": "m", "models": models, "turns": 3}
        for wrong in ({"config": 7}, {"status": "merry"}, {"turn_count": "9" * 5000}):
            answer = httpx.post(
                f"{server.url}/threads/{thread}/state", json={"values": wrong}, trust_env=False
            )
            assert (answer.status_code, next(iter(wrong)) in answer.text) == (400, True)
        client.threads.update_state(thread, {"config": config}, as_node="trim")
        result: Any = client.runs.wait(thread, "debate", input=None, raise_error=False)
        assert "needs the operator's permission" in result["__error__"]["message"]
        assert elsewhere.requests == []
    assert CANARY not in server.log()


def test_the_server_offers_the_tools_of_moot_mcp(server: LangGraphServer) -> None:
    async def talk() -> None:
        async with McpClient(f"{server.url}/mcp") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"debate", "start", "result", "ask"} <= set(tools)
            assert {"question", "turns", "model"} <= set(tools["debate"].input_schema["properties"])
            result = await client.call_tool("debate", {"question": "Trams?", "turns": 2})
            outcome = result.structured_content or {}
            assert (outcome["status"], outcome["turns"]) == ("done", 2)
            assert "no model judged this" in outcome["verdict"]
            refused = await client.call_tool("debate", {"question": "Trams?", "model": "gpt-4o"})
            assert "model: 'gpt-4o' needs the operator's permission" in str(refused.content[0])

    asyncio.run(talk())
    rebound = {"Host": "rebound.example"}
    assert httpx.post(f"{server.url}/mcp", json={}, headers=rebound, trust_env=False).status_code == 403


class A2AAgent:
    """The server's agent, called by the official client with either version of the protocol."""

    def __init__(
        self, server: LangGraphServer, client: httpx.AsyncClient, version: str, *, streaming: bool
    ) -> None:
        self._server, self._client = server, client
        self._version, self._streaming = version, streaming

    async def open(self) -> None:
        with get_sync_client(url=self._server.url) as sdk:
            known = sdk.assistants.search(graph_id="debate", name="debate")[0]["assistant_id"]
        path = f"/.well-known/agent-card.json?assistant_id={known}"
        self.card = await A2ACardResolver(self._client, self._server.url, path).get_agent_card()
        self.card.supported_interfaces[0].protocol_version = self._version
        config = ClientConfig(streaming=self._streaming, httpx_client=self._client)
        self._agent = ClientFactory(config).create(self.card)

    async def send(self, *parts: JsonObject, context: str = "", task: str = "") -> JsonObject:
        """Send a message; return the task's id, its context, its last state, and the text of all events."""
        fields = {"message_id": str(uuid.uuid4()), "context_id": context, "task_id": task}
        message = Message(role=Role.ROLE_USER, parts=[ParseDict(part, Part()) for part in parts], **fields)
        result: JsonObject = {"artifacts": []}
        async for each in self._agent.send_message(SendMessageRequest(message=message)):
            for event in MessageToDict(each).values():
                result |= {"task": event.get("taskId") or event.get("id"), "context": event["contextId"]}
                result |= (
                    {"state": event["status"]["state"], "status": event["status"]}
                    if "status" in event
                    else {}
                )
                result["artifacts"] += [*event.get("artifacts", ()), *filter(None, [event.get("artifact")])]
        return {**result, "state": result["status"]["state"], "text": json.dumps(result)}


@pytest.mark.parametrize(("version", "streaming"), [("1.0", True), ("1.0", False), ("0.3", True)])
def test_a2a_runs_debates_and_answers_questions(
    server: LangGraphServer, version: str, streaming: bool
) -> None:
    async def talk() -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=LONG_TIMEOUT_S) as client:
            agent = A2AAgent(server, client, version, streaming=streaming)
            await agent.open()
            assert "a judge decide it" in agent.card.description
            done = await agent.send({"text": "Trams?"}, {"data": {"settings": {"turns": 2}}})
            assert done["state"] == "TASK_STATE_COMPLETED"
            (verdict,) = done["artifacts"]
            assert "no model judged this" in str(verdict["parts"])
            asked = await agent.send(
                {"text": "What is the placeholder for the opening?"}, context=done["context"]
            )
            assert asked["state"] == "TASK_STATE_COMPLETED"
            assert "- [m00000" in asked["text"]
            refused = await agent.send({"text": "Trams?"}, {"data": {"settings": {"model": "gpt-4o"}}})
            assert refused["state"] == "TASK_STATE_FAILED"
            named = "model: 'gpt-4o' needs the operator's permission" if streaming else "ConfigError"
            assert named in refused["text"]
            if version == "0.3":
                return
            line = [{"name": "Ada", "model": "human"}, {"name": "Ben"}]
            settings = {"settings": {"turns": 2, "debaters": line}}
            waiting = await agent.send({"text": "Trams?"}, {"data": settings})
            assert waiting["state"] == "TASK_STATE_INPUT_REQUIRED"
            words = {"context": waiting["context"], "task": waiting["task"]}
            answered = await agent.send({"text": "Trams, I say."}, **words)
            assert answered["state"] == "TASK_STATE_COMPLETED"

    asyncio.run(talk())

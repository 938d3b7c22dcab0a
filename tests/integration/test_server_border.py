"""What LangGraph's server lets in: pages, hosts, and what a request may say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.support.langgraph_server import LangGraphServer, langgraph_server
from tests.support.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

CANARY = "canary-0d2f"
STUDIO = "https://smith.langchain.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    folder = tmp_path_factory.mktemp("border")
    secret = {"OPENAI_API_KEY": CANARY, "AWS_SECRET": CANARY, "MOOT_TOKEN": "let-me-in"}
    with langgraph_server(folder, **secret) as running:
        yield running


def asked(server: LangGraphServer, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/threads/search", json={}, headers=headers, trust_env=False)


def test_studio_and_this_machine_are_let_in(server: LangGraphServer) -> None:
    assert asked(server).status_code == 200
    assert asked(server, Origin=server.url).status_code == 200
    answer = asked(server, Origin=STUDIO)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, STUDIO)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
def test_other_pages_are_not_even_where_they_ask_without_cors(server: LangGraphServer, origin: str) -> None:
    answer = asked(server, Origin=origin)
    assert answer.status_code == 403
    assert "http.cors" in answer.text
    assert "access-control-allow-origin" not in answer.headers


def test_a_name_that_leads_here_is_refused_without_the_token(server: LangGraphServer) -> None:
    assert asked(server, Host="rebound.example").status_code == 403
    assert asked(server, Host="rebound.example", **{"x-api-key": "wrong"}).status_code == 403
    assert asked(server, Host="rebound.example", **{"x-api-key": "let-me-in"}).status_code == 200


def test_the_live_page_and_its_data_are_served_to_this_machine_alone(server: LangGraphServer) -> None:
    page = httpx.get(f"{server.url}/moot", trust_env=False)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    begun = httpx.post(
        f"{server.url}/moot/api/debates", json={"question": "Trams?", "turns": 1}, trust_env=False, timeout=30
    )
    address = f"{server.url}/moot/api/debates/{begun.json()['id']}"
    with httpx.stream("GET", f"{address}/events", trust_env=False, timeout=30) as events:
        told = (json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: "))
        assert any(each["debate"]["over"] for each in told if "debate" in each)
    foreign = httpx.post(f"{server.url}/moot/api/debates", json={}, headers={"Origin": STUDIO})
    assert (foreign.status_code, "another page" in foreign.text) == (403, True)
    assert httpx.get(f"{server.url}/moot", headers={"Host": "rebound.example"}).status_code == 403
    assert "Blocking" not in server.log()


def refusal(server: LangGraphServer, **context: Any) -> str:
    with get_sync_client(url=server.url) as client:
        thread = client.threads.create(graph_id="debate")["thread_id"]
        given: Any = {"turns": 1, **context}
        result: Any = client.runs.wait(
            thread, "debate", input={"topic": "T?"}, context=given, raise_error=False
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
def test_a_request_that_reaches_outside_is_refused_by_name(
    server: LangGraphServer, context: dict[str, Any], setting: str
) -> None:
    assert re.search(re.escape(setting), refusal(server, **context))


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "AWS_SECRET", None])
def test_no_variable_of_the_server_is_sent_where_a_request_says(
    server: LangGraphServer, variable: str | None
) -> None:
    with OpenAIServer() as elsewhere:
        endpoint = {"base_url": elsewhere.base_url} | ({"api_key_env": variable} if variable else {})
        assert "base_url" in refusal(server, model="m", models={"m": endpoint})
        assert elsewhere.requests == []


def test_a_state_that_a_client_writes_reaches_no_further(server: LangGraphServer) -> None:
    with OpenAIServer() as elsewhere, get_sync_client(url=server.url) as client:
        thread = client.threads.create(graph_id="debate")["thread_id"]
        given: Any = {"turns": 1, "judge": {"enabled": False}}
        client.runs.wait(thread, "debate", input={"topic": "T?"}, context=given)
        state: Any = client.threads.get_state(thread)["values"]
        models = {"m": {"base_url": elsewhere.base_url, "api_key_env": "AWS_SECRET"}}
        config = {**state["config"], "model": "m", "models": models, "turns": 3}
        client.threads.update_state(thread, {"config": config}, as_node="trim")
        result: Any = client.runs.wait(thread, "debate", input=None, raise_error=False)
        assert "reaches outside" in result["__error__"]["message"]
        assert elsewhere.requests == []
    assert CANARY not in server.log()

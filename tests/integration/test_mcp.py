"""`moot mcp`, asked by the official client: over stdio and over HTTP, cancelled and come back to."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextResourceContents

from moot import DebateConfig, open_debates
from moot.graph.debate_host import DebateHost
from moot.graph.mcp_server import MOST_TOKENS, McpDebates
from moot.nodes.models.local import ScriptedModel
from moot.nodes.text.tokens import counter
from tests.support.moot_command import command
from tests.support.openai_answers import Json
from tests.support.openai_server import Act, OpenAIServer


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MOOT_", "OPENAI_"))}
    return {**kept, **more}


@asynccontextmanager
async def over_stdio(db: Path, *options: str, **variables: str) -> AsyncIterator[Client]:
    python, *words = command("mcp", "--db", db, *options)
    server = StdioServerParameters(command=python, args=words, env=environment(**variables))
    async with Client(stdio_client(server)) as client:
        yield client


async def asked(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def text_of(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0])


def test_an_agent_has_a_question_debated_over_stdio(tmp_path: Path) -> None:
    async def talk() -> None:
        async with over_stdio(tmp_path / "moot.sqlite") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {
                *("debate", "start", "status", "say", "answer", "result", "ask", "compare"),
            }
            assert all(tool.description and tool.input_schema for tool in tools.values())
            heard: list[tuple[float, str | None]] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, message))

            result = await client.call_tool(
                "debate",
                {
                    "question": "Tabs or spaces?",
                    "turns": 3,
                    "debaters": [{"name": "Ada", "stance": "tabs"}, {"name": "Ben"}],
                },
                progress_callback=hear,
            )
            verdict = result.structured_content or {}
            assert (verdict["status"], verdict["turns"]) == ("done", 3)
            assert counter()(json.dumps(verdict)) <= MOST_TOKENS
            assert any((message or "").startswith("ada: ") for _, message in heard)
            debate = verdict["debate"]
            assert "Tabs or spaces?" in await text_of(client, f"moot://debates/{debate}/report")
            assert "[m000001]" in await text_of(client, f"moot://debates/{debate}/transcript")
            answer = await asked(client, "ask", debate=debate, question="What did Ada say?")
            assert answer["answer"]
            second = await asked(client, "debate", question="Tabs or spaces?", protocol="single")
            compared = await client.call_tool("compare", {"debates": [debate, second["debate"]]})
            assert "| Protocol |" in str(compared.content[0])
            said = await refused(client, "debate", question="Tabs?", model="gpt-4o")
            assert "model: 'gpt-4o' reaches outside" in said
            assert "no debate" in await refused(client, "status", debate="deadbeef")
            assert "protocol" in await refused(client, "debate", question="Tabs?", protocol="shouting")
            assert "topic is empty" in await refused(client, "debate", question=" ")
            assert len(json.loads(await text_of(client, "moot://debates"))) == 2
            prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
            assert prompts == {"argue_design", "second_opinion"}

    asyncio.run(talk())


def test_a_person_is_asked_through_the_agent(tmp_path: Path) -> None:
    line = ({"name": "Ada", "model": "human"}, {"name": "Ben"})
    usual = DebateConfig(turns=2, debaters=line, judge={"enabled": False})

    async def talk(offered: McpDebates) -> None:
        waiting = await offered.result((await offered.start("Tabs?")).debate, 60)
        assert waiting.status == "waiting"
        (question,) = waiting.questions
        refused = await offered.answer(waiting.debate, {"nobody.1": "x"})
        assert "no question that was asked is 'nobody.1'" in refused.error
        told = await offered.answer(waiting.debate, {question: "Tabs, for they are narrow."})
        done = await offered.result(told.debate, 60)
        assert (done.status, done.turns, done.error) == ("done", 2, "")

    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        asyncio.run(talk(McpDebates(DebateHost(debates, usual))))


@contextmanager
def over_http(db: Path, models: OpenAIServer) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = command("mcp", "--db", db, "--model", "test-model", "--http", port)
    with subprocess.Popen(words, env=environment(OPENAI_BASE_URL=models.base_url)) as process:
        try:
            for _ in range(600):
                with suppress(httpx.TransportError):
                    httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@contextmanager
def stdio_process(db: Path, models: OpenAIServer) -> Iterator[Any]:
    yield lambda: over_stdio(db, "--model", "test-model", OPENAI_BASE_URL=models.base_url)


@contextmanager
def http_process(db: Path, models: OpenAIServer) -> Iterator[Any]:
    with over_http(db, models) as url:
        yield lambda: Client(url)
        foreign = httpx.post(url, headers={"origin": "https://evil.example"}, json={}, trust_env=False)
        rebound = httpx.post(url, headers={"host": "evil.example"}, json={}, trust_env=False)
    assert [foreign.status_code, rebound.status_code] == [403, 421]


@pytest.mark.parametrize("serving", [http_process, stdio_process])
def test_a_cancelled_debate_is_paused_and_goes_on_for_a_client_that_comes_back(
    serving: Any, tmp_path: Path
) -> None:
    second = threading.Event()

    def plan(request: Json, number: int) -> Act:
        if number == 1:
            second.set()
        return Act(latency=1.0) if number == 1 else Act()

    async def cancelled(client: Client) -> None:
        said = {"question": "Tabs?", "turns": 3}
        call = asyncio.create_task(client.call_tool("debate", said))
        await asyncio.to_thread(second.wait, 30)
        call.cancel()
        await asyncio.wait({call})
        (row,) = json.loads(await text_of(client, "moot://debates"))
        paused = await asked(client, "result", debate=row["id"], wait_s=20)
        assert (paused["status"], paused["turns"]) == ("paused", 2)

    async def come_back(client: Client) -> None:
        (row,) = json.loads(await text_of(client, "moot://debates"))
        debate = row["id"]
        assert (await asked(client, "start", debate=debate))["status"] == "running"
        done = await asked(client, "result", debate=debate, wait_s=20)
        assert (done["status"], done["turns"]) == ("done", 3)
        assert done["verdict"]

    async def talk(connected: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        async with connected() as client:
            await cancelled(client)
            if serving is stdio_process:  # whose server goes with its client
                return await come_back(client)
        async with connected() as client:
            await come_back(client)

    with OpenAIServer(plan) as models, serving(tmp_path / "moot.sqlite", models) as connected:
        asyncio.run(talk(connected))
    asked_for = [json.dumps(chat["messages"]) for chat in models.chats]
    assert len(asked_for) == len(set(asked_for))  # what had been answered is not paid again


def test_an_outcome_spares_an_agents_context(tmp_path: Path) -> None:
    said = {"reasoning": "龘靐齉齾" * 900, "winner": "tie", "confidence": 60, "scores": []}
    with open_debates(
        str(tmp_path / "moot.sqlite"), models={"mine": ScriptedModel(lambda _: said)}
    ) as debates:
        offered = McpDebates(DebateHost(debates, DebateConfig(model="mine", turns=1)))
        debate = debates.start("Tabs?", DebateConfig(model="mine", turns=1))
        debate.run()
        outcome = asyncio.run(offered.status(debate.id))
    assert 300 < counter()(outcome.model_dump_json()) <= MOST_TOKENS

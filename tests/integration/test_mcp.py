"""`moot mcp` with the official client: over stdio and HTTP, with cancellation and reconnection."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextResourceContents

from moot import DebateConfig, open_debates
from moot.cli.group import INTERRUPTED
from moot.models.offline import ScriptedModel
from moot.plugins.web.debate_host import DebateHost
from moot.plugins.web.mcp_server import MAX_TOKENS, McpDebates
from moot.text.tokens import counter
from tests.support.moot_command import moot_argv
from tests.support.openai_answers import Json
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import LONG_TIMEOUT_S


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MOOT_", "OPENAI_"))}
    return {**kept, **more}


@asynccontextmanager
async def connect_over_stdio(db: Path, *options: str, **variables: str) -> AsyncIterator[Client]:
    python, *words = moot_argv("mcp", "--db", db, *options)
    server = StdioServerParameters(command=python, args=words, env=environment(**variables))
    async with Client(stdio_client(server)) as client:
        yield client


async def call_tool(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def resource_text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def tool_error(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0])


def test_an_agent_runs_a_debate_over_stdio_and_reads_its_resources(tmp_path: Path) -> None:
    async def talk() -> None:
        async with connect_over_stdio(tmp_path / "moot.sqlite", MOOT_MODEL="offline") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {
                *("debate", "start", "status", "say", "answer", "result", "ask", "compare"),
            }
            for tool in tools.values():
                assert tool.description
                assert tool.input_schema["additionalProperties"] is False
                for parameter in tool.input_schema["properties"].values():
                    assert parameter["description"]
                    assert parameter["examples"]
            assert client.server_info is not None
            assert client.server_info.version == version("moot")
            progress_updates: list[tuple[float, str | None]] = []

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                progress_updates.append((progress, message))

            result = await client.call_tool(
                "debate",
                {
                    "question": "Tabs or spaces?",
                    "turns": 3,
                    "debaters": [{"name": "Ada", "stance": "tabs"}, {"name": "Ben"}],
                },
                progress_callback=on_progress,
            )
            verdict = result.structured_content or {}
            assert (verdict["status"], verdict["turns"]) == ("done", 3)
            assert counter()(json.dumps(verdict)) <= MAX_TOKENS
            assert any((message or "").startswith("ada: ") for _, message in progress_updates)
            debate = verdict["debate"]
            text = str(getattr(result.content[0], "text", ""))
            assert text.partition("\n")[0] == verdict["decision"]
            assert f"Debate {debate}: done, 3 turns" in text
            brief = await resource_text(client, f"moot://debates/{debate}/brief")
            assert verdict["decision"] in brief.replace("Placeholder", "placeholder")
            assert "Tabs or spaces?" in await resource_text(client, f"moot://debates/{debate}/report")
            assert "[m000001]" in await resource_text(client, f"moot://debates/{debate}/transcript")
            answer = await call_tool(client, "ask", debate=debate, question="What did Ada say?")
            assert answer["answer"]
            second = await call_tool(client, "debate", question="Tabs or spaces?", protocol="single")
            compared = await client.call_tool("compare", {"debates": [debate, second["debate"]]})
            assert "| Protocol |" in str(compared.content[0])
            forbidden = await tool_error(client, "debate", question="Tabs?", model="gpt-4o")
            assert "model: 'gpt-4o' needs the operator's permission" in forbidden
            assert "no debate" in await tool_error(client, "status", debate="deadbeef")
            assert "protocol" in await tool_error(client, "debate", question="Tabs?", protocol="shouting")
            unknown = await tool_error(client, "debate", question="Tabs?", turnz=3)
            assert "unknown argument 'turnz': use only question, protocol, debaters, turns, model" in unknown
            long = "x" * 100_000
            for arguments in (
                {"question": "Tabs?", long: 1},
                {"question": "Tabs?", **{f"{long[:50]}{number}": 1 for number in range(1000)}},
                {"question": "Tabs?", "debaters": [{"name": "Ada", long: 1}, {"name": "Ben"}]},
                {"question": "Tabs?", "debaters": [{"name": long}, {"name": "Ben"}]},
                {"question": "Tabs?", "debaters": [{"name": "Ada", "model": long}, {"name": "Ben"}]},
                {"question": "Tabs?", "protocol": long},
                {"question": "Tabs?", "model": long},
            ):
                assert len(await tool_error(client, "debate", **arguments)) < 1000, str(arguments)[:100]
            assert len(await tool_error(client, "status", debate=long)) < 1000
            alone = await tool_error(client, "debate", question="Tabs?", debaters=[{"name": "Ada"}])
            assert "protocol 'round-robin' needs at least two debaters" in alone
            assert "topic is empty" in await tool_error(client, "debate", question=" ")
            assert len(json.loads(await resource_text(client, "moot://debates"))) == 2
            prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
            assert prompts == {"argue_design", "second_opinion"}

    asyncio.run(talk())


def _documented_servers() -> dict[str, list[str]]:
    """Return the server command that docs/integrations.md gives for each client."""
    page = (Path(__file__).parents[2] / "docs/integrations.md").read_text(encoding="utf-8")
    servers_by_client: dict[str, list[str]] = {}
    for client, kind, lines in re.findall(r"^\*\*([\w ]+)\*\*.*?```(\w+)\n(.*?)```", page, re.M | re.S):
        if kind == "sh":
            words = shlex.split(lines)
            assert words[:4] == ["claude", "mcp", "add", "moot"]
            servers_by_client[client] = words[words.index("--") + 1 :]
        else:
            data: Json = tomllib.loads(lines) if kind == "toml" else json.loads(lines)
            (servers,) = data.values()
            servers_by_client[client] = [servers["moot"]["command"], *servers["moot"]["args"]]
    return servers_by_client


@pytest.mark.slow
def test_the_documented_commands_start_a_server_for_every_client(tmp_path: Path) -> None:
    servers = _documented_servers()
    assert servers.keys() == {"Claude Code", "Codex", "Cursor", "VS Code"}

    async def talk(program: str, *words: str) -> None:
        scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": scripts, "MOOT_DB": str(tmp_path / "moot.sqlite"), "HOME": str(tmp_path)}
        server = StdioServerParameters(command=program, args=list(words), env=environment(**own))
        async with Client(stdio_client(server)) as client:
            assert client.server_info is not None
            assert client.server_info.name == "moot"
            assert "debate" in {tool.name for tool in (await client.list_tools()).tools}

    for words in {tuple(each) for each in servers.values()}:
        asyncio.run(talk(*words))


@pytest.mark.slow
def _opening_request() -> dict[str, Any]:
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}


INVALID_LINES: dict[str, tuple[bytes, object]] = {
    "lone surrogate": (
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"start","arguments":{"question":"\ud800"}}}',
        1,
    ),
    "lone surrogate in the id": (rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}', None),
    "half a line": (b'{"jsonrpc":"2.0","id":2,', None),
    "no request": (b'{"id":"x"}', "x"),
    "a list": (b"[]", None),
    "deep": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":' + b"[" * 9000 + b"]" * 9000 + b"}", None),
}


def test_each_invalid_line_gets_an_error_and_the_server_goes_on(tmp_path: Path) -> None:
    words = moot_argv("mcp", "--db", tmp_path / "moot.sqlite")
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=environment(MOOT_MODEL="offline"), **pipes) as server:

        def reply_to(line: bytes) -> Any:
            server.stdin.write(line + b"\n")  # type: ignore[union-attr]  # it is a pipe
            server.stdin.flush()  # type: ignore[union-attr]
            return json.loads(server.stdout.readline())  # type: ignore[union-attr]

        try:
            assert "serverInfo" in reply_to(json.dumps(_opening_request()).encode())["result"]
            replies = {name: reply_to(line) for name, (line, _) in INVALID_LINES.items()}
            assert reply_to(b'{"jsonrpc":"2.0","id":9,"method":"ping"}') == {
                "jsonrpc": "2.0",
                "id": 9,
                "result": {},
            }
        finally:
            server.kill()
    assert {name: each["id"] for name, each in replies.items()} == {
        name: key for name, (_, key) in INVALID_LINES.items()
    }
    assert all("not a valid MCP message" in each["error"]["message"] for each in replies.values())


def test_a_server_stops_although_the_client_keeps_its_stdin_open(tmp_path: Path) -> None:
    words = moot_argv("mcp", "--db", tmp_path / "moot.sqlite")
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment(), **pipes) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(_opening_request()).encode() + b"\n")
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        server.terminate()
        try:
            assert server.wait(LONG_TIMEOUT_S) == INTERRUPTED
        finally:
            server.kill()


def test_a_person_replies_through_the_agent(tmp_path: Path) -> None:
    debaters = ({"name": "Ada", "model": "human"}, {"name": "Ben"})
    default_config = DebateConfig(model="offline", turns=2, debaters=debaters, judge={"enabled": False})

    async def talk(mcp_debates: McpDebates) -> None:
        outside: Any = SimpleNamespace(request_context=SimpleNamespace(request=None))
        waiting = await mcp_debates.result((await mcp_debates.start(outside, "Tabs?")).debate, 60)
        assert waiting.status == "waiting"
        (question,) = waiting.questions
        unknown = await mcp_debates.answer(waiting.debate, {"nobody.1": "x"})
        assert "'nobody.1' is not the id of a question" in unknown.error
        answered = await mcp_debates.answer(waiting.debate, {question: "Tabs, for they are narrow."})
        done = await mcp_debates.result(answered.debate, 60)
        assert (done.status, done.turns, done.error) == ("done", 2, "")

    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        asyncio.run(talk(McpDebates(DebateHost(debates, default_config))))


@contextmanager
def serve_over_http(db: Path, models: OpenAIServer, **variables: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = moot_argv("mcp", "--db", db, "--model", "test-model", "--http", port)
    with subprocess.Popen(words, env=environment(OPENAI_BASE_URL=models.base_url, **variables)) as process:
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
    yield lambda: connect_over_stdio(db, "--model", "test-model", OPENAI_BASE_URL=models.base_url)


@contextmanager
def http_process(db: Path, models: OpenAIServer) -> Iterator[Any]:
    with serve_over_http(db, models) as url:
        yield lambda: Client(url)
        foreign = httpx.post(url, headers={"origin": "https://evil.example"}, json={}, trust_env=False)
        rebound = httpx.post(url, headers={"host": "evil.example"}, json={}, trust_env=False)
    assert [foreign.status_code, rebound.status_code] == [403, 403]


@pytest.mark.parametrize("serving", [http_process, stdio_process])
@pytest.mark.slow
def test_a_cancelled_debate_pauses_and_resumes_for_a_reconnecting_client(
    serving: Any, tmp_path: Path
) -> None:
    third = threading.Event()

    def plan(request: Json, number: int) -> ServerReply:
        if number == 2:  # both openings are requested at the same time
            third.set()
        return ServerReply(latency=1.0) if number == 2 else ServerReply()

    async def cancel_call(client: Client) -> None:
        arguments = {"question": "Tabs?", "turns": 4}
        call = asyncio.create_task(client.call_tool("debate", arguments))
        await asyncio.to_thread(third.wait, 30)
        call.cancel()
        await asyncio.wait({call})
        (row,) = json.loads(await resource_text(client, "moot://debates"))
        paused = await call_tool(client, "result", debate=row["id"], wait_s=20)
        assert (paused["status"], paused["turns"]) == ("paused", 3)

    async def reconnect(client: Client) -> None:
        (row,) = json.loads(await resource_text(client, "moot://debates"))
        debate = row["id"]
        assert (await call_tool(client, "start", debate=debate))["status"] == "running"
        done = await call_tool(client, "result", debate=debate, wait_s=20)
        assert (done["status"], done["turns"]) == ("done", 4)
        assert done["verdict"]

    async def talk(connected: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        async with connected() as client:
            await cancel_call(client)
            if serving is stdio_process:  # its server ends with its client
                return await reconnect(client)
        async with connected() as client:
            await reconnect(client)

    with OpenAIServer(plan) as models, serving(tmp_path / "moot.sqlite", models) as connected:
        asyncio.run(talk(connected))
    prompts = [json.dumps(chat["messages"]) for chat in models.chats]
    assert len(prompts) == len(set(prompts))  # no answered call is repeated


@pytest.mark.slow
@pytest.mark.parametrize("token", [pytest.param("", marks=pytest.mark.slow), "set-by-the-operator"])
def test_only_an_agent_with_the_token_may_choose_a_model(token: str, tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        http = httpx2.AsyncClient(headers={"x-api-key": token}, trust_env=False, timeout=120)
        async with http, Client(streamable_http_client(url, http_client=http)) as client:
            arguments = {"question": "Tabs?", "turns": 1, "model": "another-model"}
            for tool in ("start", "debate"):
                if token:
                    assert (await call_tool(client, tool, **arguments))["debate"]
                else:
                    assert "needs the operator's permission" in await tool_error(client, tool, **arguments)

    variables = {"MOOT_TOKEN": token} if token else {}
    with OpenAIServer() as models, serve_over_http(tmp_path / "d.sqlite", models, **variables) as url:
        asyncio.run(talk(url))


def test_a_long_result_is_truncated_to_the_token_limit(tmp_path: Path) -> None:
    verdict = {"reasoning": "龘靐齉齾" * 900, "winner": "tie", "confidence": 60, "scores": []}
    with open_debates(
        str(tmp_path / "moot.sqlite"), models={"mine": ScriptedModel(lambda _: verdict)}
    ) as debates:
        mcp_debates = McpDebates(DebateHost(debates, DebateConfig(model="mine", turns=1)))
        debate = debates.start("Tabs?", DebateConfig(model="mine", turns=1))
        debate.run()
        result = asyncio.run(mcp_debates.status(debate.id))
    assert 300 < counter()(result.model_dump_json()) <= MAX_TOKENS

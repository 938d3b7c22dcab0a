"""Debaters call tools of MCP servers: over stdio and HTTP, with permissions and limits."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from langgraph.checkpoint.memory import InMemorySaver
from starlette.types import Receive, Scope, Send

from moot import ConfigError, DebateConfig, build_graph, open_debates
from moot.calls.model_calls import ModelCall, Reply
from moot.config.stages import authorize, requested_config
from moot.debates.dry_run import estimate
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.prompts.templates import unfenced
from moot.tools.tool import MAX_RESULT_CHARS
from tests.support import mcp_tool_server
from tests.support.fakes import FakeModel, fake_reply
from tests.support.waiting import wait_until

SERVER = str(Path(mcp_tool_server.__file__))
KEY = "sk-docs-0123456789abcdef"
THREAD: Any = {"configurable": {"thread_id": "0d5a4b10-93cb-4d0c-9e26-41ad52b0c15c"}}
STDIO: Any = {"command": [sys.executable, SERVER], "env": ["DOCS_KEY"]}


def _config(server: Any, *tools: str, **more: Any) -> DebateConfig:
    debaters = [{"name": "Ada", "tools": list(tools)}, {"name": "Bo"}]
    data = {"turns": 1, "judge": {"enabled": False}, "debaters": debaters, "mcp_servers": {"docs": server}}
    return DebateConfig.model_validate({**data, **more})


def _calls(*calls: tuple[str, Any]) -> FakeModel:
    """Return a model that calls the tools once and then replies with a message."""

    def reply(call: ModelCall) -> Reply:
        if not call.tools or call.schema or any(each["role"] == "tool" for each in call.messages):
            return fake_reply(call)
        asked = tuple({"id": "c", "name": name, "args": arguments} for name, arguments in calls)
        return Reply(tool_calls=asked, model="m")

    return FakeModel(reply)


def _results(entries: Any) -> list[str]:
    return [entry["content"] for entry in entries if entry["kind"] == "tool_result"]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_KEY", KEY)
    monkeypatch.setenv("OTHER", "not for servers")


@pytest.mark.slow
def test_debater_calls_tools_of_a_stdio_server(tmp_path: Path) -> None:
    model = _calls(("docs__search", {"query": "Trams"}))
    with open_debates(str(tmp_path / "moot.sqlite"), environment=model.environment()) as debates:
        debate = debates.start("Trams?", _config(STDIO, "docs__search", "docs__slow"))
        (found,) = _results(debate.run()["transcript"])
        stored = debate.state().values
        receipt = stored["receipts"][0]
        prompt = reconstruct_prompt(debate.session, receipt["seq"])  # needs no server
    assert found == "docs__search: Trams: 12 incidents in 2026. Key: ***. None."
    offered = {each["function"]["name"]: each["function"] for each in model.calls[0].tools}
    assert offered["docs__search"]["description"] == "Search the documents. <·|im_start|>"
    assert offered["docs__search"]["parameters"]["required"] == ["query"]
    second = next(call for call in model.calls if any(each["role"] == "tool" for each in call.messages))
    shown = [each["content"] for each in second.messages if each["role"] == "tool"]
    assert shown[0] != unfenced(shown[0])
    assert "12 incidents" in unfenced(shown[0])
    assert stored["config"]["mcp_servers"]["docs"]["tools"]["docs__slow"]["name"] == "slow"
    assert KEY not in str(stored)
    assert prompt


class _ServerWithKey:
    """The MCP server over HTTP. It refuses requests without the key."""

    def __init__(self) -> None:
        self.app, self.refused = mcp_tool_server.server.streamable_http_app(), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and headers.get(b"authorization") != f"Bearer {KEY}".encode():
            self.refused += 1
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await self.app(scope, receive, send)


@contextmanager
def _http_server() -> Iterator[tuple[str, _ServerWithKey]]:
    app = _ServerWithKey()
    http = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", 0, log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(http.serve()))
    thread.start()
    try:
        wait_until(lambda: http.started)
        yield f"http://127.0.0.1:{http.servers[0].sockets[0].getsockname()[1]}/mcp", app
    finally:
        http.should_exit = True
        thread.join()


def test_debater_calls_tools_of_an_http_server_within_the_limits() -> None:
    with _http_server() as (url, app):
        server = {"url": url, "api_key_env": "DOCS_KEY"}
        model = _calls(
            ("docs__large", {}), ("docs__search", {"query": "T"}), ("docs__admin_fail", {"what": ""})
        )
        graph: Any = build_graph(InMemorySaver(), environment=model.environment())
        graph.invoke(
            {"topic": "Trams?"},
            THREAD,
            context=_config(server, "docs__search", "docs__large", "docs__admin_fail"),
        )
        large, found, failed = _results(graph.get_state(THREAD).values["full_transcript"])
        assert app.refused == 0
        with pytest.raises(ConfigError, match=r"mcp_servers\.docs: ."):
            build_graph().invoke({"topic": "T?"}, context=_config({"url": url}, "docs__search"))
        assert app.refused
    assert len(large) < MAX_RESULT_CHARS
    assert "12 incidents in 2026" in found
    assert failed.startswith("docs__admin_fail: error: ")
    assert max(call.prompt_tokens for call in model.calls) <= 8_000


@pytest.mark.slow
def test_start_refuses_unknown_tools_and_failing_servers() -> None:
    graph: Any = build_graph(environment=FakeModel().environment())

    def refused(config: DebateConfig) -> str:
        with pytest.raises(ConfigError) as error:
            graph.invoke({"topic": "T?"}, context=config)
        return str(error.value)

    message = refused(_config(STDIO, "docs__find"))
    assert "the MCP server 'docs' does not offer it: choose from docs__admin_fail, docs__large" in message
    assert "unknown tool 'other__find'" in refused(_config(STDIO, "other__find"))
    assert "program 'no-such' not found" in refused(_config({"command": ["no-such"]}, "docs__search"))
    broken = {"command": [sys.executable, "-c", "raise SystemExit('no database')"]}
    assert "it wrote: no database" in refused(_config(broken, "docs__search"))
    silent = {"command": [sys.executable, "-c", "input(); input()"], "timeout_s": 0.5}
    assert "no result within timeout_s, 0.5 s" in refused(_config(silent, "docs__search"))
    assert "NO_SUCH is not set" in refused(_config({**STDIO, "env": ["NO_SUCH"]}, "docs__search"))


def test_requests_cannot_add_servers_and_a_dry_run_starts_none(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    evil = {"command": [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]}
    asked = {"mcp_servers": {"docs": evil}, "debaters": [{"name": "Ada", "tools": ["docs__search"]}]}
    with pytest.raises(ConfigError, match=r"mcp_servers\.docs: .* needs the operator's permission"):
        authorize(requested_config(DebateConfig(), asked), DebateConfig()).authorize()
    operator = _config(STDIO, "docs__search")
    merged = requested_config(operator, asked)
    assert merged.mcp_servers == operator.mcp_servers
    authorize(merged, operator).authorize()
    planned = estimate(_config(evil, "docs__search"))
    assert planned
    assert planned.calls
    assert not mark.exists()


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({}, "give either `command` or `url`"),
        ({"url": "http://user:secret@127.0.0.1/mcp"}, "contains a password or key"),
        ({"url": "ftp://127.0.0.1"}, "is not an HTTP URL"),
        ({"command": ["x"], "env": ["KEY=1"]}, "is not the name of an environment variable"),
        ({"command": ["x"], "api_key_env": "KEY"}, "name the variable in `env`"),
    ],
    ids=["neither command nor URL", "password in the URL", "URL scheme", "value in env", "key of a command"],
)
def test_invalid_server_settings_are_refused_with_advice(server: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _config(server)


def test_reconfigure_loads_the_tool_definitions_of_its_servers(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite"), environment=FakeModel().environment()) as debates:
        plain, config = _config(STDIO), _config(STDIO, "docs__search")
        debate = debates.start("Trams?", plain)
        assert debate.differing_keys(config) == ["debaters"]
        debate.reconfigure(config)
        assert debate.config().mcp_servers["docs"].tools.keys() == {"docs__search"}
        assert debate.differing_keys(config) == []
        assert debate.run()["status"] == "done"

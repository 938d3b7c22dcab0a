"""A short test of each part of an installation, with the lowest and with the newest versions of packages.

`make lowest` runs it in an environment without the packages for development. So it imports only Moot, its
optional packages and pytest.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from moot import DebateConfig, aopen_debates, build_graph, debate_tool, open_debates
from moot.testing import fake_model

pytestmark = pytest.mark.slow

QUESTION = "Should we adopt a monorepo?"
SHORT = DebateConfig(turns=2)
OFFLINE = {**os.environ, "MOOT_MODEL": "offline"}
"""Environment of a server that uses the offline model. Without a model, it would refuse debates."""


def _moot(*words: object, cwd: Path) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MOOT_")}
    run = subprocess.run(
        [sys.executable, "-m", "moot", *map(str, words)],
        cwd=cwd,
        env={**kept, "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_debate_is_run_asked_forked_and_stored(tmp_path: Path) -> None:
    with open_debates(str(tmp_path / "moot.sqlite")) as debates:
        debate = debates.start(QUESTION, SHORT)
        document = debate.run()
        assert document["status"] == "done"
        assert debate.ask("Who spoke first?").to_json()["answer"]
        assert len(debate.fork().run(turns=1)["transcript"]) > len(document["transcript"])
        assert len(debates.rows()) == 2


def test_async_api_runs_with_a_custom_langchain_model(tmp_path: Path) -> None:
    model: Any = RunnableLambda(lambda _: AIMessage("One repository is simpler."))

    async def main() -> Any:
        database = str(tmp_path / "moot.sqlite")
        async with aopen_debates(database, models={"mine": model}) as debates:
            config = DebateConfig(turns=2, model="mine", judge={"enabled": False})
            return await debates.start(QUESTION, config).arun()

    assert asyncio.run(main())["transcript"][1]["content"] == "One repository is simpler."


def test_graph_runs_with_a_langgraph_checkpointer() -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    assert build_graph(InMemorySaver()).invoke({"topic": QUESTION}, config, context=SHORT)["verdict"]


def test_debater_uses_a_tool_of_an_mcp_server() -> None:
    server = {"command": [sys.executable, str(Path(__file__).parents[1] / "support/mcp_tool_server.py")]}
    ada: Any = {"name": "Ada", "tools": ["docs__search"]}
    settings: Any = {"turns": 1, "debaters": [ada, {"name": "Bo"}], "mcp_servers": {"docs": server}}
    tool_call = AIMessage("", tool_calls=[{"id": "1", "name": "docs__search", "args": {"query": "trams"}}])
    model = fake_model([tool_call, "One repository is simpler."])
    config = DebateConfig.model_validate({**settings, "model": "mine", "judge": {"enabled": False}})
    thread: Any = {"configurable": {"thread_id": "t"}}
    graph: Any = build_graph(InMemorySaver(), models={"mine": model})
    graph.invoke({"topic": QUESTION}, thread, context=config)
    entries = graph.get_state(thread).values["full_transcript"]
    (result,) = [entry["content"] for entry in entries if entry["kind"] == "tool_result"]
    assert result.startswith("docs__search: trams: 12 incidents in 2026.")


def test_debate_tool_returns_a_result(tmp_path: Path) -> None:
    assert "Debate " in debate_tool(SHORT, database=str(tmp_path / "moot.sqlite")).invoke(QUESTION)


def test_cli_runs_a_debate_and_writes_reports(tmp_path: Path) -> None:
    config = tmp_path / "debate.yaml"
    config.write_text("model: offline\nturns: 2\n", encoding="utf-8")
    db = tmp_path / "moot.sqlite"
    _moot("run", QUESTION, "--config", config, "--db", db, "--id", "first", cwd=tmp_path)
    for form in ("html", "md", "json", "adr"):
        name = "decision.md" if form == "adr" else f"report.{form}"
        _moot("report", "first", "--format", form, "--db", db, "--output", name, cwd=tmp_path)
        assert "monorepo" in (tmp_path / name).read_text(encoding="utf-8")


def test_plain_transcripts_are_imported_and_compared_without_extras(tmp_path: Path) -> None:
    db, files = (
        tmp_path / "moot.sqlite",
        {"a.csv": "speaker,text\nAda,Yes.\nBo,No.\n", "b.txt": "Ada: Yes.\nBo: No.\n"},
    )
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        _moot("import", name, "--topic", QUESTION, "--id", name[0], "--db", db, cwd=tmp_path)
    assert "monorepo" in _moot("compare", "a", "b", "--db", db, cwd=tmp_path)


def test_mcp_client_gets_a_verdict_over_stdio(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp")
    stdio = pytest.importorskip("mcp.client.stdio")
    words = ["-m", "moot", "mcp", "--db", str(tmp_path / "moot.sqlite")]
    server = mcp.StdioServerParameters(command=sys.executable, args=words, env=OFFLINE)

    async def main() -> tuple[Any, Any, Any, Any]:
        async with stdio.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            begun = await session.initialize()
            tools = (await session.list_tools()).tools
            done = await session.call_tool("debate", {"question": QUESTION, "turns": 2})
            wrong = await session.call_tool("debate", {"question": QUESTION, "turnz": 2})
            return begun, tools, done, wrong

    begun, tools, done, wrong = asyncio.run(main())
    info = begun.model_dump(by_alias=True)["serverInfo"]
    assert (info["name"], bool(info["version"])) == ("moot", True)
    assert {"debate", "start", "status", "result"} <= {tool.name for tool in tools}
    result = done.model_dump(by_alias=True)
    assert result["structuredContent"]["status"] == "done"
    assert result["content"][0]["text"].partition("\n")[0] == result["structuredContent"]["decision"]
    assert wrong.model_dump(by_alias=True)["isError"]
    assert "unknown argument 'turnz': use only question" in wrong.content[0].text


def test_langchain_mcp_adapters_can_call_the_debate_tool(tmp_path: Path) -> None:
    adapters = pytest.importorskip("langchain_mcp_adapters.client")
    words = ["-m", "moot", "mcp", "--db", str(tmp_path / "moot.sqlite")]
    client = adapters.MultiServerMCPClient(
        {"moot": {"transport": "stdio", "command": sys.executable, "args": words, "env": OFFLINE}}
    )

    async def main() -> Any:
        tools = {tool.name: tool for tool in await client.get_tools()}
        return await tools["debate"].ainvoke({"question": QUESTION, "turns": 2})

    assert "2 turns" in str(asyncio.run(main()))


def test_the_live_page_and_the_servers_can_be_imported() -> None:
    pytest.importorskip("sse_starlette")
    code = "import moot.plugins.web.page_routes, moot.plugins.web.mcp_server, moot.cli"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr

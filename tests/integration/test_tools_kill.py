"""A debate that is killed between a tool's call, its result and the speech ends as if it had not been."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_people import _finish, _start, _until
from tests.support.moot_command import Moot
from tests.support.openai_server import Act, OpenAIServer
from tests.support.warm_process import WarmProcess

DEBATERS = [{"name": "Ada", "tools": ["search", "calculator"]}, {"name": "Bo", "tools": ["search"]}]


def _researching(request: Any, number: int) -> Act | None:
    """Search before every speech."""
    if not request.get("tools") or any(message["role"] == "tool" for message in request["messages"]):
        return None
    return Act(tool_calls=[("search", {"query": "build"})])


def _debate(moot: Moot, server: OpenAIServer, name: str, kills: int) -> Any:
    """Run to the end, killed each time a request that follows a tool's result is under way."""
    words: tuple[str, ...] = ("run", "Should we?", "--config", "c.yaml", "--context", "dossier", "--id", name)
    for _ in range(kills):
        _kill_after_a_result(server, _start(moot, server, *words))
        words = ("resume", name)
    assert _finish(moot, server, *words) == 0
    return moot("show", name, "--json").json


def _kill_after_a_result(server: OpenAIServer, process: WarmProcess) -> None:
    before = _with_results(server)
    _until(lambda: _with_results(server) > before or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _with_results(server: OpenAIServer) -> int:
    return sum(any(message["role"] == "tool" for message in chat["messages"]) for chat in server.chats)


@pytest.mark.slow
def test_killed_after_tools_have_run_a_resume_gives_the_uninterrupted_result(tmp_path: Path) -> None:
    moot = Moot(tmp_path)
    (tmp_path / "dossier").mkdir()
    (tmp_path / "dossier" / "facts.md").write_text("The build takes 41 minutes.")
    config = {"model": "m", "turns": 4, "seed": 1, "debaters": DEBATERS, "judge": {"enabled": False}}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    with OpenAIServer(_researching, latency=0.2) as server:
        whole = _debate(moot, server, "whole", 0)
        asked = len(server.chats)
    with OpenAIServer(_researching, latency=0.2) as server:
        killed = _debate(moot, server, "killed", 3)
        repeated = Counter(json.dumps(chat, sort_keys=True) for chat in server.chats)

    def said(document: Any) -> list[Any]:
        return [{k: v for k, v in e.items() if k not in ("at", "usage")} for e in document["transcript"]]

    assert said(killed) == said(whole)
    assert [e["kind"] for e in whole["transcript"]].count("tool_result") == 4
    assert len(repeated) == asked
    assert sum(repeated.values()) <= asked + 3, "only a call in flight at a kill may be asked again"

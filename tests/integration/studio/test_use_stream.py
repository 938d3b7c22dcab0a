"""Edits and branches of a chat, as LangGraph's React hook `useStream` makes them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.studio.test_studio import SHORT, new_thread, values
from tests.support.langgraph_server import PROJECT, Client, LangGraphServer

State = dict[str, Any]


def message_ids(state: State) -> list[str]:
    return [message["id"] for message in state["values"].get("messages", [])]


def checkpoint_before(client: Client, thread: str, message_id: str) -> State:
    """Return the parent of a message's first checkpoint, from which `useStream` edits the message."""
    history = client.threads.get_history(thread, limit=100)
    parent: State = [state for state in history if message_id in message_ids(state)][-1]["parent_checkpoint"]
    return parent


@pytest.mark.slow
def test_edits_and_regenerated_replies_create_branches(client: Client) -> None:
    thread = new_thread(client)
    asked = {"messages": [{"role": "user", "id": "ui-1", "content": "Ban cars?"}]}
    client.runs.wait(thread, "debate", input=asked, context=SHORT)
    first = message_ids({"values": values(client, thread)})
    assert first[0] == "ui-1"

    edited = {"messages": [{"role": "user", "id": "ui-2", "content": "Ban trucks?"}]}
    checkpoint = checkpoint_before(client, thread, "ui-1")
    client.runs.wait(thread, "debate", input=edited, checkpoint=checkpoint, context=SHORT)
    state = values(client, thread)
    second = message_ids({"values": state})
    assert (state["topic"], second[0]) == ("Ban trucks?", "ui-2")
    asked_by_user = [each["content"] for each in state["full_transcript"] if each["speaker"] == "user"]
    assert asked_by_user == ["Ban trucks?"]
    assert not set(first) & set(second)

    client.runs.wait(thread, "debate", input=None, checkpoint=checkpoint_before(client, thread, second[1]))
    third = message_ids({"values": values(client, thread)})
    assert third[0] == "ui-2"
    assert not set(second[1:]) & set(third[1:])
    ends = [
        message_ids(state) for state in client.threads.get_history(thread, limit=100) if not state["next"]
    ]
    assert ends == [third, second, first]


@pytest.fixture(scope="session")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the chat program in a folder with its npm packages."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("chat") / "use_stream"
    shutil.copytree(PROJECT / "tests/support/use_stream", folder)
    install = [npm, "install", "--silent", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    return folder / "chat.js"


@pytest.mark.heavy  # installs npm packages
def test_use_stream_shows_branches_of_questions_and_replies(chat: Path, server: LangGraphServer) -> None:
    command = [shutil.which("node") or "node", str(chat), server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    cards = steps.pop("cards")
    assert [(card["name"], card["beside"]) for card in cards] == [
        (name, steps["asked"][-1]["id"]) for name in ("verdict", "positions")
    ]
    assert cards[0]["props"]["status"] == "ok"
    assert [each["name"] for each in cards[1]["props"]["debaters"]] == ["Advocate", "Skeptic"]
    assert [each["name"] for each in steps["asked"]] == ["user", "advocate", "skeptic", "judge"]
    branches = {step: [each["branches"] for each in messages] for step, messages in steps.items()}
    assert branches == {
        "asked": [1, 1, 1, 1],
        "edited": [2, 1, 1, 1],
        "regenerated": [2, 2, 1, 1],
        "switched": [2, 1, 1, 1],
    }
    assert [steps[step][0]["id"] for step in steps] == ["ui-1", "ui-2", "ui-2", "ui-1"]
    assert steps["switched"] == [
        {**each, "branches": count} for each, count in zip(steps["asked"], [2, 1, 1, 1], strict=True)
    ]

"""`langgraph dev` as a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PROJECT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 300.0
"""Limit for a busy machine. On an idle one a start takes five seconds."""

_HIDDEN_PREFIXES = ("MOOT_", "LANGSMITH_", "LANGCHAIN_", "OPENAI_", "LANGGRAPH_")


@dataclass(frozen=True)
class LangGraphServer:
    """A running server."""

    url: str
    database: Path
    """SQLite file of the server, which tests may open as well."""
    log_file: Path

    def log(self) -> str:
        """Return the server's log so far."""
        return self.log_file.read_text(errors="replace")


Client = Any
"""Client of the SDK. Its own types are unions over all modes and do not describe the state of a graph."""


def assistant_id(client: Client) -> str:
    """Return the id of the default assistant of the graph."""
    key: str = client.assistants.search(graph_id="debate", name="debate")[0]["assistant_id"]
    return key


@contextmanager
def langgraph_server(folder: Path, **variables: str) -> Iterator[LangGraphServer]:
    """Serve the project's `langgraph.json`, and keep the server's own files in a folder.

    Args:
        folder: an empty folder.
        variables: additional environment variables of the server.
    """
    port = _free_port()
    server = LangGraphServer(f"http://127.0.0.1:{port}", folder / "moot.sqlite", folder / "server.log")
    with server.log_file.open("wb") as log:
        process = subprocess.Popen(
            _command(port),
            cwd=folder,
            env=_environment(server.database) | variables,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_ready(server, process)
            yield server
        finally:
            _stop(process)


def _command(port: int) -> list[str]:
    serve = [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(PROJECT / "langgraph.json")]
    return [*serve, "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(database: Path) -> dict[str, str]:
    """Return an environment without keys and tracing, with the offline model: nothing leaves the machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN_PREFIXES)}
    return kept | {
        "MOOT_DB": str(database),
        "MOOT_MODEL": "offline",
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGSMITH_TRACING": "false",
        "NO_COLOR": "1",
    }


def _wait_until_ready(server: LangGraphServer, process: subprocess.Popen[bytes]) -> None:
    """Wait until `/ok` answers.

    Raises:
        RuntimeError: the server has ended or does not answer in time. The message contains its log.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{server.url}/ok", timeout=2, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"langgraph dev did not start:\n{server.log()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server with all its child processes."""
    for request in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, request)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    process.wait()

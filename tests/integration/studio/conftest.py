"""One LangGraph server for all Studio tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langgraph_sdk import get_sync_client

from tests.support.langgraph_server import Client, LangGraphServer, langgraph_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LangGraphServer]:
    with langgraph_server(tmp_path_factory.mktemp("studio")) as running:
        yield running


@pytest.fixture
def client(server: LangGraphServer) -> Iterator[Client]:
    with get_sync_client(url=server.url) as connected:
        yield connected

"""Connections to models are closed with the event loop that opened them, or on request."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from moot import DebateConfig, build_graph
from tests.support.openai_server import OpenAIServer

CONFIG = DebateConfig(turns=2, model="test-model", judge={"enabled": False})


def clients(graph: Any) -> list[Any]:
    """Return the model clients of a graph, for all event loops."""
    models = graph.environment._models.values()
    return [chat for each in models for loop in each._loops.values() for chat in loop.clients.values()]


def connections(chat: Any) -> Any:
    return chat.root_async_client._client


def test_several_event_loops_leave_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        graph = build_graph()
        opened: list[Any] = []

        async def story() -> str:
            out = await graph.ainvoke({"topic": "Trams?"}, context=CONFIG)
            opened.extend(map(connections, clients(graph)))
            assert not any(each.is_closed for each in opened[-1:])
            return str(out["status"])

        assert [asyncio.run(story()) for _ in range(3)] == ["done"] * 3
        assert len(opened) == 3
        assert all(each.is_closed for each in opened)
        assert clients(graph) == []
        gc.collect()


def test_closing_a_graph_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        graph = build_graph()
        graph.invoke({"topic": "Trams?"}, context=CONFIG)
        (kept,) = map(connections, clients(graph))
        graph.close()
        assert kept.is_closed

        async def story() -> None:
            await graph.ainvoke({"topic": "Trams?"}, context=CONFIG)
            (own,) = map(connections, clients(graph))
            await graph.aclose()
            assert own.is_closed

        asyncio.run(story())

"""Model calls to a local server, with recorded waits between retries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph

from moot.calls.model_calls import ModelCall, Reply, StreamAs, WireMessage
from moot.config.model_settings import ModelSettings
from moot.models.failures import Backoff
from moot.models.model_call import complete
from moot.models.registry import Models
from tests.support.openai_server import OpenAIServer

PROMPT: tuple[WireMessage, ...] = (
    {"role": "system", "content": "Rules."},
    {"role": "user", "name": "Ada Lovelace", "content": "Trams are cheap."},
    {"role": "user", "name": "ben", "content": "They are slow."},
)
CALL = ModelCall("turn", "test-model", PROMPT, 200)
TURN_CALL = replace(CALL, stream_as=StreamAs("m000007", "ada"))


class ModelBench:
    """Models that call a local server, and the waits that they requested."""

    def __init__(self, server: OpenAIServer, **settings: Any) -> None:
        self.server = server
        self.waits: list[float] = []
        model_settings = ModelSettings(base_url=server.base_url, **settings)
        self.models = Models(
            settings={name: model_settings for name in ("test-model", "spare-model", "o3-mini")},
            backoff=Backoff(sleep=self._sleep, random_value=lambda: 1.0),
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def ask(self, *calls: ModelCall) -> list[Reply]:
        """Make the calls in order and return their replies."""
        return asyncio.run(self._ask(calls))

    async def _ask(self, calls: Sequence[ModelCall]) -> list[Reply]:
        try:
            return [await complete(call, self.models) for call in calls]
        finally:
            await self.models.aclose()

    def stream(self, call: ModelCall, *silent: ModelCall) -> tuple[Reply, list[AIMessageChunk]]:
        """Make calls in a LangGraph node; return the first reply and the chunks that the graph streams."""
        replies: list[Reply] = []

        async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
            for one in (call, *silent):
                replies.append(await complete(one, self.models, config=config))
            return {"messages": [AIMessage(replies[0].text, id="m000007", name="ada")]}

        async def run() -> list[AIMessageChunk]:
            graph = StateGraph(MessagesState)
            graph.add_node("turn", node)
            graph.add_edge(START, "turn")
            graph.add_edge("turn", END)
            stream = graph.compile().astream({"messages": []}, stream_mode="messages")
            chunks = [part[0] async for part in stream if isinstance(part, tuple)]
            await self.models.aclose()
            return chunks

        chunks = asyncio.run(run())
        return replies[0], chunks

"""What a LangGraph server of Moot puts in front of its routes, as `http.app` of `langgraph.json`, and hears.

The server itself answers whoever reaches its port: every page that a browser has open, under any name that
leads to this machine. Here only this machine is let in, from Studio's pages and the server's own; others need
the operator's word. At `/moot` is the live page; at `/mcp`, in place of LangGraph's, the tools of `moot mcp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph_api.config import CORS_CONFIG
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from typing_extensions import override

from moot.graph.api import open_debates
from moot.graph.debate import graph, operators_config
from moot.graph.debate_host import DebateHost
from moot.graph.json_schemas import graph_schemas
from moot.graph.live.doorkeeper import Doorkeeper
from moot.graph.live.page_routes import LivePage
from moot.graph.mcp_server import AgentsDoor
from moot.graph.server_records import known_to_server
from moot.state.entries import seq_of

T = TypeVar("T")

# As the server starts: its loop must not wait for files.
operators_config()
graph.schemas.update(graph_schemas(graph))
_page, _agents = LivePage(open_debates, operators_config), AgentsDoor()


class Overhearing(AsyncCallbackHandler):
    """Has a host hear speeches as they are streamed in the server's runs, for whoever looks at the page.

    By its `tap_` methods LangChain knows it as one for whom models are to stream. Runs may be in threads
    other than the host's: this is made in that.
    """

    def __init__(self, host: DebateHost) -> None:
        """Listen for a host."""
        self._host, self._loop = host, asyncio.get_running_loop()
        self._runs: dict[UUID, tuple[str, str]] = {}
        """Debate, and the entry that is being said, of each call under way."""

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
        """Leave it as it is."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:
        """Leave it as it is."""
        return output

    @override
    async def on_chat_model_start(self, *_: object, run_id: UUID, **told: object) -> None:
        tags, metadata = told.get("tags"), told.get("metadata")
        heard = not (isinstance(tags, list) and TAG_NOSTREAM in tags)
        if heard and isinstance(metadata, dict) and metadata.get("thread_id"):
            self._runs[run_id] = (str(metadata["thread_id"]), "")

    @override
    async def on_llm_new_token(self, *_: object, run_id: UUID, **told: object) -> None:
        message = getattr(told.get("chunk"), "message", None)
        if run_id in self._runs and message and message.text and seq_of(message.id or "") is not None:
            debate = self._runs[run_id][0]
            self._runs[run_id] = (debate, message.id)
            event = {"event": "token", "id": message.id, "speaker": message.name, "text": message.text}
            self._loop.call_soon_threadsafe(self._host.hear, debate, event)

    @override
    async def on_llm_end(self, *_: object, run_id: UUID, **told: object) -> None:
        if said := self._runs.pop(run_id, None):
            self._loop.call_soon_threadsafe(self._host.forget_speech, *said)

    @override
    async def on_llm_error(self, *_: object, run_id: UUID, **told: object) -> None:
        await self.on_llm_end(run_id=run_id)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    host = await _page.open()
    graph.config = merge_configs(graph.config, {"callbacks": [Overhearing(host)]})
    async with _page.lifespan(app), _agents.open(host), known_to_server():
        yield


app = Starlette(
    routes=[Route("/mcp", _agents), *_page.routes()],
    lifespan=_lifespan,
    middleware=[Middleware(Doorkeeper, pages=(CORS_CONFIG or {}).get("allow_origins", []))],
)
"""Routes of its own and LangGraph's stand behind the doorkeeper."""

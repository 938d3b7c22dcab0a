"""What a LangGraph server of Moot puts in front of its routes, as `http.app` of `langgraph.json`.

The server itself answers whoever reaches its port: every page that a browser has open, under any name that
leads to this machine. Here only this machine is let in, from Studio's pages and the server's own; others need
the operator's word. At `/moot` is the live page; at `/mcp`, in place of LangGraph's, the tools of `moot mcp`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langchain_core.runnables.config import merge_configs
from langgraph_api.config import CORS_CONFIG
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from moot.graph.api import open_debates
from moot.graph.debate import graph, operators_config
from moot.graph.json_schemas import context_schema
from moot.graph.live.doorkeeper import Doorkeeper
from moot.graph.live.overhearing import Overhearing
from moot.graph.live.page_routes import LivePage
from moot.graph.mcp_server import AgentsDoor
from moot.graph.server_records import known_to_server

context_schema(), operators_config()  # as the server starts: its loop must not wait for files
graph.get_input_jsonschema(), graph.get_output_jsonschema()
_page = LivePage(open_debates, operators_config)


_agents = AgentsDoor()


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

"""Moot's part of a LangGraph server, with authentication, the live page and MCP tools.

`langgraph.json` names the application as `http.app`. The LangGraph server alone would answer every page of
every browser on this machine. The middleware here allows Studio's pages and the server's own, and asks for
the token. `/moot` is the live page. `/mcp` has the tools of `moot mcp` instead of LangGraph's.
"""

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any, TypeVar, cast

import httpx
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM
from langgraph_api.config import CORS_CONFIG
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from pydantic import Field
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override

from moot.api import Event, open_debates
from moot.config.stages import operators_config
from moot.graph.json_schemas import field_docs, graph_schemas
from moot.graph.served import SERVED
from moot.models.attempt import RETRACTS
from moot.plugins.web.auth_middleware import AuthMiddleware, error_response
from moot.plugins.web.debate_host import DebateHost
from moot.plugins.web.mcp_server import McpEndpoint
from moot.plugins.web.page_routes import LivePage
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, MootError
from moot.state.langgraph_internals import EveryKey
from moot.state.reducers import ENTRY
from moot.state.settings import check_database, database_exists, names_in
from moot.storage.catalogue import DebateRow
from moot.storage.records import open_records

T = TypeVar("T")

A2A_EVENTS = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
"""Name of each event of an A2A stream in version 1.0 of the protocol, by its kind in version 0.3."""

# Read at import, because the server's event loop must not wait for files.
operators_config()
for _graph in SERVED.values():
    _graph.schemas.update(graph_schemas(_graph))
    _graph.schemas["context"]["properties"] = EveryKey(_graph.schemas["context"]["properties"])
    # The server makes the state's schema from the types of the channels.
    for _name, _text in field_docs(cast(type, _graph.builder.state_schema)).items():
        _channel = cast(Any, _graph.channels[_name])
        _channel.typ = Annotated[_channel.typ, Field(description=_text)]
_page, _agents = LivePage(open_debates, operators_config), McpEndpoint()


def allowed_origins() -> list[str]:
    """Return the origins of all web pages that may use the server.

    LangGraph's CORS middleware reads the same list when the server starts, so the list is extended in place.

    Raises:
        ConfigError: `MOOT_ALLOW_ORIGINS` contains something other than an origin.
    """
    origins: list[str] = (CORS_CONFIG or {}).get("allow_origins") or []
    for origin in names_in("MOOT_ALLOW_ORIGINS"):
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d+)?", origin):
            raise ConfigError(
                f"MOOT_ALLOW_ORIGINS: {origin!r} is not an origin: give a scheme, host and port, such "
                "as http://localhost:3000"
            )
        if origin not in origins:
            origins.append(origin)
    return origins


class StreamListener(AsyncCallbackHandler):
    """Callback handler that forwards the server's streamed tokens to the live page.

    LangChain streams a model's reply if a handler has the `tap_` methods. Create the handler in the host's
    event loop, because runs may use other threads.
    """

    def __init__(self, host: DebateHost) -> None:
        """Create a listener that forwards tokens to a debate host."""
        self._host, self._loop = host, asyncio.get_running_loop()
        self._runs: dict[uuid.UUID, tuple[str, str]] = {}
        """Debate id and entry id of each running call."""

    def tap_output_aiter(self, run_id: uuid.UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
        """Return the stream unchanged; LangChain requires only that this method exists."""
        return output

    def tap_output_iter(self, run_id: uuid.UUID, output: Iterator[T]) -> Iterator[T]:
        """Return the stream unchanged; LangChain requires only that this method exists."""
        return output

    @override
    async def on_chat_model_start(self, *_: object, run_id: uuid.UUID, **details: object) -> None:
        tags, metadata = details.get("tags"), details.get("metadata")
        streamed = not (isinstance(tags, list) and TAG_NOSTREAM in tags)
        if streamed and isinstance(metadata, dict) and metadata.get("thread_id") and metadata.get(ENTRY):
            self._runs[run_id] = (str(metadata["thread_id"]), metadata[ENTRY])

    @override
    async def on_llm_new_token(self, *_: object, run_id: uuid.UUID, **details: object) -> None:
        message = getattr(details.get("chunk"), "message", None)
        replaces = message is not None and bool(message.response_metadata.get(RETRACTS))
        if run_id in self._runs and message and (message.text or replaces):
            debate, entry = self._runs[run_id]
            event: Event = {
                "event": "token",
                "id": entry,
                "speaker": message.name,
                "text": message.text,
                "replaces": replaces,
            }
            self._loop.call_soon_threadsafe(self._host.publish, debate, event)

    @override
    async def on_llm_end(self, *_: object, run_id: uuid.UUID, **details: object) -> None:
        if message := self._runs.pop(run_id, None):
            self._loop.call_soon_threadsafe(self._host.forget_message, *message)

    @override
    async def on_llm_error(self, *_: object, run_id: uuid.UUID, **details: object) -> None:
        await self.on_llm_end(run_id=run_id)


class A2AStreams:
    """ASGI middleware that wraps the events of an A2A stream as version 1.0 of the protocol does.

    `langgraph-api` 0.16.7 wraps only the first event, and sends the others in the form of version 0.3. The
    official clients read them as empty.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and change the stream with which LangGraph answers it."""
        wraps = False

        def wrap(line: bytes) -> bytes:
            nonlocal wraps
            try:
                event = json.loads(line.removeprefix(b"data: "))
                result = event["result"]
                kind = A2A_EVENTS.get(result.get("kind"))
            except (AttributeError, KeyError, TypeError, ValueError):  # not an event with a result
                return line
            wraps = wraps or "task" in result
            if not wraps or kind is None:
                return line
            return b"data: " + json.dumps(event | {"result": {kind: result}}).encode()

        async def send_wrapped(message: Message) -> None:
            if message["type"] == "http.response.body":
                message["body"] = b"\r\n".join(map(wrap, message.get("body", b"").split(b"\r\n")))
            await send(message)

        is_a2a = scope["type"] == "http" and scope["path"].startswith("/a2a/")
        await self._app(scope, receive, send_wrapped if is_a2a else send)


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    host = await _page.open()
    for served in SERVED.values():
        served.config = merge_configs(served.config, {"callbacks": [StreamListener(host)]})
    async with _page.lifespan(app), _agents.open(host), keep_debates_registered():
        yield


app = Starlette(
    routes=[Route("/mcp", _agents), *_page.routes()],
    lifespan=_lifespan,
    exception_handlers={MootError: error_response},
    middleware=[Middleware(AuthMiddleware, pages=allowed_origins()), Middleware(A2AStreams)],
)
"""Web application that adds Moot's routes to a LangGraph server. Its middleware also protects LangGraph's
routes."""

GRAPH = "debate"
"""Name of the general debate graph in `langgraph.json`. The graph runs debates of all protocols."""
EVERY_S = 3.0
"""Number of seconds between checks for debates that are not yet registered as LangGraph threads. Other
processes may have started them."""
TITLE_CHARS = 80
"""Maximum number of characters in the title of a LangGraph thread."""

ASSISTANTS: Mapping[str, tuple[str, JsonObject]] = {
    "quick": ("Four turns and a verdict.", {"turns": 4}),
    "long-form": (
        "Sixty turns. A moderator chooses the next speaker.",
        {"protocol": "moderated", "turns": 60},
    ),
}
"""Predefined LangGraph assistants for the `debate` graph, keyed by name.

The graphs `council` and `dialogue` have an assistant of their own name."""


@contextlib.asynccontextmanager
async def keep_debates_registered() -> AsyncIterator[None]:
    """Register all debates as LangGraph threads during an `async with` block.

    New debates are registered as well.
    """
    registering = asyncio.create_task(_keep_registering(get_client(url=None)))
    try:
        yield
    finally:
        registering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await registering


async def _keep_registering(client: LangGraphClient) -> None:
    ready, known = False, set[str]()
    while True:
        with contextlib.suppress(httpx.HTTPError):  # the server is starting or busy, so try again later
            if not ready:
                await _make_assistants(client)
                ready = True
            for row in await asyncio.to_thread(_rows):
                if row.id not in known:
                    await _register(client, row)
                    known.add(row.id)
        await asyncio.sleep(EVERY_S)


async def _make_assistants(client: LangGraphClient) -> None:
    for name, (description, context) in ASSISTANTS.items():
        await client.assistants.create(
            GRAPH,
            context=context,
            assistant_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"moot:{name}")),
            if_exists="do_nothing",
            name=name,
            description=description,
        )


def _rows() -> list[DebateRow]:
    url = check_database()
    if not database_exists(url):
        return []
    with contextlib.closing(open_records(url)) as records:
        return records.catalogue.rows()


async def _register(client: LangGraphClient, row: DebateRow) -> None:
    """Register a debate as a LangGraph thread, with the topic as its title."""
    title = row.topic if len(row.topic) <= TITLE_CHARS else f"{row.topic[:TITLE_CHARS].rsplit(' ', 1)[0]} …"
    thread_metadata = {"graph_id": GRAPH, "title": title, "name": row.name}
    thread = await client.threads.create(thread_id=row.id, if_exists="do_nothing", metadata=thread_metadata)
    if (thread.get("metadata") or {}).get("title") != title:  # a client of the server started it
        await client.threads.update(row.id, metadata={"title": title})

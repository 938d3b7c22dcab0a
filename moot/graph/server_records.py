"""What a LangGraph server is told as it runs: assistants that are ready, and the debates that are stored.

It shows those threads that it was told of, wherever their checkpoints lie.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from moot.state.catalogue import DebateRow
from moot.state.entries import JsonObject
from moot.state.records import open_records
from moot.state.settings import check_database, database_exists

GRAPH = "debate"
EVERY_S = 3.0
"""Between looks at the catalogue: debates that the command line starts meanwhile appear too."""
TITLE_CHARS = 80

ASSISTANTS: Mapping[str, tuple[str, JsonObject]] = {
    "quick": ("Four turns and a verdict.", {"turns": 4}),
    "long-form": (
        "Sixty turns, led by a moderator who gives the floor.",
        {"protocol": "moderated", "turns": 60},
    ),
    "council": (
        "A design decision: everybody proposes, criticises and refines; a judge writes the solution.",
        {"protocol": "council"},
    ),
    "dialogue": (
        "Personas on one topic, aspect by aspect, with a room for two who part on one claim.",
        {"protocol": "dialogue"},
    ),
}
"""Ready assistants: what each is for, and the configuration that it brings."""


@asynccontextmanager
async def known_to_server() -> AsyncIterator[None]:
    """Tell the server that this runs in, for the length of an `async with` block."""
    telling = asyncio.create_task(_keep_telling(get_client(url=None)))
    try:
        yield
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling


async def _keep_telling(client: LangGraphClient) -> None:
    ready, known = False, set[str]()
    while True:
        with contextlib.suppress(httpx.HTTPError):  # not up yet, or busy: the next look tries again
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
    """Make a debate's thread known, with its topic for a title."""
    title = row.topic if len(row.topic) <= TITLE_CHARS else f"{row.topic[:TITLE_CHARS].rsplit(' ', 1)[0]} …"
    told = {"graph_id": GRAPH, "title": title, "name": row.name}
    thread = await client.threads.create(thread_id=row.id, if_exists="do_nothing", metadata=told)
    if (thread.get("metadata") or {}).get("title") != title:  # begun by a client of the server
        await client.threads.update(row.id, metadata={"title": title})

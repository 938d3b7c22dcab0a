"""The live page on a server of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.routing import Route

from moot.graph.api import DebateConfig, Debates, open_debates
from moot.graph.live.doorkeeper import PAGE, Doorkeeper
from moot.graph.live.page_routes import LivePage


def page_app(debates: Callable[[], Debates], usual: DebateConfig, token: str | None = None) -> Starlette:
    """Return the page as an app, behind a doorkeeper who asks for the token from elsewhere."""
    page = LivePage(debates, lambda: usual)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with page.lifespan(app):
            await page.open()  # a database that cannot be opened is told of before anybody comes
            yield

    return Starlette(
        routes=[Route("/", lambda _: RedirectResponse(PAGE)), *page.routes()],
        lifespan=lifespan,
        middleware=[Middleware(Doorkeeper, token=token)],
    )


def serve_page(database: str, usual: DebateConfig, host: str, port: int, token: str | None) -> None:
    """Serve the page until the process is stopped."""
    app = page_app(lambda: open_debates(database), usual, token)
    uvicorn.run(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=2)

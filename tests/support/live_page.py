"""The live page on loopback, with models that pause in the middle of a message until a test releases them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from moot.api import DebateConfig, Debates, open_debates
from moot.models.offline import ScriptedModel
from moot.plugins.web.http_connections import http_server
from moot.plugins.web.page_routes import page_app

WORDS_BEFORE_PAUSE = 6
"""Number of streamed words before the model pauses."""


class PausedModel(ScriptedModel):
    """A scripted model that streams a few words and then waits for `go`."""

    _go: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def go(self) -> threading.Event:
        return self._go

    async def _astream(self, *arguments: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        number = 0
        async for chunk in super()._astream(*arguments, **options):
            if number >= WORDS_BEFORE_PAUSE:
                await asyncio.to_thread(self._go.wait)
            number += 1
            yield chunk


def open_with_models(database: Path, **models: Any) -> Debates:
    return open_debates(str(database), models=models)


@contextmanager
def serve_in_thread(database: Path, default_config: DebateConfig, **models: Any) -> Iterator[str]:
    """Serve the page in a thread and yield its address."""
    app = page_app(lambda: open_with_models(database, **models), default_config)
    server = http_server(app, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/moot"
    finally:
        server.should_exit = True
        thread.join()

"""The live page on loopback, with models that pause in the middle of a message until a test releases them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from moot.api import DebateConfig, Debates, open_debates
from moot.models.offline import ScriptedModel, recording_config
from moot.plugins.web.http_connections import http_server
from moot.plugins.web.page_routes import page_app
from moot.state.errors import WaitingForPerson

OPERATORS_TOKEN = "launched"  # noqa: S105  # of the tests
"""Token in `?token=` that makes a browser the operator's."""


class PausedModel(ScriptedModel):
    """A scripted model that streams a few words and then waits for `go`."""

    words: int = 6
    """Number of streamed words before the model pauses."""
    pauses_at: str = ""
    """Text of the prompts at which the model pauses."""

    _go: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def go(self) -> threading.Event:
        return self._go

    async def _astream(self, *arguments: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        number = 0
        async for chunk in super()._astream(*arguments, **options):
            if number >= self.words and self.pauses_at in str(arguments):
                await asyncio.to_thread(self._go.wait)
            number += 1
            yield chunk


@dataclass
class DebatePage:
    """Address of a page, and ids of its debates."""

    url: str
    dialogue: str
    """Finished debate with a crux room."""
    asking: str
    """Debate that waits for Ben's reply."""
    model: PausedModel


@contextmanager
def serve_debates(database: Path, **settings: Any) -> Iterator[DebatePage]:
    """Serve a page with a finished dialogue and a debate that waits for a person."""
    with open_with_models(database) as debates:
        dialogue = debates.start(None, DebateConfig.model_validate(recording_config("free-transport")))
        dialogue.run()
        line = [{"name": "Ada"}, {"name": "Ben", "model": "human"}]
        config = DebateConfig.model_validate({"debaters": line, "turns": 2})
        asking = debates.start("Tabs or `spaces`?", config)
        with pytest.raises(WaitingForPerson):
            asking.run()
    model = PausedModel(script=lambda _: "We should measure the cost of it first, and then decide.")
    default = DebateConfig.model_validate({"judge": {"model": "offline"}, **settings})
    with serve_in_thread(database, default, mine=model) as url:
        yield DebatePage(url, dialogue.id, asking.id, model)
        model.go.set()


def open_with_models(database: Path, **models: Any) -> Debates:
    return open_debates(str(database), models=models)


@contextmanager
def serve_in_thread(database: Path, default_config: DebateConfig, **models: Any) -> Iterator[str]:
    """Serve the page in a thread and yield its address."""
    app = page_app(lambda: open_with_models(database, **models), default_config, launch_token=OPERATORS_TOKEN)
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

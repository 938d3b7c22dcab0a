"""Context sizes and slots that servers tell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from moot.config.model_settings import ModelSettings
from moot.models.endpoints import server_facts
from moot.models.registry import Models
from tests.support.provider_servers import OllamaServer


@contextmanager
def llama_cpp(props: Any) -> Iterator[str]:
    """Serve the list of models and the properties of llama.cpp's server."""
    row = {"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 8192, "n_ctx_train": 131072}}
    pages = {"/v1/models": {"data": [row]}, "/props": props}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(pages[self.path]).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize(("concurrency", "settings"), [(None, {"concurrency": 4}), (2, None)])
def test_llama_cpp_tells_the_context_of_a_slot_and_the_number_of_slots(
    concurrency: int | None, settings: Any
) -> None:
    with llama_cpp({"total_slots": 4, "default_generation_settings": {"n_ctx": 2048}}) as url:
        models = Models({"m": ModelSettings(base_url=url, concurrency=concurrency)})
        facts = asyncio.run(server_facts(models, ["m"]))
    assert (facts["m"]["limit"], facts["m"].get("settings")) == (2048, settings)
    assert models.settings_of("m").context_size == 2048


@pytest.mark.parametrize("configured", [None, 16_384])
def test_ollama_gets_the_context_that_the_debate_needs_and_not_the_models_maximum(
    configured: int | None,
) -> None:
    name = "ollama:llama3:8b"
    with OllamaServer(context=131_072) as server:
        settings = ModelSettings(base_url=server.base_url, context_size=configured)
        models = Models({name: settings}, largest_request=9000)
        facts = asyncio.run(server_facts(models, [name]))
    assert facts == {name: {"limit": 131_072}}
    assert models.context_of(name, 500) == (configured or 10_240)


def test_a_small_models_maximum_limits_its_context() -> None:
    name = "ollama:llama3:8b"
    with OllamaServer(context=4096) as server:
        models = Models({name: ModelSettings(base_url=server.base_url)}, largest_request=9000)
        asyncio.run(server_facts(models, [name]))
    assert models.context_of(name, 500) == 4096

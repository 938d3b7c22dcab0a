"""Asks a model once, and leaves nothing open."""

import asyncio

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.models.complete import complete
from moot.nodes.models.registry import Models


def asked(call: ModelCall, models: Models) -> Reply:
    """Return what a call comes to, in an event loop of its own."""

    async def ask() -> Reply:
        try:
            return await complete(call, models)
        finally:
            await models.aclose()

    return asyncio.run(ask())

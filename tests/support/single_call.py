"""One call to a model, which leaves no connection open."""

import asyncio

from moot.calls.effects import ModelCall, Reply
from moot.models.model_call import complete
from moot.models.registry import Models


def call_once(call: ModelCall, models: Models) -> Reply:
    """Return what a call comes to, in an event loop of its own."""

    async def ask() -> Reply:
        try:
            return await complete(call, models)
        finally:
            await models.aclose()

    return asyncio.run(ask())

"""Single model call that leaves no open connection."""

import asyncio

from moot.calls.model_calls import ModelCall, Reply
from moot.models.model_call import complete
from moot.models.registry import Models


def call_once(call: ModelCall, models: Models) -> Reply:
    """Make a call in its own event loop and return the reply."""

    async def ask() -> Reply:
        try:
            return await complete(call, models)
        finally:
            await models.aclose()

    return asyncio.run(ask())

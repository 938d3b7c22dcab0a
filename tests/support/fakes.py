"""An environment whose model calls are answered by a plain function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from moot.calls.effects import ModelCall, Reply
from moot.models.registry import Models
from moot.runtime.environment import Environment

NOW = "2026-01-01T00:00:00.000+00:00"

OPINION = {"reasoning": "weighed", "winner": "tie", "confidence": 50, "scores": []}


def answer(call: ModelCall) -> Reply:
    """Answer a call deterministically: words of a digest, or the schema's plainest instance."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20}
    if call.schema is not None:
        return Reply(data=dict(OPINION), model=call.model, usage=usage)
    return Reply(text=f"I say {call.digest[:8]}, because 40 % of cases fail.", model=call.model, usage=usage)


@dataclass
class FakeModel:
    """Answers by a function and keeps the calls it was asked."""

    reply: Callable[[ModelCall], Reply] = answer
    calls: list[ModelCall] = field(default_factory=list)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Record the call and answer it."""
        self.calls.append(call)
        return self.reply(call)

    def environment(self) -> Environment:
        """Return an environment with this model and a clock that stands still."""
        return Environment(complete=self.complete, clock=lambda: NOW)

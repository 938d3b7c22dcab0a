"""Environment in which a function answers the model calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from moot.calls.model_calls import ModelCall, Reply
from moot.models.registry import Models
from moot.runtime.environment import Environment

NOW = "2026-01-01T00:00:00.000+00:00"

JUDGE_REPLY = {"reasoning": "weighed", "winner": "tie", "confidence": 50, "scores": []}


def fake_reply(call: ModelCall) -> Reply:
    """Return a reply that depends only on the call: a sentence, or a judge's reply if there is a schema."""
    usage: Any = {"prompt_tokens": call.prompt_tokens, "completion_tokens": 20}
    if call.schema is not None:
        return Reply(data=dict(JUDGE_REPLY), model=call.model, usage=usage)
    return Reply(text=f"I say {call.digest[:8]}, because 40 % of cases fail.", model=call.model, usage=usage)


@dataclass
class FakeModel:
    """Model that replies with a function and records its calls."""

    reply: Callable[[ModelCall], Reply] = fake_reply
    calls: list[ModelCall] = field(default_factory=list)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Record the call and return its reply."""
        self.calls.append(call)
        return self.reply(call)

    def environment(self) -> Environment:
        """Return an environment with this model and a fixed time."""
        return Environment(complete=self.complete, clock=lambda: NOW)

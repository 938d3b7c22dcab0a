"""Whether the models of a configuration can be used as it says: one small call to each, which is paid."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import httpx
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import BaseModel

from moot.graph.checkup import Finding
from moot.nodes.calls import ModelCall, Reply, SpeakAs, WireMessage
from moot.nodes.driving.environment import Environment
from moot.nodes.models.complete import complete
from moot.nodes.models.offered import offered_rows
from moot.nodes.models.registry import Models, access_to
from moot.nodes.models.schemas import Method
from moot.nodes.prompts.fitting import fit_messages
from moot.nodes.prompts.request import Voice, make_call
from moot.nodes.text.tokens import counter
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, reaches
from moot.state.entries import tokens_of
from moot.state.errors import UserError

ROOM = 256
"""Tokens for the answer, beside what a model is given to think: more than any needs for one word as JSON."""
_SIZES = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
"""What servers call the context's size in their list of models: OpenRouter, vLLM, Groq, Mistral, others."""


class _Word(BaseModel):
    word: Literal["ready"]


def _call(name: str) -> ModelCall:
    """Return the smallest call that is structured and streams."""
    asked: WireMessage = {
        "role": "user",
        "content": 'Answer with the word "ready", as JSON: {"word": "ready"}',
    }
    view, voice = fit_messages([asked], ROOM, counter()), Voice(name, None, (), None, ROOM)
    return make_call(voice, "evaluate", view, schema=_Word, speak_as=SpeakAs("m000000", "doctor"), hints={})


def callable_models(config: DebateConfig) -> list[str]:
    """Return the models of a configuration whose calls leave this process."""
    return [reach.value for reach in reaches(config) if reach.kind == "model"]


def look_at_models(config: DebateConfig) -> list[Finding]:
    """Call each model of an operator's configuration once: does it answer, stream, keep to a schema?"""
    environment = Environment()
    models = replace(environment.models_of(Claim.of_operator(config)), retry_for=0.0)

    async def look() -> list[Finding]:
        try:
            return [await _looked(name, models) for name in callable_models(config)]
        finally:
            await models.aclose()

    return asyncio.run(look())


async def _looked(name: str, models: Models) -> Finding:
    configured = models.settings_of(name)
    try:
        reply, pieces = await _asked(_call(name), models)
    except UserError as error:
        return Finding(name, str(error), ok=False)
    if reply.error:
        return Finding(name, reply.error, ok=False)
    offered = await _size(name, models)
    wrong = []
    if configured.stream and pieces < 2:
        wrong.append("does not stream: its words will come at once")
    method: Method = models.method_of(name)
    if method != configured.structured_output:
        wrong.append(
            f"takes no {configured.structured_output}: set models.{name}.structured_output to {method}"
        )
    if offered and (configured.context_size or 0) > offered:
        wrong.append(f"takes {offered:,} tokens, not models.{name}.context_size")
    size = offered or configured.context_size
    cost = reply.usage.get("cost_usd")
    facts = [
        f"answers in {reply.latency_s:.1f} s",
        f"structured by {method}",
        f"context {size:,} tokens" if size else "context size unknown",
        f"{tokens_of(reply.usage)} tokens" + ("" if cost is None else f", US$ {cost:.6f}"),
    ]
    return Finding(name, "; ".join([*wrong, *facts]), ok=not wrong)


async def _asked(call: ModelCall, models: Models) -> tuple[Reply, int]:
    """Return a call's reply and in how many pieces it came."""
    replies: list[Reply] = []

    async def ask(_: object, config: RunnableConfig) -> None:
        replies.append(await complete(call, models, config=config))

    events = RunnableLambda(ask).astream_events(None, version="v2")
    pieces = [each async for each in events if each["event"] == "on_chat_model_stream"]
    return replies[0], sum(bool(each["data"]["chunk"].text) for each in pieces)


async def _size(name: str, models: Models) -> int:
    """Return the size of a model's context that its endpoint tells, tokens; 0 where it does not."""
    if not models.speaks_openai(name):
        return 0
    try:
        listed = await offered_rows(access_to(name, models.settings_of(name)))
    except (httpx.HTTPError, ValueError, UserError):
        return 0
    told = [each.get(key) for each in listed if each["id"] == name for key in _SIZES]
    return next((size for size in told if isinstance(size, int) and size > 0), 0)

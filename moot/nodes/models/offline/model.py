"""The built-in model: no network, no key, the same words for the same seed and prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from moot.nodes.models.local import LocalModel
from moot.nodes.models.offline.prose import compose
from moot.nodes.models.offline.reading import read
from moot.nodes.models.offline.structured import fill
from moot.nodes.models.offline.tool_use import tool_call

CHARS_PER_TOKEN = 4
"""For usage where the caller did not count: counting a long prompt would be most of the work."""


class OfflineModel(LocalModel):
    """Argues from the topic's own words, without knowing anything.

    Deterministic in (seed, prompt). It fits the phase and the stance, answers what was said last, and fills
    any JSON Schema. `hints` (phase, speaker, topic, stance, targets, debaters) sharpen it; the prompt alone
    will do.
    Time is linear in the prompt's length.
    """

    seed: int = 0
    """Seed of calls that bring none of their own."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def respond(self, messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
        """Return the answer to a prompt: text, a tool's call, or JSON where a `json_schema` is given."""
        seed = kwargs.get("seed")
        hints: Mapping[str, Any] = kwargs.get("hints") or {}
        reading = read(messages, hints, self.seed if seed is None else seed)
        schema = kwargs.get("json_schema")
        called = tool_call(messages, kwargs.get("tools") or (), reading) if schema is None else None
        if called is not None:
            usage = _usage(messages, str(called["args"]), kwargs.get("prompt_tokens") or 0)
            return AIMessage("", tool_calls=[called], usage_metadata=usage)
        if schema is not None:
            text = json.dumps(fill(schema, reading), ensure_ascii=False)
        else:
            text = _within(compose(reading), kwargs.get("max_tokens"))
        return AIMessage(text, usage_metadata=_usage(messages, text, kwargs.get("prompt_tokens") or 0))


def _within(text: str, max_tokens: int | None) -> str:
    """Shorten a text to a limit, at the end of a sentence or at least of a word."""
    if max_tokens is None:
        return text
    # A word of English costs less than a token and a half; other scripts cost up to two tokens a character.
    wide = sum(char > "\u024f" for char in text)
    chars = max_tokens * 3 if 10 * wide < len(text) else max_tokens // 2
    if len(text) <= chars:
        return text
    cut = text[: max(chars, 1)]
    stop = max(cut.rfind(mark) for mark in (". ", "? ", ".\n", "?\n"))
    return cut[: stop + 1] if stop > len(cut) // 3 else cut.rsplit(" ", 1)[0]


def _usage(messages: list[BaseMessage], text: str, prompt_tokens: int) -> UsageMetadata:
    sent = prompt_tokens or sum(len(message.content) for message in messages) // CHARS_PER_TOKEN
    answered = max(1, len(text) // CHARS_PER_TOKEN)
    return UsageMetadata(input_tokens=sent, output_tokens=answered, total_tokens=sent + answered)

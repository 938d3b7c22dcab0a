"""What calls use: tokens as the provider reports them, else as we count them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from langchain_core.messages import AIMessage

from moot.nodes.calls import ModelCall, WireMessage
from moot.nodes.text.tokens import counter, encoding_for, prompt_tokens
from moot.state.entries import EntryUsage, JsonObject

MAX_TOKENS = 10**8
"""Tokens of one call: ten times the longest context that is on offer."""
UNREADABLE = -1
"""Stands for a count that is no whole number."""


def readable_usage(report: object) -> JsonObject:
    """Return a provider's report with whole numbers alone, `{}` where it is none."""
    if not isinstance(report, Mapping):
        return {}
    counts = {key: _whole(report.get(key) or 0) for key in ("prompt_tokens", "completion_tokens")}
    details: JsonObject = {
        key: {name: _whole(count) for name, count in value.items() if count is not None}
        for key, value in report.items()
        if key.endswith("_tokens_details") and isinstance(value, Mapping)
    }
    return {**counts, **details, "total_tokens": sum(counts.values())}


def _whole(count: object) -> int:
    return count if isinstance(count, int) and 0 <= count <= MAX_TOKENS else UNREADABLE


def reported(message: AIMessage) -> EntryUsage | None:
    """Return the provider's report, `None` where it gave none or one that cannot be."""
    usage = message.usage_metadata
    if not usage or not usage["input_tokens"] or is_absurd(message):
        return None
    tokens: EntryUsage = {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
    }
    thought = usage.get("output_token_details", {}).get("reasoning") or 0
    if 0 < thought <= usage["output_tokens"]:
        tokens["reasoning_tokens"] = thought
    cached = usage.get("input_token_details", {}).get("cache_read") or 0
    if 0 < cached <= usage["input_tokens"]:
        tokens["cached_tokens"] = cached
    return tokens


def is_absurd(message: AIMessage) -> bool:
    """Return whether a provider reported what no call can have used."""
    usage = message.usage_metadata
    return usage is not None and not (
        0 <= usage["input_tokens"] <= MAX_TOKENS and 0 <= usage["output_tokens"] <= MAX_TOKENS
    )


def counted(
    call: ModelCall,
    sent: Iterable[WireMessage],
    message: AIMessage,
    thoughts: str,
    encoding: str | None = None,
) -> EntryUsage:
    """Count an exchange exactly, for providers that report nothing; thoughts are part of the answer."""
    count = counter(encoding or encoding_for(call.model))
    known = call.prompt_tokens if sent is call.messages else 0
    arguments = [json.dumps(tool["args"], ensure_ascii=False) for tool in message.tool_calls]
    tokens: EntryUsage = {
        "prompt_tokens": known or prompt_tokens(sent, count),
        "completion_tokens": sum(map(count, (message.text, thoughts, *arguments))),
    }
    if thoughts:
        tokens["reasoning_tokens"] = count(thoughts)
    if is_absurd(message):
        tokens["recounted"] = 1
    return tokens

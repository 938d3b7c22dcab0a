"""What calls use, as the provider reports it, else as we count it; and what that costs.

Prices are those configured, else those of the lists of `genai-prices`, imported when asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache

from langchain_core.messages import AIMessage

from moot.nodes.calls import ModelCall, WireMessage
from moot.nodes.text.tokens import counter, encoding_for, prompt_tokens
from moot.state.config.model_settings import ModelSettings, bare_name, provider_of
from moot.state.entries import EntryUsage, JsonObject

MAX_TOKENS = 10**8
"""Tokens of one call: ten times the longest context that is on offer."""
UNREADABLE = -1
"""Stands for a count that is no whole number."""
_LISTED = {
    "azure_openai": "azure",
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "google_genai": "google",
    "google_vertexai": "google",
    "mistralai": "mistral",
    "xai": "x-ai",
}
"""Providers that the lists call otherwise than LangChain does."""


def readable_usage(report: object) -> JsonObject:
    """Return a provider's report with whole numbers alone, `{}` where it is none."""
    if not isinstance(report, Mapping):
        return {}
    counts = {key: _readable_count(report.get(key) or 0) for key in ("prompt_tokens", "completion_tokens")}
    details: JsonObject = {
        key: {name: _readable_count(count) for name, count in value.items() if count is not None}
        for key, value in report.items()
        if key.endswith("_tokens_details") and isinstance(value, Mapping)
    }
    return {**counts, **details, "total_tokens": sum(counts.values())}


def _readable_count(count: object) -> int:
    return count if isinstance(count, int) and 0 <= count <= MAX_TOKENS else UNREADABLE


def reported_usage(message: AIMessage) -> EntryUsage | None:
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


def counted_usage(
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


def configured_price(settings: ModelSettings, tokens: EntryUsage) -> float | None:
    """Return the price of one call in US$ by what is configured, `None` where that does not say."""
    price_in, price_out = settings.input_usd_per_million, settings.output_usd_per_million
    if price_in is None or price_out is None:
        return None
    price_cached = settings.cached_usd_per_million
    cached = tokens.get("cached_tokens", 0)
    fresh = tokens["prompt_tokens"] - cached
    micro_usd = (
        fresh * price_in
        + cached * (price_in if price_cached is None else price_cached)
        + tokens["completion_tokens"] * price_out
    )
    return micro_usd / 1e6


def list_price(name: str, base_url: str, tokens: EntryUsage) -> float | None:
    """Return the list price of one call in US$, `None` where nobody lists this model at this endpoint."""
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=tokens["prompt_tokens"],
        cache_read_tokens=tokens.get("cached_tokens", 0),
        output_tokens=tokens["completion_tokens"],
    )
    provider = _LISTED.get(provider_of(name), provider_of(name))
    try:
        if base_url:
            return float(calc_price(usage, bare_name(name), provider_api_url=base_url).total_price)
        return float(calc_price(usage, bare_name(name), provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


@lru_cache(maxsize=1)
def lists_words() -> str:
    """Return which lists count, with the date of the last change in them that is in force."""
    from datetime import UTC, datetime

    from genai_prices import __version__
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import ConditionalPrice, StartDateConstraint

    today = datetime.now(UTC).date()
    begins = [
        price.constraint.start_date
        for provider in get_snapshot().providers
        for model in provider.models
        for price in (model.prices if isinstance(model.prices, list) else [])
        if isinstance(price, ConditionalPrice) and isinstance(price.constraint, StartDateConstraint)
    ]
    latest = max(day for day in begins if day <= today)
    return f"lists of genai-prices {__version__}, of {latest}"

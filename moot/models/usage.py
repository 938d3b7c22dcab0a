"""Token usage and prices of model calls.

Usage is the provider's report, or Moot's own count if there is no report. Prices come from the configuration,
or from the price lists of `genai-prices`, which is imported on first use.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from langchain_core.messages import AIMessage

from moot.calls.model_calls import ModelCall, WireMessage
from moot.config.model_settings import ModelSettings, bare_name, provider_of
from moot.state.entries import EntryUsage, JsonObject
from moot.text.tokens import counter, encoding_for, prompt_tokens

MAX_TOKENS = 10**7
"""Highest plausible token count for one call. It is the largest context window of any published model, that
of Llama 4 Scout."""
UNREADABLE = -1
"""Value that replaces an invalid token count. A token count is invalid if it is negative, too large or not a
number."""
_PRICE_LIST_NAMES = {
    "azure_openai": "azure",
    "bedrock": "aws",
    "bedrock_converse": "aws",
    "google_genai": "google",
    "google_vertexai": "google",
    "mistralai": "mistral",
    "xai": "x-ai",
}
"""Names of providers in `genai-prices`, keyed by LangChain's names. Names that are the same in both are left
out."""


def readable_usage(report: object) -> JsonObject:
    """Return the integers in a provider's usage report, or `{}` if the report is not a mapping."""
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
    if isinstance(count, str) and count.isdecimal() and len(count) < 12:  # some servers send texts
        count = int(count)
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    return count if isinstance(count, int) and 0 <= count <= MAX_TOKENS else UNREADABLE


def reported_usage(message: AIMessage) -> EntryUsage | None:
    """Return the token usage that the provider reported, or `None` if it is missing or implausible."""
    usage = message.usage_metadata
    if not usage or not usage["input_tokens"] or is_implausible(message):
        return None
    tokens: EntryUsage = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    thought = usage.get("output_token_details", {}).get("reasoning") or 0
    if 0 < thought <= usage["output_tokens"]:
        tokens["reasoning_tokens"] = thought
    cached = usage.get("input_token_details", {}).get("cache_read") or 0
    if 0 < cached <= usage["input_tokens"]:
        tokens["cached_tokens"] = cached
    return tokens


def is_implausible(message: AIMessage) -> bool:
    """Return True if a reported token count is negative or above `MAX_TOKENS`."""
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
    """Count the tokens of a request and its reply, with its reasoning, for implausible or missing usage."""
    count = counter(encoding or encoding_for(call.model))
    known = call.prompt_tokens if sent is call.messages else 0
    arguments = [json.dumps(tool["args"], ensure_ascii=False) for tool in message.tool_calls]
    tokens: EntryUsage = {
        "prompt_tokens": known or prompt_tokens(sent, count),
        "completion_tokens": sum(map(count, (message.text, thoughts, *arguments))),
    }
    if thoughts:
        tokens["reasoning_tokens"] = count(thoughts)
    if is_implausible(message):
        tokens["recounted"] = 1
    return tokens


def configured_price(settings: ModelSettings, tokens: EntryUsage) -> float | None:
    """Return the cost of one call in US dollars, or `None` if no prices are configured."""
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
    """Return a call's cost in US dollars at list prices, or `None` if the model is not listed."""
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=tokens["prompt_tokens"],
        cache_read_tokens=tokens.get("cached_tokens", 0),
        output_tokens=tokens["completion_tokens"],
    )
    provider = _PRICE_LIST_NAMES.get(provider_of(name), provider_of(name))
    try:
        if base_url:
            return float(calc_price(usage, bare_name(name), provider_api_url=base_url).total_price)
        return float(calc_price(usage, bare_name(name), provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


@lru_cache(maxsize=1)
def price_list_text() -> str:
    """Describe the version of the price lists and the date of their latest change."""
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

"""What calls cost: by the prices configured, else by the lists of `genai-prices`, imported when asked."""

from functools import lru_cache

from moot.state.config.model_settings import ModelSettings, bare_name, provider_of
from moot.state.entries import EntryUsage

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

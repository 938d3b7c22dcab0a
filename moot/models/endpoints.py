"""Rate limits and circuit breaker of model endpoints, shared by all processes that use a database."""

import asyncio
import difflib
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from langgraph.config import get_stream_writer

from moot.calls.concurrency import shield
from moot.config import model_settings
from moot.models.failures import Failure
from moot.models.http import httpx
from moot.models.registry import OPENAI_URL, Access, Models, access_to
from moot.state.entries import JsonObject, ModelFacts, clean_text
from moot.state.errors import InputError, UserError, advise
from moot.state.settings import redact_urls, variable
from moot.storage.leases import Lease
from moot.storage.rate_limiter import RateLimiter

SLOT_S = 0.1
"""Number of seconds between checks for a free slot at an endpoint."""


@asynccontextmanager
async def endpoint_slot(
    models: Models, name: str, tokens: int, *, is_extra: bool = False
) -> AsyncIterator[None]:
    """Wait for a free slot at a model's endpoint, and hold it during the `with` block.

    The outcome of the block is recorded for all processes that use the database.
    With `is_extra`, a failure does not close the endpoint for debaters.

    Raises:
        Failure: the wait is longer than `max_requested_wait_s` of the backoff, or a pause after failures is
            longer than `max_wait_s`.
    """
    rate_limiter = models.rate_limiter
    if rate_limiter is None or model_settings.is_built_in(name):
        yield
        return
    key = rate_limiter_key(models, name)
    slot = await _wait_for_slot(models, name, rate_limiter, tokens)
    try:
        yield
    except Failure as failure:
        if failure.retry_after is not None:
            failure.retry_after = min(failure.retry_after, models.settings_of(name).max_wait_s)
        if failure.status == 429:
            wait = failure.retry_after or models.backoff.wait_s(1)
            await asyncio.to_thread(rate_limiter.record_wait, key, wait)
        # Nothing is learned from an address where nothing answers: each run tries it anew.
        elif failure.is_transient and not (is_extra or failure.unreachable or failure.kind == "loading"):
            await asyncio.to_thread(rate_limiter.record_failure, key)
        raise
    else:
        await asyncio.to_thread(rate_limiter.record_success, key)
    finally:
        if slot:
            await shield(asyncio.to_thread(rate_limiter.release_slot, slot))


async def _wait_for_slot(models: Models, name: str, rate_limiter: RateLimiter, tokens: int) -> Lease | None:
    """Wait until a call is permitted, and return the acquired slot. `None`: slots are unlimited."""
    key, settings, backoff = rate_limiter_key(models, name), models.settings_of(name), models.backoff
    while (wait := await asyncio.to_thread(rate_limiter.wait_s, key, settings.max_wait_s)) > 0:
        paused = await circuit_is_open(models, name)
        reason = "paused after repeated failures" if paused else "another call was told to retry"
        failure = Failure(
            f"{reason}, for {wait:.0f} s" if paused else f"{reason} in {wait:.0f} s",
            status=None if paused else 429,
            retryable=True,
            retry_after=wait,
            paused=paused,
        )
        if wait > (backoff.max_wait_s if paused else backoff.max_requested_wait_s):
            raise failure
        if wait > 1:
            report_wait(name, failure, wait, f"call in {wait:.0f} s")
        await backoff.sleep(backoff.wait_s(1, wait))
    if settings.requests_per_minute or settings.tokens_per_minute:
        await backoff.sleep(await asyncio.to_thread(rate_limiter.reserve_s, key, settings, tokens))
    slot = None
    while settings.concurrency and not slot:
        if not (slot := await asyncio.to_thread(rate_limiter.acquire_slot, key, settings.concurrency)):
            await backoff.sleep(SLOT_S)
    return slot


def report_wait(model: str, failure: Failure, wait_s: float, what_next: str) -> None:
    """Report the wait before a retry as a `retry` stream event, or outside a graph as a log message."""
    message = f"{failure.cause}, {what_next}"
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # outside of a graph; LangGraph's error within another runnable
        logging.getLogger(__name__).warning("%s: %s", model, message)
        return
    write({"event": "retry", "model": model, "why": failure.text, "words": message, "wait_s": wait_s})


async def circuit_is_open(models: Models, name: str) -> bool:
    """Return True if the circuit breaker of a model's endpoint is open."""
    if models.rate_limiter is None:
        return False
    max_wait_s = models.settings_of(name).max_wait_s
    return await asyncio.to_thread(
        models.rate_limiter.circuit_is_open, rate_limiter_key(models, name), max_wait_s
    )


def rate_limiter_key(models: Models, name: str) -> str:
    """Return the endpoint's address and the model's name, under which calls are counted."""
    return f"{redact_urls(models.base_url(name))} {model_settings.bare_name(name)}".strip()


def other_model() -> str:
    """Return the advice to continue a debate with another model."""
    return advise(
        "to go on with another model: moot resume ID --model NAME",
        "to go on with another model: change it with `Debate.reconfigure`, and run the debate again",
        "to go on, the person who runs the server can choose another model",
    )


WAIT_S = 10.0
"""Timeout in seconds for requesting the list of models from an endpoint."""
MAX_SUGGESTED = 8
"""Maximum number of model names that an error message suggests."""


async def listed_models(access: Access, timeout_s: float = WAIT_S) -> list[JsonObject]:
    """Request an endpoint's models, each with an `id` and further fields, in the endpoint's order.

    Raises:
        httpx.HTTPError: the endpoint cannot be reached or refuses the request.
        ValueError: the response is not a list of models.
    """
    url = (access.base_url or OPENAI_URL).rstrip("/") + "/models"
    async with httpx.AsyncClient(timeout=timeout_s) as client:
        response = await client.get(url, headers={"authorization": f"Bearer {access.key}"})
    response.raise_for_status()
    payload = json.loads(response.text)
    rows = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(rows, list):
        raise ValueError("the endpoint's response is not a list of models")
    return [row for row in rows if isinstance(row, dict) and row.get("id")]


async def offered_models(access: Access) -> list[str]:
    """Request the list of models from an endpoint, and return their names.

    Raises:
        InputError: the endpoint cannot be reached, refuses the key or returns no list.
    """
    url = redact_urls(access.base_url or OPENAI_URL)
    try:
        return [str(row["id"]) for row in await listed_models(access)]
    except (httpx.HTTPError, ValueError) as error:
        is_refused = isinstance(error, httpx.HTTPStatusError) and error.response.status_code in (401, 403)
        check = (
            "Check the key: `moot setup` stores another one"
            if is_refused
            else "Check that the server runs and that the address is that of its API, which often ends in /v1"
        )
        raise InputError(
            f"cannot list the models that the endpoint {url} offers: {error or type(error).__name__}. {check}"
        ) from error


def advice(failure: Failure, settings: model_settings.ModelSettings, base_url: str, model: str) -> str:
    """Return advice on fixing a failed call, or `""`. A provider's package may have the `base_url`."""
    endpoint = "the model's base_url" if settings.base_url else "OPENAI_BASE_URL"
    if not base_url and (failure.advice or failure.status in (401, 403, 404)):
        return f"check the model's name, and its provider's key and address; {other_model()}"
    if failure.advice:
        return failure.advice.format(url=redact_urls(base_url), endpoint=endpoint)
    if failure.kind == "overflow":
        return (
            f"set models.{model}.context_size to the model's context size, and memory.budget.total to at "
            "most that size minus memory.budget.reply"
        )
    text = failure.text.casefold().replace("_", "")
    if names := [key for key in settings.parameters if key.casefold().replace("_", "") in text]:
        return f"remove {' and '.join(names)} from models.{model}.parameters"
    if failure.kind == "quota":
        return f"the account's quota is used up: check its billing, or {other_model()}"
    if failure.status in (401, 403):
        if settings.key_variable is None:
            return "no key was sent: set the model's `api_key_env` to the name of its key's variable"
        return f"check the key in {settings.key_variable}, and that {endpoint} is the endpoint it belongs to"
    if failure.status == 404:
        return f"check the model's name, and {endpoint}; {other_model()}"
    return ""


async def explanation(name: str, failure: Failure, models: Models) -> str:
    """Return an error message for a failed model call, including advice on how to fix the problem."""
    hint = advice(failure, models.settings_of(name), models.base_url(name), name)
    if failure.status == 404 and not failure.advice:
        model_names = [str(row["id"]) for row in await models_for(name, models)]
        if model_names and name not in model_names:
            similar_names = difflib.get_close_matches(name, model_names, n=3)
            if not similar_names and (similar_name := model_settings.similar_model_name(name)):
                similar_names = [similar_name]
            suggestion = f"did you mean {' or '.join(map(repr, similar_names))}? " if similar_names else ""
            rest = (
                f" and {len(model_names) - MAX_SUGGESTED} more: `moot models`"
                if len(model_names) > MAX_SUGGESTED
                else ""
            )
            hint = (
                f"{suggestion}The server offers {', '.join(model_names[:MAX_SUGGESTED])}{rest}; "
                f"{other_model()}"
            )
    return clean_text(f"{name}: {failure.text}" + (f" ({hint})" if hint else ""))


_SIZES = (
    "n_ctx",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "loaded_context_length",
)
"""Fields in which servers report a model's context size: llama.cpp, vLLM, OpenRouter, Groq, Mistral, LM
Studio."""
LOOKUP_S = 3.0
"""Timeout in seconds for asking a server for its models' context sizes before a debate."""


async def server_facts(models: Models, names: Iterable[str]) -> dict[str, ModelFacts]:
    """Ask the models' servers for sizes and slots, and remember them. Silent servers are left out."""
    unknown = [name for name in names if models.asks_server(name) and "limit" not in models.facts_of(name)]
    replies = await asyncio.gather(*(_facts_from_server(name, models) for name in unknown))
    facts = {name: each for name, each in zip(unknown, replies, strict=True) if each}
    models.learn(facts)
    return facts


async def _facts_from_server(name: str, models: Models) -> ModelFacts:
    if model_settings.provider_of(name) == model_settings.OLLAMA:
        return await _facts_from_ollama(name, models)
    try:
        access = access_to(name, models.settings_of(name))
        rows = await listed_models(access, LOOKUP_S)
        row = next(
            (row for row in rows if row["id"] == model_settings.bare_name(name)),
            rows[0] if len(rows) == 1 else {},
        )
        size = context_size_in(row)
        if row.get("owned_by") != "llamacpp":
            return {"limit": size} if size else {}
        root = (access.base_url or "").rstrip("/").removesuffix("/v1")
        async with httpx.AsyncClient(timeout=LOOKUP_S) as client:
            props = (await client.get(f"{root}/props")).json()
        slots, size = (
            props.get("total_slots"),
            context_size_in(props.get("default_generation_settings") or {}) or size,
        )
    except (OSError, ValueError, AttributeError, httpx.HTTPError, UserError):
        return {}
    facts: ModelFacts = {"limit": size} if size else {}
    if isinstance(slots, int) and 0 < slots <= 64 and models.settings_of(name).concurrency is None:
        facts["settings"] = {"concurrency": slots}
    return facts


async def _facts_from_ollama(name: str, models: Models) -> ModelFacts:
    """Return the maximum context of a model of Ollama's own API. Requests set the context within it."""
    root = models.settings_of(name).base_url or variable("OLLAMA_HOST") or "http://localhost:11434"
    root = root if "://" in root else f"http://{root}"
    try:
        async with httpx.AsyncClient(timeout=LOOKUP_S) as client:
            description = (
                await client.post(
                    f"{root.rstrip('/')}/api/show", json={"model": model_settings.bare_name(name)}
                )
            ).json()
        sizes = [size for key, size in description["model_info"].items() if key.endswith(".context_length")]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, httpx.HTTPError):
        return {}
    return {"limit": sizes[0]} if sizes and isinstance(sizes[0], int) and sizes[0] > 0 else {}


def context_size_in(row: JsonObject) -> int:
    """Return the context size in a server's description of a model, or 0 if there is none."""
    parts = [part for part in (row, row.get("meta"), row.get("top_provider")) if isinstance(part, dict)]
    sizes = [part.get(key) for part in parts for key in _SIZES]
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=0)


async def models_for(name: str, models: Models) -> list[JsonObject]:
    """Return the models that a model's endpoint lists, or `[]` if it lists none."""
    if not models.is_openai_compatible(name):
        return []
    try:
        return await listed_models(access_to(name, models.settings_of(name)))
    except (OSError, ValueError, httpx.HTTPError, UserError):
        return []

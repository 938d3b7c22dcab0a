"""What a user can do about a failure, and the models that an endpoint says it offers."""

import difflib
import json

import httpx

from moot.nodes.models.failures import HOPELESS_CODES, Failure, is_too_long
from moot.nodes.models.registry import OPENAI_URL, Access, Models, access_to
from moot.state.config.model_settings import ModelSettings
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import UserError
from moot.state.redaction import shown_url

OTHER_MODEL = "to go on with another model: moot resume ID --model NAME"
WAIT_S = 10.0
"""Longest wait for the list, seconds: it is short, and only ever beside the point."""
FEW = 8
"""Names of models that an error message lists."""


async def offered_rows(access: Access) -> list[JsonObject]:
    """Return an endpoint's list of models in its order, each with its `id` and what else it tells.

    Raises:
        httpx.HTTPError: it cannot be reached, or refuses.
        ValueError: what it answers is no list of models.
    """
    url = (access.base_url or OPENAI_URL).rstrip("/") + "/models"
    async with httpx.AsyncClient(timeout=WAIT_S) as client:
        answer = await client.get(url, headers={"authorization": f"Bearer {access.key}"})
    answer.raise_for_status()
    listed = json.loads(answer.text)
    rows = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(rows, list):
        raise ValueError("the answer is no list of models")
    return [row for row in rows if isinstance(row, dict) and row.get("id")]


def advice(failure: Failure, settings: ModelSettings, base_url: str, model: str) -> str:
    """Return what a user can do about a failure, `""` where that is not known.

    Args:
        failure: what is the matter.
        settings: of the model.
        base_url: where it was asked for, `""` for a provider's own place.
        model: its name.
    """
    endpoint = "the model's base_url" if settings.base_url else "OPENAI_BASE_URL"
    if not base_url and (failure.advice or failure.status in (401, 403, 404)):
        return f"check the model's name, and its provider's key and address; {OTHER_MODEL}"
    if failure.advice:
        return failure.advice.format(url=shown_url(base_url), endpoint=endpoint)
    if is_too_long(failure):
        return (
            f"say what it takes as models.{model}.context_size, and lower memory.budget.total to that less "
            "memory.budget.reply"
        )
    if failure.code in HOPELESS_CODES:
        return f"the account's quota is used up: see to its billing, or {OTHER_MODEL}"
    if failure.status in (401, 403):
        if settings.key_variable is None:
            return "no key was sent: name its variable as `api_key_env` beside the model's base_url"
        return f"check the key in {settings.key_variable}, and that {endpoint} is the endpoint it belongs to"
    if failure.status == 404:
        return f"check the model's name, and {endpoint}; {OTHER_MODEL}"
    return ""


async def explanation(name: str, failure: Failure, models: Models) -> str:
    """Return what is said of a model's failure, and what can be done about it."""
    hint = advice(failure, models.settings_of(name), models.base_url(name), name)
    if failure.status == 404 and not failure.advice:
        offered = [str(row["id"]) for row in await rows_for(name, models)]
        if offered and name not in offered:
            like = difflib.get_close_matches(name, offered, n=3)
            near = f"did you mean {' or '.join(map(repr, like))}? " if like else ""
            rest = f" and {len(offered) - FEW} more: `moot models`" if len(offered) > FEW else ""
            hint = f"{near}The server offers {', '.join(offered[:FEW])}{rest}; {OTHER_MODEL}"
    return clean_text(f"{name}: {failure.text}" + (f" ({hint})" if hint else ""))


async def rows_for(name: str, models: Models) -> list[JsonObject]:
    """Return the list of a model's endpoint, none where it does not say."""
    if not models.speaks_openai(name):
        return []
    try:
        return await offered_rows(access_to(name, models.settings_of(name)))
    except (OSError, ValueError, httpx.HTTPError, UserError):
        return []

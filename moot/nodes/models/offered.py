"""The models that an endpoint says it offers, and what is said of a failure that they may cure."""

import difflib
import json

import httpx

from moot.nodes.models.failures import OTHER_MODEL, Failure, advice
from moot.nodes.models.registry import OPENAI_URL, Access, Models, access_to
from moot.state.entries import JsonObject, clean_text
from moot.state.errors import UserError

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


async def explained(name: str, failure: Failure, models: Models) -> str:
    """Return what is said of a model's failure, and what can be done about it."""
    hint = advice(failure, models.settings_of(name), models.base_url(name), name)
    if failure.status == 404 and not failure.advice and (said := await _offer(name, models)):
        hint = f"{said}; {OTHER_MODEL}"
    return clean_text(f"{name}: {failure.text}" + (f" ({hint})" if hint else ""))


async def _offer(name: str, models: Models) -> str:
    """Return what an endpoint offers instead of a model that it does not know, `""` if it does not say."""
    if not models.speaks_openai(name):
        return ""
    try:
        rows = await offered_rows(access_to(name, models.settings_of(name)))
    except (OSError, ValueError, httpx.HTTPError, UserError):
        return ""
    offered = [str(row["id"]) for row in rows]
    if not offered or name in offered:
        return ""
    like = difflib.get_close_matches(name, offered, n=3)
    rest = f" and {len(offered) - FEW} more: `moot models`" if len(offered) > FEW else ""
    near = f"did you mean {' or '.join(map(repr, like))}? " if like else ""
    return f"{near}The server offers {', '.join(offered[:FEW])}{rest}"

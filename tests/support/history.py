"""History of a debate: the states at which forks begin, and the sent prompts."""

from __future__ import annotations

from typing import Any

from moot.debates.lifecycle import checkpoint_after
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.debates.stored_debate import Debate
from moot.runtime.background_loop import call_from_sync
from moot.state.errors import InputError


def forks_and_prompts(debate: Debate) -> dict[str, Any]:
    """Return the results of `moot fork --after` and `moot show --prompt` for every message and call."""
    session, values = debate.session, debate.state().values
    results: dict[str, Any] = {"document": debate.document()}
    for receipt in values["receipts"]:
        seq = receipt["seq"]
        try:
            checkpoint = call_from_sync(checkpoint_after, session, seq, values)
            results[f"fork {seq}"] = session.state(checkpoint).values
        except InputError as error:
            results[f"fork {seq}"] = str(error)
        results[f"prompt {seq}"] = reconstruct_prompt(session, seq).to_json()
    for call in values.get("calls") or []:
        results[f"call {call['id']}"] = reconstruct_prompt(session, call["id"]).to_json()
    return results

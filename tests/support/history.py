"""Past of a debate: states from which forks begin, and the prompts that were sent."""

from __future__ import annotations

from typing import Any

from moot.debates.lifecycle import checkpoint_after
from moot.debates.prompt_reconstruction import reconstruct_prompt
from moot.debates.stored_debate import Debate
from moot.runtime.background_loop import call_from_sync
from moot.state.errors import InputError


def past_checkpoints(debate: Debate) -> dict[str, Any]:
    """Return what `moot fork --after` and `moot show --prompt` find, under every number that they take."""
    session, values = debate.session, debate.state().values
    found: dict[str, Any] = {"document": debate.document()}
    for receipt in values["receipts"]:
        seq = receipt["seq"]
        try:
            checkpoint = call_from_sync(checkpoint_after, session, seq, values)
            found[f"fork {seq}"] = session.state(checkpoint).values
        except InputError as refused:
            found[f"fork {seq}"] = str(refused)
        found[f"prompt {seq}"] = reconstruct_prompt(session, seq).to_json()
    for call in values.get("calls") or []:
        found[f"call {call['id']}"] = reconstruct_prompt(session, call["id"]).to_json()
    return found

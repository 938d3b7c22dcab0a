"""What is read of a debate's past: the states that forks begin with, and the prompts that were sent."""

from __future__ import annotations

from typing import Any

from moot.graph.lifetime import checkpoint_after
from moot.graph.lookback import look_back
from moot.graph.stored_debate import Debate
from moot.nodes.driving.portal import call_from_sync
from moot.state.errors import InputError


def past(debate: Debate) -> dict[str, Any]:
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
        found[f"prompt {seq}"] = look_back(session, seq).to_json()
    for call in values.get("calls") or []:
        found[f"call {call['id']}"] = look_back(session, call["id"]).to_json()
    return found

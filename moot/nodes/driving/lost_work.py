"""Takes failed runs up into the state: what they used counts, and why they failed is told."""

from collections.abc import Sequence

from moot.state.conversation import StateValues
from moot.state.entries import JsonObject
from moot.state.failed_runs import FailedRun
from moot.state.reducers import add_up


def failures_update(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return the update that takes up the failed runs which a state has not taken up yet, `{}` for none.

    A run of a later step than the state's is left: it is another branch's.
    """
    taken = {error.get("run") for error in state.get("errors") or ()} if failed else set()
    step = int((state.get("step") or {}).get("no", 0))
    new = [each for each in failed if each.run not in taken and each.step <= step]
    if not new:
        return {}
    return {
        "usage": add_up({}, [each.usage for each in new]),
        "errors": [
            {"step": each.step, "node": each.node, "error": each.error, "at": each.at, "run": each.run}
            for each in new
        ],
    }


def with_failures(state: StateValues, failed: Sequence[FailedRun]) -> JsonObject:
    """Return the state's values as they will be once all failed runs are taken up."""
    update = failures_update(state, failed)
    if not update:
        return dict(state)
    return {
        **state,
        "usage": add_up(dict(state.get("usage") or {}), [update["usage"]]),
        "errors": [*(state.get("errors") or ()), *update["errors"]],
    }

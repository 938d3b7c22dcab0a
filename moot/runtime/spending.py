"""Refusal of model calls after a debate has reached a limit of the operator."""

from collections.abc import Sequence

from moot.calls.model_calls import ModelCall
from moot.config import DebateConfig
from moot.config.stages import operators_limits
from moot.protocols.registry import limit_reached
from moot.protocols.schedule import End
from moot.runtime.context import NodeContext
from moot.state.conversation import StateValues


def spending_refusal(state: StateValues, config: DebateConfig, operator: DebateConfig) -> str:
    """Return an error message if spending has reached a limit of `operator` or `MOOT_CONFIG`, or `""`.

    The limit on time does not count.
    """
    reached = limit_reached(state, operators_limits(config, operator))
    return "" if not reached or reached.limit == "limits.wall_clock_s" else _no_more_calls(reached)


def _no_more_calls(reached: End) -> str:
    return f"{reached.reason}, so the debate makes no more model calls: only the operator can raise the limit"


def call_refusal(context: NodeContext, node: str, calls: Sequence[ModelCall]) -> str:
    """Return an error message if an operator's limit forbids a node's calls, or `""`.

    After a step has reached a ceiling of the operator, the debate is brought to its end once. Each node may
    then make its calls once. A client that writes the state could otherwise run the node again. `open` checks
    the limits itself.
    """
    state = context.state
    limits_config = operators_limits(context.permissions.config, context.env.default_config())
    reached = limit_reached(state, limits_config)
    if not reached or node == "open":
        return ""
    turns = [each["checkpoint"] for each in state.get("receipts") or []]
    # An imported document may state checkpoints that do not exist yet.
    last_turn = max((each for each in turns if each < context.checkpoint), default="")
    purposes = {
        each["purpose"]
        for each in state.get("calls") or []
        if each["node"] == node and each["checkpoint"] > last_turn and not each["error"]
    }
    return "" if purposes.isdisjoint(call.purpose for call in calls) else _no_more_calls(reached)

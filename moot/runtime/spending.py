"""The operator's limits on the model calls of a debate.

A client may write a debate's state, and so run its nodes again. Nodes do not defend themselves: the runner
asks here, once for each run of a node, which model calls the node may still make.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import get_args

from moot.calls.model_calls import ModelCall, Purpose
from moot.config import DebateConfig
from moot.config.stages import operators_limits
from moot.protocols.registry import limit_reached
from moot.protocols.schedule import End
from moot.state.conversation import StateValues

LENGTHENING_NODES = frozenset({"turn", "clarify"})
"""Nodes that do not run after a ceiling is reached, because they do not bring a debate to its end."""


def ceiling_reached(state: StateValues, config: DebateConfig, operator: DebateConfig) -> End | None:
    """Return `End` if a debate has reached a limit of `operator` or of `MOOT_CONFIG`.

    A limit that the operator raised for this debate does not count.
    """
    return limit_reached(state, operators_limits(config, operator))


def spending_refusal(reached: End | None) -> str:
    """Return why a question about a debate is refused, or `""`. The limit on time does not count."""
    return "" if reached is None or reached.limit == "limits.wall_clock_s" else _no_more_calls(reached)


def _no_more_calls(reached: End) -> str:
    return f"{reached.reason}, so the debate makes no more model calls: only the operator can raise the limit"


@dataclass(frozen=True)
class CallLimit:
    """Model calls that one run of a node may make."""

    reason: str = ""
    """Error message of calls that are refused."""
    refused: Collection[Purpose] = ()
    """Purposes of refused calls."""

    def refusal(self, calls: Sequence[ModelCall]) -> str:
        """Return an error message if some of a node's calls are refused, or `""`."""
        return self.reason if any(call.purpose in self.refused for call in calls) else ""


def call_limit(state: StateValues, reached: End | None, node: str, checkpoint: str) -> CallLimit:
    """Return which calls a node may make that runs from a checkpoint.

    After a step has reached a ceiling, the debate is brought to its end once: each node may then make its
    calls once. A question in the chat is refused at once.
    """
    if reached is None:
        return CallLimit()
    if node == "open":
        reason = spending_refusal(reached)
        return CallLimit(reason, get_args(Purpose) if reason else ())
    turns = [each["checkpoint"] for each in state.get("receipts") or []]
    # An imported document may state checkpoints that do not exist yet.
    last_turn = max((each for each in turns if each < checkpoint), default="")
    called_purposes: set[Purpose] = {
        each["purpose"]
        for each in state.get("calls") or []
        if each["node"] == node and each["checkpoint"] > last_turn and not each["error"]
    }
    return CallLimit(_no_more_calls(reached), called_purposes)

"""Limits that end a debate in good order."""

from moot.nodes.protocols.protocol import Consult, End
from moot.nodes.protocols.protocol_table import protocol_named
from moot.state.config import DebateConfig
from moot.state.conversation import ConversationState, EndedBy, StateValues, Step
from moot.state.entries import tokens_of


def following(state: ConversationState, config: DebateConfig) -> Step | End | Consult:
    """Return what comes next: the end at a limit, else what the protocol says."""
    limit = limit_reached(state, config)
    if limit:
        return End(limit["reason"], limit["what"])
    return protocol_named(config.protocol).next_step(state, config)


def limit_reached(state: StateValues, config: DebateConfig) -> EndedBy | None:
    """Return which limit the debate has reached, `None` while it is within all of them."""
    usage, limits = state.get("usage") or {}, config.limits
    tokens = tokens_of(usage)
    measured = (
        ("limits.total_tokens", tokens, limits.total_tokens),
        ("limits.cost_usd", usage.get("cost_usd", 0), limits.cost_usd),
        ("limits.wall_clock_s", usage.get("elapsed_s", 0), limits.wall_clock_s),
    )
    for name, spent, limit in measured:
        if limit is not None and spent >= limit:
            return {"by": "limit", "what": name, "reason": f"{name} of {limit:g} is reached"}
    return None

"""`trim` node: removes the oldest messages from a window that exceeds its limits."""

from moot.calls.effects import NodeBody
from moot.config.debate_config import frozen_config
from moot.memory.background import select_background
from moot.memory.window import needs_summary, window_start
from moot.protocols.prompt_context import evict_through, reserved_tokens
from moot.protocols.registry import protocol_named
from moot.runtime.environment import Environment, NodeContext
from moot.state.conversation import ConversationState
from moot.tools.registry import most_functions_tokens


def trim(state: ConversationState, context: NodeContext) -> NodeBody:
    """Remove the oldest messages from the window of recent messages."""
    yield from ()
    through = trim_through(state, context.env)
    return {} if through < 0 else {"messages": {"op": "drop_through", "seq": through}}


def leaving_through(state: ConversationState, env: Environment) -> int:
    """Return the number of the last message that no longer fits in the window.

    Prompts show the recent messages in this window. The number is -1 if there is no such message.
    """
    config, start = frozen_config(state), window_start(state)
    count, through, before = env.token_counter_for(config), -1, -1
    tools = most_functions_tokens(config, count, env.tools)
    while True:  # people's messages that leave the window join the background, so less space is left
        background = select_background(state, config, count, start=start)
        reserved = reserved_tokens(background, config, tools)
        if reserved == before:
            return through
        # Prompts show background and pinned messages before the window, except the newest message.
        window = [entry for entry in state["full_transcript"][start:] if entry["id"] not in background.ids]
        pinned = state.get("pinned", ())
        window = [*(entry for entry in window[:-1] if entry["id"] not in pinned), *window[-1:]]
        leaving = evict_through(window, state["topic"], config, count, reserved=reserved)
        if leaving < start:
            return through
        through, start, before = leaving, leaving + 1, reserved


def trim_through(state: ConversationState, env: Environment) -> int:
    """Return the number of the last message to remove from the window now.

    The number is -1 if there is no such message. If prompts show the rolling summary, a message only leaves
    the window after the summary covers it.
    """
    leaving = leaving_through(state, env)
    shows_summary = protocol_named(frozen_config(state).protocol).shows_summary
    if leaving >= 0 and shows_summary and needs_summary(state):
        summary = state.get("rolling_summary")
        leaving = min(leaving, summary["covers_through_seq"] if summary else -1)
    return leaving if leaving >= window_start(state) else -1

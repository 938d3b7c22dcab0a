"""`trim` node: removes the oldest messages from a window that exceeds its limits."""

from moot.calls.effects import NodeBody
from moot.memory.window import needs_summary, window_start
from moot.runtime.context import NodeContext


def trim(context: NodeContext) -> NodeBody:
    """Remove the oldest messages from the window of recent messages."""
    yield from ()
    through = trim_through(context)
    return {} if through < 0 else {"messages": {"op": "drop_through", "seq": through}}


def trim_through(context: NodeContext) -> int:
    """Return the number of the last message to remove from the window now, or -1.

    If prompts show the rolling summary, a message only leaves the window after the summary covers it.
    """
    state, leaving = context.state, context.leaving_through
    if leaving >= 0 and context.protocol.shows_summary and needs_summary(state):
        summary = state.get("rolling_summary")
        leaving = min(leaving, summary["covers_through_seq"] if summary else -1)
    return leaving if leaving >= window_start(state) else -1

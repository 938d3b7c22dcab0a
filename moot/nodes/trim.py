"""`trim`: moves the window when it has grown past its high-water mark."""

import operator
from collections import deque
from collections.abc import Sequence

from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body
from moot.nodes.memory.window import WindowLimits, compact, first_seq
from moot.nodes.prompts.pins import pin_blocks, pins_tokens
from moot.nodes.views.head import head_tokens
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState


def trim(state: ConversationState, context: NodeContext) -> Body:
    """Forget the oldest messages of an over-full window, in one block."""
    yield from ()
    through = leaves_through(state, context)
    return {} if through < 0 else {"messages": {"op": "drop_through", "seq": through}}


_recent: deque[tuple[Sequence[object], int]] = deque(maxlen=8)
"""What decided, the very same objects, and how: `record` asks before `trim` does, and a channel's value that
nobody wrote to stays the same."""


def leaves_through(state: ConversationState, context: NodeContext) -> int:
    """Return the `seq` up to which messages are about to leave the window, -1 for none."""
    config = frozen_config(state)
    asked = (state["messages"], state["full_transcript"], state.get("pinned"), config, context.env)
    for known, before in list(_recent):
        if all(map(operator.is_, known, asked)):
            return before
    transcript = state["full_transcript"]
    window = transcript[first_seq(state["messages"], len(transcript)) :]
    count = context.env.count_for(config)
    head = head_tokens(state["topic"], config, count) + pins_tokens(pin_blocks(state, config, count), count)
    limits = WindowLimits.of(config.memory, head)
    through = compact(window, limits, config.names(), count)
    _recent.append((asked, -1 if through is None else through))
    return _recent[-1][1]

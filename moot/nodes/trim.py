"""`trim`: moves the window when it has grown past its high-water mark."""

from moot.nodes.driving.environment import Environment, NodeContext
from moot.nodes.effects import Body
from moot.nodes.memory.window import window_start
from moot.nodes.prompts.material import pin_blocks, pins_tokens
from moot.nodes.views.rolling import leaves_window
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState


def trim(state: ConversationState, context: NodeContext) -> Body:
    """Forget the oldest messages of an over-full window, in one block."""
    yield from ()
    through = leaves_through(state, context.env)
    return {} if through < 0 else {"messages": {"op": "drop_through", "seq": through}}


def leaves_through(state: ConversationState, env: Environment) -> int:
    """Return the `seq` up to which messages are about to leave the window, -1 for none."""
    config, window = frozen_config(state), state["full_transcript"][window_start(state) :]
    count = env.count_for(config)
    pinned = pins_tokens(pin_blocks(state, config, count), count)
    return leaves_window(window, state["topic"], config, count, pinned=pinned)

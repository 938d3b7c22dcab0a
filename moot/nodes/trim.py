"""`trim`: moves the window when it has grown past its high-water mark."""

from moot.nodes.driving.environment import Environment, NodeContext
from moot.nodes.effects import Body
from moot.nodes.memory.window import WindowLimits, compact, window_start
from moot.nodes.prompts.material import pin_blocks, pins_tokens
from moot.nodes.views.head import head_tokens
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
    head = head_tokens(state["topic"], config, count) + pins_tokens(pin_blocks(state, config, count), count)
    limits = WindowLimits.of(config.memory, head)
    through = compact(window, limits, config.names(), count)
    return -1 if through is None else through

"""Context of a graph node. It is made once for each run of a node, and every function of the run takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from moot.calls.effects import NodeBody
from moot.claims.model_extraction import uses_model
from moot.config.boundary import Permissions
from moot.config.debate_config import frozen_config
from moot.judging.assessment import Judging
from moot.memory.background import select_background
from moot.memory.cross_debate_memory import MemoryIndexes
from moot.memory.window import window_start
from moot.prompts.request import model_params
from moot.protocols.base import Protocol
from moot.protocols.long_form_prompt import evict_through
from moot.protocols.prompt_context import PromptSource, reserved_tokens
from moot.protocols.registry import protocol_named
from moot.protocols.schedule import End
from moot.retrieval.indexes import embeddings_of
from moot.runtime import spending
from moot.runtime.environment import Environment
from moot.state.conversation import ConversationState
from moot.tools import registry, tool


@dataclass(frozen=True)
class NodeContext(PromptSource):
    """What one run of a graph node may read: the debate, and the resources that the node may use."""

    env: Environment
    permissions: Permissions
    """Permissions of the debate, which combine its configuration with the capabilities granted to it."""
    debate: str = ""
    """LangGraph thread id of the debate. `""`: no checkpointer."""
    checkpoint: str = ""
    """Id of the checkpoint from which the node started."""
    nested: bool = False
    """True if the debate runs as a subgraph of another graph."""

    @property
    def origin(self) -> tuple[str, str]:
        """Ids of the debate and the checkpoint, from which message ids are derived."""
        return self.debate, self.checkpoint

    def under(self, permissions: Permissions) -> "NodeContext":
        """Return a copy of this context in which the configuration of `permissions` applies."""
        config = permissions.config
        count = self.env.token_counter_for(config, model_params(config, config.judge).model)
        return replace(self, config=config, count=count, permissions=permissions)

    @cached_property
    def protocol(self) -> Protocol:
        """Protocol of the debate. One that is not installed is a `ConfigError`."""
        return protocol_named(self.config.protocol)

    @cached_property
    def ceiling_reached(self) -> End | None:
        """Limit of the operator that the debate has reached, or `None`."""
        return spending.ceiling_reached(self.state, self.permissions.config, self.env.default_config())

    @property
    def extracts_claims(self) -> bool:
        """True if a model extracts the claims of the debate."""
        return uses_model(self.config.blackboard, self.config.model, auto=self.protocol.extracts_by_default)

    @cached_property
    def tools(self) -> Mapping[str, type[tool.Tool]]:
        """Tools of MCP servers and of the calling program, keyed by name."""
        return registry.debate_tools(self.config, self.env.tools)

    @cached_property
    def largest_tools_tokens(self) -> int:
        """Largest number of prompt tokens that the tool definitions of one debater need."""
        return registry.most_functions_tokens(self.config, self.count, self.env.tools)

    @cached_property
    def judging(self) -> Judging:
        """Requests to the judges of the debate, following the rules of its protocol."""
        proceedings = self.protocol.proceedings(self.state, self.config)
        return Judging(self, proceedings.spec, proceedings.entries)

    @cached_property
    def leaving_through(self) -> int:
        """Number of the last message that no longer fits in the window of prompts, or -1."""
        state, start = self.state, window_start(self.state)
        through, before = -1, -1
        while True:  # people's messages that leave the window join the background, so less space is left
            background = select_background(self, start=start)
            reserved = reserved_tokens(background, self.config, self.largest_tools_tokens)
            if reserved == before:
                return through
            # Prompts show background and pinned messages before the window, except the newest message.
            window = [
                entry for entry in state["full_transcript"][start:] if entry["id"] not in background.ids
            ]
            pinned = state.get("pinned", ())
            window = [*(entry for entry in window[:-1] if entry["id"] not in pinned), *window[-1:]]
            leaving = evict_through(window, state["topic"], self.config, self.count, reserved=reserved)
            if leaving < start:
                return through
            through, start, before = leaving, leaving + 1, reserved

    @cached_property
    def memories(self) -> MemoryIndexes:
        """Indexes for retrieving earlier messages of the debate."""
        embeddings = embeddings_of(self.permissions, self.env.embeddings)
        return MemoryIndexes(self.env.indexes, self.debate, embeddings)


def node_context(
    env: Environment,
    state: ConversationState,
    permissions: Permissions | None = None,
    debate: str = "",
    checkpoint: str = "",
    *,
    nested: bool = False,
) -> NodeContext:
    """Return the context of a node that runs on `state`.

    The configuration is the one that the state contains. A debate that has not begun has none: then the
    configuration of `permissions` applies. Default permissions: those of the state's configuration.
    """
    config = frozen_config(state) if state.get("config") else None
    permissions = permissions or Permissions(config or env.default_config())
    config = config or permissions.config
    count = env.token_counter_for(config)
    return NodeContext(state, config, count, env, permissions, debate, checkpoint, nested)


NodeFunction = Callable[[NodeContext], NodeBody]
"""Body of a graph node: a generator that yields effects and returns the state update.

    def count_turns(context: NodeContext) -> NodeBody:
        (reply,) = yield [call]
        return {"solution": reply.text}
"""

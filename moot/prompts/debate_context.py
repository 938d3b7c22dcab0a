"""Values of a debate that its functions share. They are derived once for each run of a node."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from moot.config import DebateConfig, debate_config
from moot.state.conversation import ConversationState
from moot.text.tokens import TokenCounter

Context = TypeVar("Context", bound="DebateContext")


@dataclass(frozen=True)
class DebateContext:
    """State of a debate, with what every function would otherwise derive from it again."""

    state: ConversationState
    config: DebateConfig
    """Configuration under which the debate runs."""
    count: TokenCounter
    """Token counter that is exact for, or an upper bound over, the encodings of the debate's models."""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display names of the debaters, keyed by debater id."""
        return self.config.names()

    def with_state(self: Context, state: ConversationState) -> Context:
        """Return a copy of this context for another state of the same debate."""
        return replace(self, state=state)


def context_of(state: ConversationState, count: TokenCounter) -> DebateContext:
    """Return the context of a stored state. A state without a configuration is an `InputError`."""
    return DebateContext(state, debate_config.frozen_config(state), count)

"""One floor about to be given: what its view may draw on."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from moot.nodes.memory.recall import Memories
from moot.nodes.memory.window import first_seq
from moot.nodes.text.tokens import TokenCounter
from moot.state.config import DebateConfig, DebaterConfig
from moot.state.conversation import ConversationState, Floor, Step
from moot.state.entries import Entry, kind_of


@dataclass(frozen=True)
class Scene:
    """One floor about to be given: everything that its view may draw on."""

    state: ConversationState
    config: DebateConfig
    step: Step
    floor: Floor
    count: TokenCounter
    total: int | None = None
    """Tokens of the whole view where tools take some of the budget; `None` for all of it."""
    memories: Memories | None = None
    """Where retrieval finds what has left the window; `None` brings nothing back."""

    @property
    def room(self) -> int:
        """Tokens of the whole view."""
        return self.config.memory.budget.total if self.total is None else self.total

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Display names by debater id."""
        return self.config.names()

    @property
    def speaker(self) -> DebaterConfig:
        """Who has the floor."""
        return self.config.debater(self.floor["speaker"])

    @cached_property
    def window(self) -> list[Entry]:
        """The window's entries, oldest first, without the topic, which the rules hold."""
        transcript = self.state["full_transcript"]
        start = first_seq(self.state["messages"], len(transcript))
        return [entry for entry in transcript[start:] if kind_of(entry).shown]

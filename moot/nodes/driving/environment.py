"""What nodes are given from outside: models, clock and token counter. Tests pass plain functions."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.bookkeeping import note_progress
from moot.nodes.effects import Body
from moot.nodes.memory.indexes import Indexes
from moot.nodes.models.complete import complete
from moot.nodes.models.failures import Backoff
from moot.nodes.models.registry import ChatSource, Factory, Models, make_model
from moot.nodes.text.tokens import DEFAULT_ENCODING, TokenCounter, counter, encoding_for
from moot.state.at_sight import at_sight
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, Reach, ReachKind
from moot.state.conversation import ConversationState, StateValues
from moot.state.records import Records


def utc_now() -> str:
    """Return the time, ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class ProgressNote(Protocol):
    """Writes a node's progress to the catalogue."""

    def __call__(
        self, records: Records, debate: str, state: StateValues, update: StateValues, now: str
    ) -> None:
        """Write it; `now` is the time."""
        ...


class Complete(Protocol):
    """Answers one call; never raises for a provider's failure."""

    async def __call__(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return the reply."""
        ...


@lru_cache(maxsize=32)
def _largest(of: Callable[[str], TokenCounter], encodings: tuple[str, ...]) -> TokenCounter:
    counters = [of(encoding) for encoding in encodings]
    return counters[0] if len(counters) == 1 else lambda text: max(count(text) for count in counters)


@at_sight()
def encodings_in(config: DebateConfig, models: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the encodings of the models that a debate may call, and of `models`, sorted."""
    names = (*config.model_names(), *models)
    return tuple(sorted({config.settings(name).encoding or encoding_for(name) for name in names}))


@dataclass(frozen=True)
class Environment:
    """The outside world of a graph's nodes."""

    factory: Factory = make_model
    """Builds a model's client from its name and settings; a test passes its own."""
    models: Mapping[str, ChatSource] = field(default_factory=dict)
    """LangChain models from Python, by the names that configurations have for them."""
    complete: Complete = complete
    note: ProgressNote = note_progress
    usual: Callable[[], DebateConfig] = DebateConfig
    """The operator's configuration, for all that a run's context or input leaves out."""
    clock: Callable[[], str] = utc_now
    counter: Callable[[str], TokenCounter] = counter
    """Token counter by encoding's name."""
    backoff: Backoff = field(default_factory=Backoff)
    """How long to wait between attempts."""
    embeddings: Any = None
    """A LangChain `Embeddings` for retrieval; wins over `memory.retrieval.embeddings`."""
    indexes: Indexes = field(default_factory=Indexes, repr=False, compare=False)
    """Retrieval indexes of the debates that this process works on."""
    _models: dict[str, Models] = field(default_factory=dict, repr=False, compare=False)

    def count_for(self, config: DebateConfig | None = None, *models: str) -> TokenCounter:
        """Return the counter of a debate's tokens, also for further `models` that are shown it.

        Where all its models share an encoding, the count is exact; where they use several, a text counts as
        the most that it takes in one of them: what fits its budget fits it for every model, fallbacks too.
        """
        return _largest(self.counter, encodings_in(config, models) if config else (DEFAULT_ENCODING,))

    @property
    def harmless(self) -> Collection[ReachKind | Reach]:
        """What a configuration may name freely, because this environment brings its own."""
        given: list[ReachKind | Reach] = [Reach("model", name) for name in self.models]
        given += [] if self.factory is make_model else ["model", "endpoint"]
        return (*given, "embeddings") if self.embeddings is not None else given

    def models_of(self, claim: Claim) -> Models:
        """Return the models of a debate, one set of clients for equal settings.

        Raises:
            ConfigError: they are not admitted.
        """
        config = claim.admit("model", "endpoint")
        key = repr((sorted(config.models.items()), config.limits.retry_for))
        if key not in self._models:
            self._models[key] = Models(
                config.models, self.factory, self.models, self.backoff, config.limits.retry_for
            )
        return self._models[key]

    async def aclose(self) -> None:
        """Close the clients of the running event loop."""
        for models in self._models.values():
            await models.aclose()


def environment_of(
    environment: Environment | None, models: Mapping[str, ChatSource] | None = None
) -> Environment:
    """Return an environment, the real world's where there is none, with these models beside its own."""
    env = environment or Environment()
    return replace(env, models={**env.models, **models}, _models={}) if models else env


@dataclass(frozen=True)
class NodeContext:
    """What a body may know beside the state."""

    env: Environment
    claim: Claim = field(default_factory=lambda: Claim(DebateConfig()))
    """The state's configuration, before it has one the run's `context`, with what it was granted."""
    debate: str = ""
    """Thread id; `""` without a checkpointer."""
    checkpoint: str = ""
    """Checkpoint that the node runs on."""
    nested: bool = False
    """Whether the debate is part of another graph."""


NodeBody = Callable[[ConversationState, NodeContext], Body]

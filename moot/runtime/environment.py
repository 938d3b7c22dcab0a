"""Dependencies of nodes: models, clock, token counter and catalogue. Tests pass plain functions."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from secrets import token_hex
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from moot.calls.model_calls import ModelCall, Reply
from moot.config import DebateConfig
from moot.config.boundary import Capability, CapabilityKind, Permissions
from moot.config.debate_config import fence_for
from moot.models.failures import Backoff
from moot.models.model_call import complete
from moot.models.registry import ChatSource, Factory, Models, make_model
from moot.retrieval.indexes import Indexes
from moot.state.conversation import FailedRun, StateValues
from moot.state.entries import JsonObject, memoize_by_identity
from moot.state.errors import DebateExists
from moot.state.reducers import add_totals
from moot.storage.catalogue import TOPIC_CHARS, DebateRow, row_usage
from moot.storage.inbox import with_questions
from moot.storage.records import Records
from moot.text.tokens import DEFAULT_ENCODING, TokenCounter, counter, encoding_for
from moot.tools.registry import GivenTools, given_tools

_WATCHED = frozenset({"status", "turn_count", "config"})
_DECIDED = frozenset({"status", "verdict", "config"})
"""State channels on which the result stored for a debate depends. The result includes the date for revisiting
the decision."""


def changes_catalogue(state: StateValues, update: StateValues) -> bool:
    """Return True if a state update changes information that the list of debates shows."""
    return bool(_WATCHED & update.keys()) or ("step" in update and not state.get("step"))


def record_progress(records: Records, debate: str, state: StateValues, update: StateValues, now: str) -> None:
    """Update a debate's status, turns and usage in the list. `open` adds a debate that is missing.

    A debate stays `new` until its first step, because LangGraph stores a node's update only after this call.
    """
    read = update.get("last_inbox_number") or state.get("last_inbox_number") or 0
    values = _values(with_questions(state, records.inbox.since(debate, read).question_usage), update)
    if "config" in update:
        topic = str(update.get("topic") or state.get("topic") or "")[:TOPIC_CHARS]
        row = DebateRow(
            id=debate,
            name=debate,
            topic=topic,
            protocol=update["config"]["protocol"],
            parent="",
            created_at=now,
            updated_at=now,
            **{**values, "status": "new"},
        )
        try:
            records.catalogue.add(row)
        except DebateExists:
            records.catalogue.update(debate, topic=topic, protocol=row.protocol)
    begun = "step" in update or state.get("step")
    if not begun and records.catalogue.is_new(debate):
        del values["status"]
    records.catalogue.update(debate, **values, updated_at=now)
    if not state.get("step") or _DECIDED & update.keys():
        records.results.note(debate, state, update)
        records.imports.delete_if_replaced(debate, update.get("verdict") or state.get("verdict"))
        records.follow_ups.note_revisit(debate, update.get("config"))


def _values(state: StateValues, update: StateValues) -> JsonObject:
    spent: dict[str, float] = add_totals(state.get("usage") or {}, [update.get("usage") or {}])
    return {
        "status": update.get("status") or state.get("status") or "running",
        "turns": update.get("turn_count", state.get("turn_count", 0)),
        **row_usage(spent),
    }


def record_failure(records: Records, debate: str, state: StateValues, failed: FailedRun) -> None:
    """Store a failed run of a debate, and mark the debate as failed in the list of debates."""
    records.failed.add(debate, failed)
    values = _values(records.with_pending_usage(debate, state), {"status": "failed"})
    records.catalogue.update(debate, **values, updated_at=failed.record["at"])


def utc_now() -> str:
    """Return the current UTC time as ISO 8601 text with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def new_fence(topic: str, seed: int | None, others: str) -> str:
    """Return a new debate's delimiter for quoted text, which occurs in no text that the debate starts with.

    It is secret, unless the debate has a seed: then equal debates send equal prompts.
    """
    return fence_for(topic, token_hex(16) if seed is None else f"{seed}\n", others)


class ProgressRecorder(Protocol):
    """Type of a function that updates the list of debates after a graph node has run."""

    def __call__(
        self, records: Records, debate: str, state: StateValues, update: StateValues, now: str
    ) -> None:
        """Update a debate's status, turns and usage in the list after a node has run."""
        ...


class Complete(Protocol):
    """Function that sends a request to a model. A provider's failure is returned in the reply."""

    async def __call__(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Make one model call, and return its reply."""
        ...


@lru_cache(maxsize=32)
def _largest(make_counter: Callable[[str], TokenCounter], encodings: tuple[str, ...]) -> TokenCounter:
    counters = [make_counter(encoding) for encoding in encodings]
    return counters[0] if len(counters) == 1 else lambda text: max(count(text) for count in counters)


@memoize_by_identity()
def encodings_in(config: DebateConfig, models: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the token encodings that a debate's models use."""
    names = (*config.model_names(), *models)
    return tuple(sorted({config.settings(name).encoding or encoding_for(name) for name in names}))


@dataclass(frozen=True)
class Environment:
    """Models, tools and other resources that graph nodes use."""

    factory: Factory = make_model
    """Function that creates a model client from a model's name and settings."""
    models: Mapping[str, ChatSource] = field(default_factory=dict)
    """LangChain models passed from Python code, keyed by name."""
    tools: GivenTools = field(default_factory=dict)
    """Tools passed from Python code, keyed by tool name."""
    complete: Complete = complete
    """Function that calls a model once and returns the reply."""
    on_progress: ProgressRecorder = record_progress
    """Function that updates the list of debates after a graph node has run."""
    default_config: Callable[[], DebateConfig] = DebateConfig
    """Function that returns the operator's configuration, which applies to runs without one of their own."""
    fence_for: Callable[[str, int | None, str], str] = new_fence
    """Function that returns a new debate's delimiter for quoted text, from its topic, seed and other text."""
    clock: Callable[[], str] = utc_now
    """Function that returns the current time as ISO 8601 text."""
    counter: Callable[[str], TokenCounter] = counter
    """Function that returns the token counter for an encoding."""
    backoff: Backoff = field(default_factory=Backoff)
    """Policy that determines how long to wait between attempts at a model call."""
    embeddings: Any = None
    """LangChain `Embeddings` object for retrieving older messages. It overrides
    `memory.retrieval.embeddings`."""
    indexes: Indexes = field(default_factory=Indexes, repr=False, compare=False)
    """Indexes for retrieving older messages. They belong to debates that run in this process."""
    _models: dict[str, Models] = field(default_factory=dict, repr=False, compare=False)

    def token_counter_for(self, config: DebateConfig | None = None, *models: str) -> TokenCounter:
        """Return a token counter that works for all models of a debate.

        If all models use the same encoding, the count is exact. Otherwise the count is the maximum over the
        encodings, so a prompt within its budget fits every model, including fallbacks.
        """
        return _largest(self.counter, encodings_in(config, models) if config else (DEFAULT_ENCODING,))

    @property
    def safe_capabilities(self) -> Collection[CapabilityKind | Capability]:
        """Capabilities, such as models, that the calling program provides without a grant."""
        capabilities: list[CapabilityKind | Capability] = [Capability("model", name) for name in self.models]
        capabilities += [] if self.factory is make_model else ["model", "endpoint", "command"]
        return (*capabilities, "embeddings") if self.embeddings is not None else capabilities

    def models_of(self, permissions: Permissions) -> Models:
        """Return a debate's clients, shared by debates with equal settings.

        Raises:
            ConfigError: a model, an endpoint or a command is not authorized.
        """
        config = permissions.authorize("model", "endpoint", "command")
        replies = (config.memory.budget.reply, config.judge.reply, config.blackboard.reply)
        largest = config.memory.budget.total + max(replies)
        key = repr((sorted(config.models.items()), config.limits.retry_for, largest))
        if key not in self._models:
            self._models[key] = Models(
                config.models,
                self.factory,
                self.models,
                self.backoff,
                config.limits.retry_for,
                largest_request=largest,
            )
        return self._models[key]

    async def aclose(self) -> None:
        """Close the model clients that belong to the running event loop."""
        for models in self._models.values():
            await models.aclose()


def make_environment(
    environment: Environment | None,
    models: Mapping[str, ChatSource] | None = None,
    tools: Mapping[str, BaseTool] | None = None,
) -> Environment:
    """Return an environment with additional models and tools.

    The given environment is not changed. `None`: the default environment.

    Raises:
        ConfigError: a tool is not a LangChain tool, or its name is invalid or taken.
    """
    env = environment or Environment()
    if tools:
        env = replace(env, tools={**env.tools, **given_tools(tools)}, _models={})
    return replace(env, models={**env.models, **models}, _models={}) if models else env

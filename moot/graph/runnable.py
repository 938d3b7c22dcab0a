"""The compiled graph as a runnable: leases, checks of input and updates, and unique message ids."""

import inspect
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.graph import Edge, Graph
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot, StateUpdate, TracePolicy

from moot import people
from moot.calls.concurrency import require_asyncio
from moot.config import DebateConfig
from moot.config.boundary import ClientConfig, UntrustedConfig
from moot.config.channel_values import check_channels, check_input, check_update
from moot.config.config_files import make_config
from moot.config.debate_config import frozen_config
from moot.config.model_settings import without_definitions
from moot.memory.summarizers.edits import SUMMARY_CHANNELS, edited_summaries
from moot.protocols.registry import check_names
from moot.runtime.background_loop import call_from_sync, enter_in_thread
from moot.runtime.context import node_context
from moot.runtime.environment import Environment
from moot.runtime.run_node import Node
from moot.runtime.telemetry import debate_span
from moot.state import langgraph_internals
from moot.state.conversation import ConversationInput, ConversationOutput, ConversationState, StateValues
from moot.state.entries import JsonObject, topic_text
from moot.state.errors import ConfigError, InputError
from moot.state.reducers import USER_PROVIDED, fold_window
from moot.storage.leases import lease_in, with_lease
from moot.storage.records import records_of

log = logging.getLogger(__name__)

UNBOUNDED: RunnableConfig = {"recursion_limit": 10**9}
"""LangGraph config with a `recursion_limit` that no debate reaches. It replaces the caller's limit.
LangGraph's default would end a debate at about 2,500 turns."""


def _traced_step(state: StateValues) -> JsonObject:
    step = state.get("step") or {}
    return {
        "turn_count": state.get("turn_count", 0),
        **{key: step.get(key) for key in ("number", "phase", "round")},
    }


BRIEF_CHANNELS = frozenset(
    {*ConversationOutput.__annotations__, "step", "round", "turn_count", "current_speaker", "usage"}
    | {"full_transcript", "rolling_summary"}
)
"""State channels that a shortened history contains, the transcript with its newest entries. With
`brief_history`, only the newest snapshot contains all channels."""

NODE_TRACING = TracePolicy(
    process_inputs=_traced_step, process_outputs=lambda update: {"writes": sorted(update or {})}
)
"""Tracing policy that keeps complete states out of traces. Traces show only the step and the names of the
written channels.

A whole state has up to a megabyte. The traced model calls hold the prompts and replies.
"""


class DebateGraph(CompiledStateGraph[ConversationState, DebateConfig, ConversationInput, ConversationOutput]):
    """Compiled debate graph that can also be a node of another LangGraph graph.

    The configuration bounds a run, so the caller's `recursion_limit` is ignored. A thread holds one debate: a
    new topic is refused before anything is written. A run leases its debate from start to end: a second run
    raises `DebateBusy`.
    """

    def __init__(
        self,
        *,
        environment: Environment | None = None,
        schemas: dict[str, JsonObject] | None = None,
        brief_history: bool = False,
        drawn_edges: Sequence[Edge] = (),
        **parts: Any,
    ) -> None:
        """Create a debate graph from the constructor arguments of LangGraph's `CompiledStateGraph`.

        With `brief_history`, earlier snapshots of a history hold only the channels that a chat shows.
        Drawings show the `drawn_edges` and their nodes, or else all edges between nodes that are no phase.
        """
        super().__init__(**parts)
        self.environment = environment or Environment()
        self.brief_history, self.drawn_edges = brief_history, drawn_edges
        self.schemas = {} if schemas is None else schemas
        """JSON Schemas `context`, `input` and `output` with field descriptions. Empty: LangGraph's own."""

    def get_context_jsonschema(self) -> JsonObject | None:
        """Return the context's schema. A server drops keys that are not in it."""
        return self.schemas.get("context") or super().get_context_jsonschema()

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> JsonObject:
        """Return the JSON Schema of the input that the graph accepts."""
        return self.schemas.get("input") or super().get_input_jsonschema(config)

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> JsonObject:
        """Return the JSON Schema of the graph's output."""
        return self.schemas.get("output") or super().get_output_jsonschema(config)

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return a drawable graph in which every node has a description."""
        return self._described(super().get_graph(config, xray=xray))

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Asynchronous version of `get_graph`."""
        return self._described(await super().aget_graph(config, xray=xray))

    def _described(self, drawing: Graph) -> Graph:
        phases = {
            name for name, spec in self.builder.nodes.items() if name != getattr(spec.runnable, "name", "")
        }
        drawing.edges[:] = self.drawn_edges or [
            edge for edge in drawing.edges if not {edge.source, edge.target} & phases
        ]
        for name in drawing.nodes.keys() - {end for edge in drawing.edges for end in edge[:2]}:
            del drawing.nodes[name]
        for name, spec in self.builder.nodes.items():
            if name in drawing.nodes and isinstance(spec.runnable, Node):
                description = (inspect.getdoc(spec.runnable.body) or "").partition("\n")[0]
                if name != spec.runnable.name:
                    description = f"Phase {name}. {description}"
                node = drawing.nodes[name]
                drawing.nodes[name] = node._replace(metadata={"description": description})
        return drawing

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Run the debate and yield its events while it runs. `invoke` and `batch` call this method, too."""
        with self._lease(config) as leased_config, debate_span(leased_config) as traced_config:
            input = _checked_input(input, config)
            if thread_config := self._config_of_thread(config):
                if _names_checkpoint(thread_config):
                    _require_checkpoint(self.get_state(thread_config))
                if settings := _context_settings(options.get("context")):
                    _tell_other_context(self.get_state(thread_config), settings)
                if _changes_state(input):
                    snapshot = self.get_state(thread_config)
                    input = _normalize_input(input, snapshot, self.environment)
            yield from super().stream(input, {**traced_config, **UNBOUNDED}, **options)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the debate asynchronously, like `stream`. Other loops than asyncio's: `InputError`."""
        require_asyncio("the graph")
        async with enter_in_thread(self._lease(config)) as leased_config:
            with debate_span(leased_config) as traced_config:
                input = _checked_input(input, config)
                if thread_config := self._config_of_thread(config):
                    if _names_checkpoint(thread_config):
                        _require_checkpoint(await self.aget_state(thread_config))
                    if settings := _context_settings(options.get("context")):
                        _tell_other_context(await self.aget_state(thread_config), settings)
                    if _changes_state(input):
                        input = _normalize_input(
                            input, await self.aget_state(thread_config), self.environment
                        )
                events = super().astream(input, {**traced_config, **UNBOUNDED}, **options)
                async with aclosing(events):  # type: ignore[type-var]  # a generator
                    async for event in events:
                        yield event

    async def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: JsonObject | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Yield the snapshots of a debate's history, newest first.

        A whole state of a long debate has hundreds of kilobytes, and chat clients fetch ten. With
        `brief_history`, only the newest snapshot is whole. `get_state` returns the whole state of any other.
        """
        is_newest = before is None
        snapshots = super().aget_state_history(config, filter=filter, before=before, limit=limit)
        async for snapshot in snapshots:
            if self.brief_history and not is_newest:
                brief_values = {key: value for key, value in snapshot.values.items() if key in BRIEF_CHANNELS}
                if transcript := brief_values.get("full_transcript"):
                    brief_values["full_transcript"] = people.brief_transcript(transcript)
                snapshot = snapshot._replace(values=brief_values)
            is_newest = False
            yield snapshot

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update a debate's state, and store changes to earlier messages as amendments.

        Raises:
            InputError: a value has another type than its channel. Nothing is written.
            ConfigError: `config` is not a valid configuration. Nothing is written.
        """
        # the API's own updates carry the lease
        untrusted = lease_in(langgraph_internals.merged_config(config)) is None
        with self._lease(config) as leased_config:
            if _needs_state(supersteps, untrusted=untrusted):
                snapshot = self.get_state(config)
                supersteps = self._normalize_updates(supersteps, snapshot, untrusted=untrusted)
            return super().bulk_update_state(leased_config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update a debate's state asynchronously, like `bulk_update_state`."""
        untrusted = lease_in(langgraph_internals.merged_config(config)) is None
        async with enter_in_thread(self._lease(config)) as leased_config:
            if _needs_state(supersteps, untrusted=untrusted):
                snapshot = await self.aget_state(config)
                supersteps = self._normalize_updates(supersteps, snapshot, untrusted=untrusted)
            return await super().abulk_update_state(leased_config, supersteps)

    def _normalize_updates(
        self, supersteps: Sequence[Sequence[StateUpdate]], snapshot: StateSnapshot, *, untrusted: bool
    ) -> list[list[StateUpdate]]:
        """Validate updates, and convert their messages to entries unless `plan` does."""
        values: JsonObject = {**snapshot.values}
        if _names_checkpoint(snapshot.config):
            _require_checkpoint(snapshot)

        def normalize(update: StateUpdate) -> StateUpdate:
            if not isinstance(update.values, dict):
                if untrusted and update.values is not None:
                    raise InputError(
                        "the state update is not a mapping: give a mapping from channel names to values"
                    )
                return update
            changes = _checked_update(update.values, values, self.environment) if untrusted else update.values
            clears = changes.get("rolling_summary") == {}
            if untrusted and (clears or update.as_node is None):
                update = update._replace(as_node=self._node_to_update_as(snapshot, summarizes=clears))
            changes = people.normalize_update(people.with_message_ids(changes), values)
            if values.get("config") and set(snapshot.next) - {"open", "plan"} and not snapshot.interrupts:
                env = self.environment
                changes = people.ingest_messages(
                    changes, node_context(env, cast(ConversationState, values)), env.clock()
                )
                values["full_transcript"] = [*values["full_transcript"], *changes.get("full_transcript", ())]
                values["messages"] = fold_window(values["messages"], [changes.get("messages", [])])
            return update._replace(values=changes)

        return [[normalize(update) for update in superstep] for superstep in supersteps]

    def node_before(self, node: str) -> str:
        """Return a node with an edge to `node`, `open` last, because the input decides its edge."""
        edges = [edge for edge in super().get_graph().edges if edge.target == node]
        order = [each for each in self.builder.nodes if each != "open"] + ["open", START]
        return min(edges, key=lambda edge: (edge.conditional, order.index(edge.source))).source

    def _node_to_update_as(self, snapshot: StateSnapshot, *, summarizes: bool = False) -> str | None:
        """Return the `as_node` for a client's state update that sets none.

        The node that runs next stays the same. With `summarizes`, the messages that left the window are
        summarized first, and a planned step is planned again.

        `None`: LangGraph chooses the node. It would choose `__start__` for a fork or an import, which would
        open the debate again.
        """
        if not snapshot.values.get("config") or "open" in snapshot.next:
            return None
        if snapshot.next:
            first = snapshot.next[0]
            return "turn" if summarizes and first != "clarify" else self.node_before(first)
        return None if snapshot.tasks else "close"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the debate until it ends or pauses, and return its output."""
        return _output_for_parent(super().invoke(input, config, **options), input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the debate asynchronously and return its output, like `invoke`."""
        return _output_for_parent(await super().ainvoke(input, config, **options), input, config)

    async def aclose(self) -> None:
        """Close the event loop's model connections, if its `asyncio.run` does not end soon."""
        await self.environment.aclose()

    def close(self) -> None:
        """Close the model connections that synchronous calls opened."""
        call_from_sync(self.environment.aclose)

    def _config_of_thread(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Return the config of this run's thread, if it has one and no parent graph."""
        merged = langgraph_internals.merged_config(self.config, config)
        has_thread = "thread_id" in merged["configurable"] and not langgraph_internals.runs_in_task(merged)
        return {"configurable": merged["configurable"]} if self.checkpointer and has_thread else None

    @contextmanager
    def _lease(self, config: RunnableConfig | None) -> Iterator[RunnableConfig]:
        """Lock a debate for writing during a `with` block.

        The yielded config contains the exclusive write lease. A config that has a lease already is yielded as
        is.

        Raises:
            InputError: no thread is given, or a client's config has keys that only a parent graph may set.
        """
        merged = langgraph_internals.merged_config(self.config, config)
        _check_place(merged)
        saver, configurable = (
            langgraph_internals.checkpointer_in(merged) or self.checkpointer,
            merged["configurable"],
        )
        thread_id = configurable.get("thread_id")
        if isinstance(saver, BaseCheckpointSaver) and not thread_id:
            raise InputError(
                "this graph's checkpointer needs a thread id: pass the config "
                "{'configurable': {'thread_id': 'a UUID'}}, or build the graph without a checkpointer"
            )
        if not isinstance(saver, BaseCheckpointSaver) or lease_in(merged):
            yield config or {}
            return
        leases = records_of(saver).leases
        with leases.hold(str(thread_id), configurable.get("checkpoint_ns", "")) as lease:
            yield with_lease(config or {}, lease)


def _checked_input(graph_input: object, config: RunnableConfig | None) -> object:
    """Check a run's input, and add an id to every message without one.

    Raises:
        InputError: a key is unknown, a value has another type than its channel, or a command chooses the next
            node.
    """
    if isinstance(graph_input, Command):
        if graph_input.goto:
            raise InputError(
                "goto: a command cannot choose the debate's next node: send the command without `goto`"
            )
        update = graph_input.update
        if not update and graph_input.resume is None:
            raise InputError("the command is empty: set its field `update` or `resume`")
        if update is None:
            return replace(graph_input, goto=())
        if isinstance(update, list | tuple) and all(isinstance(each, tuple) for each in update):
            update = dict(update)
        if not isinstance(update, Mapping):
            raise InputError("update: this field of a command must be a mapping from channel names to values")
        check_channels(update)
        # A server sends `goto: null`, which LangGraph refuses on a new thread.
        return replace(graph_input, update=people.with_message_ids(update), goto=())
    if not isinstance(graph_input, Mapping):
        return graph_input
    check_input(graph_input, of_parent=_is_subgraph(config))
    return people.with_message_ids(graph_input)


def _output_for_parent(output: Any, graph_input: Any, config: RunnableConfig | None) -> Any:
    """Return a run's output for a parent graph, without the messages that the parent has."""
    if not _is_subgraph(config) or not isinstance(output, dict) or "messages" not in output:
        return output
    input_messages = graph_input.get("messages") if isinstance(graph_input, Mapping) else None
    known_ids = {message.id for message in convert_to_messages(input_messages or [])}
    own_messages = [
        message
        for message in output["messages"]
        if isinstance(message, AIMessage)
        and message.id not in known_ids | {None}
        and not message.additional_kwargs.get(USER_PROVIDED)
    ]
    return {**output, "messages": own_messages}


_TRANSCRIPT_KEYS = ("topic", "full_transcript", "messages")


def _is_subgraph(config: RunnableConfig | None) -> bool:
    """Return True if the debate runs as a node of a parent graph."""
    return langgraph_internals.runs_in_task(langgraph_internals.merged_config(config))


def _check_place(config: RunnableConfig) -> None:
    """Raise an error if a client sets config keys that only a parent graph may set.

    LangGraph would write to the thread's own debate all the same. `checkpoint_map` would replace
    `checkpoint_id`.

    Raises:
        InputError: `checkpoint_ns`, `checkpoint_map` or an internal key is given. The message names it.
    """
    if langgraph_internals.set_by_parent(config):
        return
    if keys := langgraph_internals.parent_keys_in(config):
        raise InputError(
            f"{keys[0]}: only a parent graph can set this config key: remove the key from the request"
        )
    configurable = config["configurable"]
    if checkpoint_map := configurable.get("checkpoint_map"):
        root_item = ("", configurable.get("checkpoint_id"))
        if not isinstance(checkpoint_map, Mapping) or any(
            item != root_item for item in checkpoint_map.items()
        ):
            raise InputError(
                "checkpoint_map: only a parent graph can set this config key: set `checkpoint_id` instead"
            )


def _names_checkpoint(config: RunnableConfig) -> bool:
    """Return True if the config contains the id of a checkpoint."""
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _require_checkpoint(snapshot: StateSnapshot) -> None:
    """Refuse a checkpoint that does not exist: LangGraph would start another debate."""
    if snapshot.created_at is None:
        checkpoint_id = snapshot.config["configurable"]["checkpoint_id"]
        raise InputError(f"checkpoint_id: the debate has no checkpoint {checkpoint_id!r}")


def _changes_state(graph_input: object) -> bool:
    """Return True if a run's input contains a topic, entries, messages or a state update."""
    if isinstance(graph_input, Command):
        return bool(graph_input.update)
    return isinstance(graph_input, Mapping) and any(graph_input.get(key) for key in _TRANSCRIPT_KEYS)


def _context_settings(context: object) -> JsonObject:
    """Return the settings in a run's context as JSON, or raise a `ConfigError` that says what is wrong."""
    if isinstance(context, DebateConfig):
        return without_definitions(context.to_json())
    if context is None or isinstance(context, ClientConfig | UntrustedConfig):
        return {}
    if not isinstance(context, Mapping):
        raise ConfigError(f"context: {context!r:.60} is not a configuration: pass a `DebateConfig`")
    requested = UntrustedConfig.model_validate(dict(context)).requested_settings
    settings = without_definitions(make_config(requested).to_json())
    return {key: settings[key] for key in requested if key in settings}


def _tell_other_context(snapshot: StateSnapshot, settings: JsonObject) -> None:
    """Warn if a run's context differs from the debate's stored configuration, which it keeps."""
    if not (stored_config := snapshot.values.get("config")):
        return
    stored_config = without_definitions(stored_config)
    if differences := sorted(key for key in settings if stored_config.get(key) != settings[key]):
        log.warning(
            "the debate keeps the configuration that it started with; the context differs in %s: change it "
            "with `update_state`, or start another debate",
            ", ".join(differences),
        )


def _needs_state(supersteps: Sequence[Sequence[StateUpdate]], *, untrusted: bool) -> bool:
    """Return True if any of the updates must be checked against the stored state."""
    if untrusted:
        return True
    updates = (update.values for superstep in supersteps for update in superstep)
    return any(
        isinstance(values, dict) and not people.CHECKED_CHANNELS.isdisjoint(values) for values in updates
    )


def _checked_update(update: Mapping[str, Any], state: StateValues, env: Environment) -> JsonObject:
    """Validate a client's state update, and return the values to store in the state.

    Raises:
        InputError: the update is not valid. The message names the channel.
        ConfigError: `config` is not valid, or names an unknown protocol, rubric or summarizer.
    """
    checked_values = check_update(update, state)
    if "config" in checked_values:
        try:
            check_names(frozen_config(checked_values))
        except ConfigError as error:
            raise ConfigError(f"config: {error}") from error
    if SUMMARY_CHANNELS & checked_values.keys():
        context = node_context(env, cast(ConversationState, state))
        checked_values |= edited_summaries(checked_values, context, env.clock())
    return checked_values


def _normalize_input(graph_input: Any, snapshot: StateSnapshot, env: Environment) -> object:
    """Convert a run's input to a valid state update.

    The input contains messages or transcript entries.

    Raises:
        InputError: the thread's debate has another topic, or a command's update is not valid.
        ConfigError: a command's `config` is not a valid configuration.
    """
    if isinstance(graph_input, Command):
        update = _checked_update(graph_input.update or {}, snapshot.values, env)
        if update.get("rolling_summary") == {}:
            raise InputError(
                "rolling_summary: a command cannot clear it without a gap in a prompt: use `update_state`"
            )
        return replace(graph_input, update=people.normalize_update(update, snapshot.values))
    topic = snapshot.values.get("topic") if snapshot.values.get("config") else None
    if topic and graph_input.get("topic") and topic_text(graph_input["topic"]) != topic_text(topic):
        raise InputError(
            f"this thread already has a debate about {topic!r}: start another debate on a new thread, or "
            "send a message to this debate"
        )
    return people.normalize_update(graph_input, snapshot.values)

"""The graph: what Studio draws, and what every run goes through."""

from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import lru_cache
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot, StateUpdate, TracePolicy

from moot.graph.routes import WHY, Route
from moot.nodes.clarify import clarify
from moot.nodes.close import close
from moot.nodes.driving.driver import Node
from moot.nodes.driving.environment import Environment, NodeBody, environment_of
from moot.nodes.driving.portal import entered_in_thread
from moot.nodes.driving.spans import debate_span
from moot.nodes.judge import judge
from moot.nodes.models.registry import ChatSource
from moot.nodes.open import open_debate
from moot.nodes.people.interjections import SETTLED, settle_update, take_up_now
from moot.nodes.plan import plan
from moot.nodes.record import record
from moot.nodes.reflect import reflect
from moot.nodes.summarize import summarize
from moot.nodes.trim import trim
from moot.nodes.turn import turn
from moot.state.config import DebateConfig
from moot.state.config.boundary import ForeignConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationInput, ConversationOutput, ConversationState, StateValues
from moot.state.entries import JsonObject, topic_text
from moot.state.errors import InputError
from moot.state.langgraph_internals import checkpointer_in
from moot.state.leases import lease_in, with_lease
from moot.state.records import records_of
from moot.state.reducers import GIVEN, fold_window
from moot.state.settings import variable

UNBOUNDED: RunnableConfig = {"recursion_limit": 10**9}
"""LangGraph's default would end a debate at about 2,500 turns."""

NODES: Mapping[str, NodeBody] = {
    "open": open_debate,
    "plan": plan,
    "clarify": clarify,
    "turn": turn,
    "record": record,
    "trim": trim,
    "summarize": summarize,
    "reflect": reflect,
    "judge": judge,
    "close": close,
}


def _step_of(state: StateValues) -> JsonObject:
    step = state.get("step") or {}
    return {
        "turn_count": state.get("turn_count", 0),
        **{key: step.get(key) for key in ("no", "phase", "round")},
    }


def _writes_of(update: Mapping[str, object] | None) -> JsonObject:
    return {"writes": sorted(update or {})}


TRACED = TracePolicy(process_inputs=_step_of, process_outputs=_writes_of)
"""What traces record of a node: whole states come to a megabyte a turn, and the model runs have the words."""


class DebateGraph(CompiledStateGraph[ConversationState, DebateConfig, ConversationInput, ConversationOutput]):
    """The compiled graph, which runs wherever a runnable runs: in batches, sequences and other graphs.

    What ends a debate is its configuration, so that a caller's recursion limit, 25 where nobody set one, has
    no say. A thread has one debate; a new topic is refused before anything is written. A run holds its debate
    from its beginning to its end: a second one raises `DebateBusy`.
    """

    def __init__(
        self,
        *,
        environment: Environment | None = None,
        schemas: dict[str, JsonObject] | None = None,
        **parts: Any,
    ) -> None:
        """Make one of a compiled graph's parts."""
        super().__init__(**parts)
        self.environment = environment or Environment()
        self.schemas = {} if schemas is None else schemas
        """`context`, `input` and `output` with every field's meaning, where a server had them made."""

    def get_context_jsonschema(self) -> JsonObject | None:
        """Return the configuration's schema; a server drops from a request what it does not find in it."""
        return self.schemas.get("context") or super().get_context_jsonschema()

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> JsonObject:
        """Return the input's schema."""
        return self.schemas.get("input") or super().get_input_jsonschema(config)

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> JsonObject:
        """Return the output's schema."""
        return self.schemas.get("output") or super().get_output_jsonschema(config)

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Run the debate, yielding what happens; `invoke`, `batch` and the rest run through here."""
        with self._hold(config) as lent, debate_span(lent) as held:
            if self.checkpointer and _touches_what_was_said(input, config):
                input = _settle_input(input, self.get_state(config or {}))
            yield from super().stream(input, {**held, **UNBOUNDED}, **options)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Run the debate like `stream`."""
        async with entered_in_thread(self._hold(config)) as lent:
            with debate_span(lent) as held:
                if self.checkpointer and _touches_what_was_said(input, config):
                    input = _settle_input(input, await self.aget_state(config or {}))
                parts = super().astream(input, {**held, **UNBOUNDED}, **options)
                async with aclosing(parts):  # type: ignore[type-var]  # a generator
                    async for part in parts:
                        yield part

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Write into a debate's state, as `update_state` does: changed words become amendments."""
        with self._hold(config) as held:
            if _needs_state(supersteps):
                supersteps = self._settle_updates(supersteps, self.get_state(config))
            return super().bulk_update_state(held, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Write into a debate's state like `bulk_update_state`."""
        async with entered_in_thread(self._hold(config)) as held:
            if _needs_state(supersteps):
                supersteps = self._settle_updates(supersteps, await self.aget_state(config))
            return await super().abulk_update_state(held, supersteps)

    def _settle_updates(
        self, supersteps: Sequence[Sequence[StateUpdate]], snapshot: StateSnapshot
    ) -> list[list[StateUpdate]]:
        """Return updates as the debate takes them: entries at once where it is not `plan` that comes next."""
        values: JsonObject = {**snapshot.values}

        def settle(update: StateUpdate) -> StateUpdate:
            if not isinstance(update.values, dict):
                return update
            given = settle_update(update.values, values)
            if values.get("config") and set(snapshot.next) - {"open", "plan"} and not snapshot.interrupts:
                env = self.environment
                given = take_up_now(given, values, env.clock(), env.count_for(frozen_config(values)))
                values["full_transcript"] = [*values["full_transcript"], *given.get("full_transcript", ())]
                values["messages"] = fold_window(values["messages"], [given.get("messages", [])])
            return update._replace(values=given)

        return [[settle(update) for update in superstep] for superstep in supersteps]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the debate and return its output."""
        return _for_parent(super().invoke(input, config, **options), input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the debate like `invoke`."""
        return _for_parent(await super().ainvoke(input, config, **options), input, config)

    @contextmanager
    def _hold(self, config: RunnableConfig | None) -> Iterator[RunnableConfig]:
        """Hold the debate of a run's config, unless the config carries its lease; yield one that does."""
        whole = ensure_config(merge_configs(self.config, config))
        saver, place = checkpointer_in(whole) or self.checkpointer, whole["configurable"]
        if not isinstance(saver, BaseCheckpointSaver) or not place.get("thread_id") or lease_in(whole):
            yield config or {}
            return
        leases = records_of(saver).leases
        with leases.holding(str(place["thread_id"]), place.get("checkpoint_ns", "")) as lease:
            yield with_lease(config or {}, lease)


def _for_parent(output: Any, given: Any, config: RunnableConfig | None) -> Any:
    """Return a debate's output; within another graph with its own messages alone, under ids unique there.

    Entries are numbered in each debate anew, and a graph's messages replace each other by id.
    """
    place = ensure_config(config).get("configurable", {}).get("checkpoint_ns", "")
    if not place or not isinstance(output, dict) or "messages" not in output:
        return output
    known = {message.id for message in convert_to_messages((given or {}).get("messages") or [])}
    own = [m for m in output["messages"] if isinstance(m, AIMessage) and m.id not in known | {None}]
    mark = place.rpartition(":")[2][-12:]
    renamed = [
        message.model_copy(update={"id": f"{message.id}-{mark}"})
        for message in own
        if not message.additional_kwargs.get(GIVEN)
    ]
    return {**output, "messages": renamed}


def _touches_what_was_said(given: object, config: RunnableConfig | None) -> bool:
    """Return whether a run on a thread of its own brings a topic, or what may have been said already."""
    place = (config or {}).get("configurable", {})
    own = "thread_id" in place and not place.get("checkpoint_ns")
    return own and isinstance(given, Mapping) and any(given.get(key) for key in _SAID)


_SAID = ("topic", "full_transcript", "messages")


def _needs_state(supersteps: Sequence[Sequence[StateUpdate]]) -> bool:
    """Return whether an update has to be held against the state, which takes loading it."""
    updates = (update.values for superstep in supersteps for update in superstep)
    return any(isinstance(values, dict) and not SETTLED.isdisjoint(values) for values in updates)


def _settle_input(given: Mapping[str, Any], snapshot: StateSnapshot) -> JsonObject:
    """Return a run's input as the thread's debate takes it.

    Raises:
        InputError: it is another topic's.
    """
    known = snapshot.values.get("topic") if snapshot.values.get("config") else None
    if known and given.get("topic") and topic_text(given["topic"]) != topic_text(known):
        raise InputError(
            f"this thread's debate is about {known!r}: begin another on a new thread, or say more to this "
            "one with a message"
        )
    return settle_update(given, snapshot.values)


def build_graph(
    checkpointer: BaseCheckpointSaver[Any] | Literal[False] | None = None,
    *,
    store: BaseStore | None = None,
    environment: Environment | None = None,
    models: Mapping[str, ChatSource] | None = None,
) -> DebateGraph:
    """Compile the debate graph.

    Args:
        checkpointer: where debates are kept; `None` for none, or for the server's own.
        store: where debaters' memories across debates are kept; `None` for none, or for the server's own.
        environment: models, clock and counters; the default reaches models by their names.
        models: LangChain chat models, or functions that make them, by the names that a configuration has
            for them.

    Returns:
        A graph for `invoke`, `stream`, `ainvoke` and `astream`, with `{"topic": …}` as input,
        `{"configurable": {"thread_id": …}}` as config and a `DebateConfig` as `context`. A `context` that is
        a dict, as servers pass their requests on, is foreign: it says what is data, no more.
    """
    env = environment_of(environment, models)
    builder = StateGraph(
        ConversationState,
        context_schema=cast(type[DebateConfig], ForeignConfig),
        input_schema=ConversationInput,
        output_schema=ConversationOutput,
    )
    for name, body in NODES.items():
        builder.add_node(name, Node(name, body, env), trace_policy=TRACED)
    builder.add_edge(START, "open")
    for name, why in WHY.items():
        leads_to: dict[Hashable, str] = {reason: following for following, reason in why.items()}
        builder.add_conditional_edges(name, Route(name, env), leads_to)
    builder.add_edge("reflect", "plan")
    builder.add_edge("close", END)
    compiled = builder.compile(checkpointer=checkpointer, store=store, name="debate")
    parts = {key: value for key, value in vars(compiled).items() if key != "__orig_class__"}
    return DebateGraph(environment=env, **parts)


def operators_config() -> DebateConfig:
    """Return what the operator's file and environment say, `MOOT_CONFIG` and `MOOT_MODEL`: read once.

    Raises:
        ConfigError: the file cannot be used.
    """
    return _operators_config(variable("MOOT_CONFIG"), variable("MOOT_MODEL"))


@lru_cache(maxsize=1)
def _operators_config(path: str | None, model: str | None) -> DebateConfig:
    from moot.graph.operator_config import usual_config

    return usual_config(None, {})


graph = build_graph(environment=Environment(usual=operators_config))
"""The graph for `langgraph.json`; the server brings the checkpointer, its operator the rest."""

"""Session of a debate: checks before model calls, the open database, events, proposed debaters."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from moot.calls.effects import CallGenerator, is_pause
from moot.config import DebateConfig, slug
from moot.config.boundary import Permissions
from moot.config.config_files import make_config, with_settings
from moot.config.debate_config import frozen_config
from moot.config.model_settings import OFFLINE
from moot.config.participants import RESERVED_IDS, DebaterConfig, unique_slug, unreserved_name
from moot.configuration import authorize, check_names
from moot.graph.debate import PHASE_NODES
from moot.graph.runnable import DebateGraph
from moot.memory.summarizers.registry import FALLBACK_SUMMARIZER, asks_model
from moot.memory.window import WindowLimits
from moot.models.endpoints import OTHER_MODEL
from moot.models.model_call import complete
from moot.prompts.request import counter_of, make_call, many, model_params
from moot.prompts.templates import load_prompt_template
from moot.prompts.truncation import Block, problem_token_limit, truncate_blocks
from moot.protocols.base import TOKENS_PER_WORD, TURN_WORDS
from moot.protocols.prompt_context import shared_prefix_tokens
from moot.protocols.registry import protocol_named, turns_planned
from moot.retrieval.indexes import embeddings_of
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import JournalPosition, run_to_end
from moot.runtime.telemetry import within_langsmith_root
from moot.state.conversation import ConversationInput, StepKind, check_schema_version
from moot.state.entries import Entry, JsonObject, clean_text
from moot.state.errors import ConfigError, ModelError
from moot.storage.leases import Lease, with_lease
from moot.storage.records import Records
from moot.storage.sqlite import reading
from moot.text.plain_text import break_template_tokens, count_noun
from moot.text.tokens import TokenCounter
from moot.tools.registry import check_tools

if TYPE_CHECKING:
    from langsmith.run_trees import RunTree


Values = Mapping[str, Any]
"""Values of a debate's LangGraph state, keyed by channel name."""


@dataclass(frozen=True)
class DebateSession:
    """Resources that an operation on a debate needs, such as the graph and the environment."""

    graph: DebateGraph
    records: Records
    environment: Environment
    thread: str = ""
    """LangGraph thread id of the debate, or `""` if the session belongs to no particular debate."""
    lease: Lease | None = None
    """Lease that allows this session to write to the debate, or `None` if the session is read-only."""
    extensions: tuple[int, ...] = ()
    """Numbers of turns by which to extend a replayed debate. One extension is made each time that the debate
    ends."""
    roots: dict[str, RunTree] = field(default_factory=dict, repr=False, compare=False)
    """LangSmith root traces for debates that were created but have not run yet, keyed by debate id."""
    loaded: dict[str, tuple[object, StateSnapshot]] = field(default_factory=dict, repr=False, compare=False)
    """Cache of the state that was loaded last, keyed by debate id. Each state is stored with its version."""

    def on(self, thread: str) -> DebateSession:
        """Return a session for the debate with the given thread id in the same database."""
        return replace(self, thread=thread)

    @property
    def run_config(self) -> RunnableConfig:
        """LangGraph `config` for running this debate. It includes the lease if the session has one."""
        config: RunnableConfig = {"configurable": {"thread_id": self.thread}}
        return with_lease(config, self.lease) if self.lease else config

    @property
    def name(self) -> str:
        """Name that the user gave the debate with `--id`, or the debate's id."""
        return self.records.catalogue.name_of(self.thread)

    @property
    def beside_graph(self) -> JournalPosition:
        """Journal position for model calls outside the debate's graph.

        The rate limits of the database and the group's budget apply to these calls. The journal does not
        store their replies.
        """
        records = None if self.records.sql.read_only else self.records
        return JournalPosition(records, self.thread, stores_replies=False)

    def permissions(self, values: Values, operators: DebateConfig | None = None) -> Permissions:
        """Return the permissions of a debate with the given state values.

        The permissions combine the debate's configuration with the capabilities that were granted to the
        debate and those in the operator's configuration.
        """
        env, granted = self.environment, self.records.grants.of(self.thread) if self.thread else ()
        operator = operators or env.default_config()
        return authorize(frozen_config(values), operator, granted, env.safe_capabilities)

    def state(self, checkpoint: str = "") -> StateSnapshot:
        """Return the debate's LangGraph state snapshot at a checkpoint.

        The default is the latest checkpoint.

        The next node is `turn` in place of a phase's node, which a debate of another graph has.

        Raises:
            InputError: An incompatible version of Moot stored the debate.
            StorageError: The stored state is damaged.
        """
        selection = {"checkpoint_id": checkpoint} if checkpoint else {}
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, **selection}}
        with reading("the state of the debate"):
            snapshot = call_from_sync(self.graph.aget_state if checkpoint else self._latest, config)
        check_schema_version(snapshot.values)
        return snapshot._replace(
            next=tuple("turn" if node in PHASE_NODES else node for node in snapshot.next)
        )

    def checkpoints(self, source: str = "") -> AsyncIterator[CheckpointTuple]:
        """Yield the debate's checkpoints, newest first.

        `source` limits the checkpoints to those with this LangGraph source, such as `update`.
        """
        saver = cast(BaseCheckpointSaver[str], self.graph.checkpointer)
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, "checkpoint_ns": ""}}
        return saver.alist(config, filter={"source": source} if source else None)

    async def _latest(self, config: RunnableConfig) -> StateSnapshot:
        """Return the latest state snapshot, from the cache if it is up to date."""
        checkpoint_tuple = await cast(BaseCheckpointSaver[str], self.graph.checkpointer).aget_tuple(config)
        version = (
            (checkpoint_tuple.checkpoint["id"], checkpoint_tuple.pending_writes) if checkpoint_tuple else None
        )
        cached_version, snapshot = self.loaded.get(self.thread, (None, None))
        if snapshot is None or cached_version != version:
            snapshot = await self.graph.aget_state(config)
            self.loaded.clear()
            self.loaded[self.thread] = version, snapshot
        return snapshot._replace(values={**snapshot.values})

    def caught_up(self) -> StateSnapshot:
        """Return the latest state snapshot of a debate, after completing an interrupted step.

        A step is interrupted if its run died after the step's work but before its checkpoint was written.
        Updating the state of an unfinished step would start a second branch.
        """
        snapshot = self.state()
        if not snapshot.next and not is_over(snapshot):
            self.advance(interrupt_before="*")
            snapshot = self.state()
        return snapshot

    def advance(self, graph_input: Values | None = None, **options: Any) -> None:
        """Run the debate's graph until it is interrupted or ends."""
        typed_input = cast(ConversationInput | None, graph_input)

        async def run() -> None:
            with within_langsmith_root(self.roots.get(self.thread)):
                await self.graph.ainvoke(typed_input, self.run_config, durability="sync", **options)

        call_from_sync(run)

    def update(self, values: Values, following: Sequence[str] = ()) -> None:
        """Write the given values to the debate's stored LangGraph state.

        The next nodes stay the same unless `following` names other nodes.

        Open questions to people are asked again, because an update drops them.
        """
        snapshot = self.state()
        next_nodes = following or snapshot.next
        self.update_after(self.graph.node_before(next_nodes[0]) if next_nodes else "close", values)
        if not following and any(not is_pause(each.value) for each in snapshot.interrupts):
            self.advance()  # earlier replies come from the journal

    def update_after(self, node: str, values: Values) -> None:
        """Update the state as if the given node had written the values.

        The successor of this node runs next.
        """
        call_from_sync(self.graph.aupdate_state, self.run_config, dict(values), node)

    def note_status(self, status: str) -> None:
        """Store the debate's new status in the catalogue."""
        self.records.catalogue.update(self.thread, status=status, updated_at=self.environment.clock())

    @contextmanager
    def writing(self) -> Iterator[DebateSession]:
        """Yield a session that may write to the debate.

        The debate's lease is held until the `with` block ends.

        Raises:
            DebateBusy: Another run writes the debate, in this process or another.
        """
        if self.lease:
            yield self
            return
        with self.records.leases.hold(self.thread) as lease:
            yield replace(self, records=self.records.fenced_by(lease), lease=lease)


def is_over(snapshot: StateSnapshot) -> bool:
    """Return True if the state snapshot of a debate has no tasks left, so that the debate is over.

    `next` is not enough: it is also empty if a process died between a node's writes and the next checkpoint.
    Such a step still has its task.
    """
    return not snapshot.tasks


def filled_channels(values: Values) -> dict[str, Any]:
    """Return the state channels whose values are not empty."""
    return {key: value for key, value in values.items() if value not in ({}, [], "")}


class TokenEvent(TypedDict):
    """Event with a part of a message that a debater's model is streaming."""

    event: Literal["token"]
    id: str
    """Id of the transcript entry that will contain the streamed message."""
    speaker: str
    """Id of the debater who writes the streamed message."""
    text: str
    replaces: NotRequired[bool]
    """True if the text replaces all earlier parts of the message, which were the model's reasoning."""


class EntryEvent(TypedDict):
    """Event for a new entry in the transcript."""

    event: Literal["entry"]
    entry: Entry


class StepEvent(TypedDict):
    """Event that marks the start of a debate step."""

    event: Literal["step"]
    number: int
    kind: StepKind
    phase: str
    round: int
    speakers: list[str]
    """Ids of the debaters who speak in this step."""


class SummaryEvent(TypedDict):
    """Event for a new version of a summary, or for a failed attempt to write one."""

    event: Literal["summary"]
    owner: str
    """Id of the debater whose perspective is summarised, or `""` for a summary shared by all debaters."""
    kind: NotRequired[str]
    version: NotRequired[int]
    """Version number of the new summary. It is missing if there is no new version."""
    method: NotRequired[str]
    failure: NotRequired[str]
    """Error message of the configured summarizer if it failed."""


class CruxEvent(TypedDict):
    """Event for a new crux card.

    A crux card is the result of a side discussion between two debaters.
    """

    event: Literal["crux"]
    card: str
    """Id of the crux card that records the side discussion."""
    resolved: bool


class VerdictEvent(TypedDict):
    """Event that reports the verdict of the judges."""

    event: Literal["verdict"]
    status: Literal["ok", "failed"]
    winner: str


class RetryEvent(TypedDict):
    """Event for a failed model call that will be retried after a wait."""

    event: Literal["retry"]
    model: str
    why: str
    words: str
    """Message to the user about the failure and about what happens next."""
    wait_s: float


class StoreFailedEvent(TypedDict):
    """Event for a failure of the LangGraph store for cross-debate memory. The debate continues without it."""

    event: Literal["store_failed"]
    error: str


class EndEvent(TypedDict):
    """Event that marks the end of the debate."""

    event: Literal["end"]
    status: Literal["done", "limit"]
    reason: str


Event = (
    TokenEvent
    | EntryEvent
    | StepEvent
    | SummaryEvent
    | CruxEvent
    | VerdictEvent
    | RetryEvent
    | StoreFailedEvent
    | EndEvent
)
"""Union of all events that a running debate emits. The key `event` holds its kind."""


_PLACEHOLDER = re.compile(r"\{\{?[A-Za-z_]\w*\}\}?")

NO_JUDGE = (
    "no judge model is set, and the default `offline` model cannot judge messages of people or models: "
    "set one with --model (in a file: judge.model), or `offline` for placeholders"
)


def check_config(permissions: Permissions, environment: Environment, *, imports: bool = True) -> DebateConfig:
    """Check that everything named in the configuration can be used.

    This includes models and tools. Return the configuration with the definitions of the tools of MCP servers.

    The configuration has to be authorized first. With `imports`, modules that it names are imported as a
    test.

    Raises:
        ConfigError: The configuration is invalid. The message says what to do.
    """
    config = permissions.authorize()
    check_names(config)
    checked = check_tools(config, environment.token_counter_for(config), environment.tools)
    if imports:
        embeddings_of(permissions, environment.embeddings)
    models = environment.models_of(permissions)
    if config.limits.cost_usd is not None and (unpriced := models.names_without_price(config.model_names())):
        raise ConfigError(  # without prices the limit cannot be enforced
            "limits.cost_usd needs prices: set input_usd_per_million and output_usd_per_million "
            f"(0 for a free model) under `models` for {', '.join(map(repr, unpriced))}"
        )
    if environment.complete is complete:  # other functions than the default call no provider
        models.check(config.model_names())
    return config.model_copy(update={"mcp_servers": checked.mcp_servers}) if config.mcp_servers else config


def check_judges(config: DebateConfig, models: Iterable[str], environment: Environment) -> None:
    """Raise an error if the `offline` model would judge a real debate.

    In a real debate, messages come from people or from other models. `models` are the models of the messages;
    `""` is a person.

    Raises:
        ConfigError: A judge has no model.
    """
    judge = config.judge
    is_judge_unset = config.model == OFFLINE and not all(spec.model or judge.model for spec in judge.judges())
    if is_judge_unset and environment.complete is complete and set(models) - {OFFLINE}:
        raise ConfigError(NO_JUDGE)


def warnings_about(config: DebateConfig) -> list[str]:
    """Return warnings about valid settings that are probably mistakes."""
    unused = sorted(config.models.keys() - set(config.model_names()))
    used = ", ".join(map(repr, config.model_names()))
    warnings = [f"models.{name}: this debate uses no model with this name; it uses {used}" for name in unused]

    turns = turns_planned(config) if config.interjections else None
    late = [each.after for each in config.interjections if turns is not None and each.after >= turns]
    if late:
        warnings.append(
            f"interjections: after {count_noun(late[0], 'turn')} is too late, because the debate has {turns}"
        )

    # Topics and context files that exceed every prompt.
    budget, count = config.memory.budget, Environment().token_counter_for(config)
    files = [path for path in map(Path, config.context_paths()) if path.is_file()]
    text = "\n".join(path.read_text("utf-8", "replace") for path in files)
    sizes = (
        ("topic", count(config.topic or ""), problem_token_limit(budget)),
        ("context", count(text), budget.messages),
    )
    warnings += [
        f"{name}: {tokens:,} tokens, but prompts have room for only {remaining:,}, so the rest is truncated: "
        "raise memory.budget.total, or use a folder and tools"
        for name, tokens, remaining in sizes
        if tokens > remaining
    ]
    return warnings + _unknown_placeholders(config) + _idle_memory(config, count)


def _unknown_placeholders(config: DebateConfig) -> list[str]:
    """Return a warning for each summary prompt that contains a placeholder.

    Moot does not fill in placeholders in these prompts.
    """
    prompts = {
        "memory.summary_prompt": config.memory.summary_prompt,
        "memory.perspectives.prompt": config.memory.perspectives.prompt,
    }
    if config.judge.summary:
        prompts["judge.summary.prompt"] = config.judge.summary.prompt
    for debater in config.debaters:
        prompts[f"debaters.{debater.id}.summary_prompt"] = debater.summary_prompt
        if debater.perspective:
            prompts[f"debaters.{debater.id}.perspective.prompt"] = debater.perspective.prompt
    return [
        f"{key}: {placeholders[0]} is no placeholder, so the model reads it as it is: remove it, because the "
        "messages follow the prompt in any case"
        for key, prompt in prompts.items()
        if (placeholders := _PLACEHOLDER.findall(prompt))
    ]


def _idle_memory(config: DebateConfig, count: TokenCounter) -> list[str]:
    """Return warnings about memory settings that have no effect in this debate."""
    memory = config.memory
    warnings = []
    if asks_model(memory.summarizer) and not protocol_named(config.protocol).shows_summary:
        warnings = [
            f"memory.summarizer: no prompt of {config.protocol!r} shows a summary; {FALLBACK_SUMMARIZER} "
            "makes the judge's"
        ]
    limits = WindowLimits.of(memory, shared_prefix_tokens(config.topic or "", config, count))
    message_tokens = int(TURN_WORDS * TOKENS_PER_WORD)
    capacity = limits.high_tokens // message_tokens
    message_counts = {
        "keep_recent": memory.keep_recent,
        "summarize_every": memory.keep_recent + memory.summarize_every,
    }
    # A file that `moot config init` wrote contains both defaults, which the user did not choose.
    fields = type(memory).model_fields
    is_default = all(
        name in memory.model_fields_set and getattr(memory, name) == fields[name].default
        for name in message_counts
    )
    return warnings + [
        f"memory.{name}: {message_count} messages of {TURN_WORDS} words exceed the window's "
        f"{limits.high_tokens:,} tokens, which hold about {capacity}: the setting has no effect"
        for name, message_count in message_counts.items()
        if name in memory.model_fields_set and message_count > capacity and not is_default
    ]


def shorten_debate(config: DebateConfig, max_turns: int) -> DebateConfig:
    """Return a configuration with which the debate has at most `max_turns` turns.

    The settings that determine the protocol's length are lowered one after another, as little as possible.

    Raises:
        ConfigError: The shortest debate of the protocol has more turns.
    """
    if _turn_count(config) <= max_turns:
        return config
    for setting in protocol_named(config.protocol).length_settings or ():
        data = config.to_json()
        section, _, name = setting.rpartition(".")
        value = (data[section] if section else data)[name]
        if not isinstance(value, int | None):
            continue
        shorter = config
        for number in range(min(value or max_turns, max_turns), 0, -1):
            shorter = make_config(with_settings(data, {setting: number}))
            if _turn_count(shorter) <= max_turns:
                return shorter
        config = shorter
    raise ConfigError(
        f"even the shortest debate with protocol {config.protocol!r} may need {_turn_count(config)} turns, "
        f"but at most {max_turns} are allowed: allow more turns, or use another protocol"
    )


def _turn_count(config: DebateConfig) -> int:
    """Return the maximum number of turns that a debate can have.

    Raises:
        ConfigError: The debate does not end.
    """
    turns = protocol_named(config.protocol).turns(config)
    if turns:
        return turns.most
    from moot.debates.dry_run import estimate  # avoids an import cycle: the estimate runs the graph

    forecast = estimate(config)
    if forecast is None:
        raise ConfigError(
            f"Moot cannot estimate the length of a debate with protocol {config.protocol!r}, so it cannot "
            "limit the number of turns: remove this limit"
        )
    return forecast.turns_at_most


PROPOSE = load_prompt_template("propose")
REPLY_TOKENS = 400
"""Maximum number of tokens in a model's reply that proposes two debaters."""
NAME_CHARS = 40
"""Maximum length of a proposed debater's name or role, in characters. Longer texts are truncated."""
STANCE_CHARS = 300
"""Maximum length of a proposed debater's stance, in characters. A longer stance is truncated."""


class ProposedDebater(BaseModel):
    """One debater that the model proposes."""

    name: str = Field("", description="First name.")
    role: str = Field("", description="Role of the debater, in at most six words.")
    stance: str = Field("", description="The debater's answer to the question, in one sentence.")


class ProposedDebaters(BaseModel):
    """Two proposed debaters who give different answers to the question."""

    debaters: many(ProposedDebater, 2, 2) = Field(default_factory=list)  # type: ignore[valid-type]  # checked by Pydantic


def propose_debaters(
    question: str, config: DebateConfig, environment: Environment
) -> tuple[tuple[DebaterConfig, ...], float]:
    """Ask the configured model to propose two debaters, and return the debaters and the cost.

    Raises:
        ModelError: the model fails, or its reply does not name two debaters with stances.
    """

    async def ask() -> tuple[list[JsonObject], Mapping[str, float]]:
        try:
            result, handler = await run_to_end(
                _proposal(question, config), environment, Permissions.of_operator(config)
            )
            return result, handler.spent
        finally:
            await environment.aclose()

    proposals, usage = call_from_sync(ask)
    debaters: list[DebaterConfig] = []
    taken_ids = set(RESERVED_IDS)
    for number, proposal in enumerate(proposals[:2], start=1):
        name, role = (
            " ".join(clean_text(str(proposal[key])).split())[:NAME_CHARS] for key in ("name", "role")
        )
        stance = " ".join(clean_text(str(proposal["stance"])).split())[:STANCE_CHARS]
        if name and stance:
            debater_id = unique_slug(slug(name) or f"debater-{number}", taken_ids)
            taken_ids.add(debater_id)
            debaters.append(
                DebaterConfig(id=debater_id, name=unreserved_name(name), role=role, stance=stance)
            )
    if len(debaters) < 2 or debaters[0].name == debaters[1].name:
        raise ModelError(
            f"model {config.model!r} did not propose two debaters: name two debaters yourself, each with "
            "--debater NAME:ROLE:STANCE"
        )
    return tuple(debaters), float(usage.get("cost_usd", 0.0))


def _proposal(question: str, config: DebateConfig) -> CallGenerator[list[JsonObject]]:
    """Ask a model to propose two debaters for a question."""
    params = model_params(config, config.debaters[0])
    blocks = [
        Block("system", {"role": "system", "content": PROPOSE.render()}, label="instruction"),
        Block("turn_suffix", {"role": "user", "content": break_template_tokens(question)}, label="question"),
    ]
    prompt = truncate_blocks(blocks, config.memory.budget.total, counter_of(params, config))
    (reply,) = yield [make_call(params, "evaluate", prompt, schema=ProposedDebaters, reply=REPLY_TOKENS)]
    if reply.error:  # no debate is stored yet that could be resumed
        raise ModelError(reply.error.replace(OTHER_MODEL, "choose another model with --model NAME"))
    proposal = ProposedDebaters.model_validate(reply.data or {})
    return [each.model_dump() for each in proposal.debaters]

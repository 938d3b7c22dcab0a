"""Session of a debate: the open database and its debates as LangGraph threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot

from moot.calls.effects import is_pause
from moot.config import DebateConfig, boundary, debate_config, stages
from moot.graph import debate, runnable
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import JournalPosition
from moot.runtime.telemetry import within_langsmith_root
from moot.state.conversation import ENDED_STATUSES, ConversationInput, check_schema_version
from moot.storage.leases import Lease, with_lease
from moot.storage.records import Records
from moot.storage.sqlite import reading

if TYPE_CHECKING:
    from langsmith.run_trees import RunTree

Values = Mapping[str, Any]
"""Values of a debate's LangGraph state, keyed by channel name."""


@dataclass(frozen=True)
class DebateSession:
    """Resources that an operation on a debate needs, such as the graph and the environment."""

    graph: runnable.DebateGraph
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
        """Position for calls outside the graph, with rate limits and budget, without a journal."""
        records = None if self.records.sql.read_only else self.records
        return JournalPosition(records, self.thread, stores_replies=False)

    def permissions(self, values: Values, operators: DebateConfig | None = None) -> boundary.Permissions:
        """Return the permissions for a state, with the capabilities that the debate was granted."""
        env, granted = self.environment, self.records.grants.of(self.thread) if self.thread else ()
        operator = operators or env.default_config()
        return stages.authorize(debate_config.frozen_config(values), operator, granted, env.safe_capabilities)

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
            next=tuple("turn" if node in debate.PHASE_NODES else node for node in snapshot.next)
        )

    def checkpoints(self, source: str = "") -> AsyncIterator[CheckpointTuple]:
        """Yield the checkpoints of a LangGraph source, such as `update`, or all, newest first."""
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
        """Return the latest state snapshot of a debate, after completing an interrupted step or import.

        A step is interrupted if its run died after the step's work but before its checkpoint was written.
        Updating the state of an unfinished step would start a second branch.
        """
        snapshot = self.state()
        if not snapshot.next and not is_over(snapshot):
            self.advance(interrupt_before="*")
            snapshot = self.state()
        return self.state() if self.finish_import() else snapshot

    def finish_import(self) -> bool:
        """Extract the claims and write the summaries of an imported debate, and end the debate again.

        Return False if there is nothing to do. Replies that are in the journal are not asked for again.
        """
        snapshot = self.state()
        status, has_run = snapshot.values.get("status"), bool(snapshot.values.get("step"))
        if has_run or not snapshot.next or status not in ENDED_STATUSES:  # only an import ends before a step
            return False
        if "plan" not in snapshot.next:  # `interrupt_before` does not stop if `plan` is already the next node
            self.advance(interrupt_before=["plan"])
        self.note_status(status)  # first: an ended debate makes no step in which its status could be noted
        self.update_after("close", {"status": status})
        return True

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
        """Update the state as if a node had written the values, so that its successor runs next."""
        call_from_sync(self.graph.aupdate_state, self.run_config, dict(values), node)

    def note_status(self, status: str) -> None:
        """Store the debate's new status in the catalogue."""
        self.records.catalogue.update(self.thread, status=status, updated_at=self.environment.clock())

    @contextmanager
    def writing(self) -> Iterator[DebateSession]:
        """Yield a session that holds the debate's lease in a `with` block, or raise `DebateBusy`."""
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

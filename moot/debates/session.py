"""Session of a debate, with an open database and the debate that an operation works on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot

from moot.calls.effects import is_pause
from moot.configuration.configure import authorize
from moot.graph.debate import PHASE_NODES
from moot.graph.runnable import DebateGraph
from moot.runtime.background_loop import call_from_sync
from moot.runtime.environment import Environment
from moot.runtime.run_node import JournalPosition
from moot.runtime.telemetry import within_langsmith_root
from moot.state.config import DebateConfig
from moot.state.config.boundary import Permissions
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationInput, check_schema_version
from moot.storage.leases import Lease, with_lease
from moot.storage.records import Records
from moot.storage.sqlite import reading

if TYPE_CHECKING:
    from langsmith.run_trees import RunTree

Values = Mapping[str, Any]
"""Values of a debate's state, keyed by channel name."""


@dataclass(frozen=True)
class DebateSession:
    """Resources that an operation on a debate needs, such as the graph and the environment."""

    graph: DebateGraph
    records: Records
    environment: Environment
    thread: str = ""
    """LangGraph thread id of the debate, or `""` if no debate is chosen."""
    lease: Lease | None = None
    """Lease that allows this session to write to the debate, or `None` if the session is read-only."""
    extensions: tuple[int, ...] = ()
    """Numbers of turns by which a replayed debate is extended, one for each time the original debate was
    extended. An extension adds turns to a debate that has ended."""
    roots: dict[str, RunTree] = field(default_factory=dict, repr=False, compare=False)
    """LangSmith root traces of debates that have not started yet, keyed by debate id."""
    loaded: dict[str, tuple[object, StateSnapshot]] = field(default_factory=dict, repr=False, compare=False)
    """Cache of each debate's last loaded state, keyed by debate id."""

    def on(self, thread: str) -> DebateSession:
        """Return a session for another debate in the same database."""
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
        """Context for model calls that are made outside the debate's LangGraph graph.

        The rate limits of the database and the group's budget apply to them. The journal does not store their
        replies.
        """
        records = None if self.records.sql.read_only else self.records
        return JournalPosition(records, self.thread, stores_replies=False)

    def permissions(self, values: Values, operators: DebateConfig | None = None) -> Permissions:
        """Return the stored debate's configuration and the capabilities that the debate may use.

        The permissions include the debate's grants and the capabilities in the operator's configuration.
        """
        env, granted = self.environment, self.records.grants.of(self.thread) if self.thread else ()
        operator = operators or env.default_config()
        return authorize(frozen_config(values), operator, granted, env.safe_capabilities)

    def state(self, checkpoint: str = "") -> StateSnapshot:
        """Return the debate's latest LangGraph state snapshot, or the snapshot of a given checkpoint.

        The next node is `turn` in place of a phase's node, which a debate of another graph has.

        Raises:
            InputError: An incompatible version of Moot stored the debate.
            StorageError: The stored state is damaged.
        """
        chosen = {"checkpoint_id": checkpoint} if checkpoint else {}
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, **chosen}}
        with reading("the state of the debate"):
            snapshot = call_from_sync(self.graph.aget_state if checkpoint else self._latest, config)
        check_schema_version(snapshot.values)
        return snapshot._replace(
            next=tuple("turn" if node in PHASE_NODES else node for node in snapshot.next)
        )

    def checkpoints(self, source: str = "") -> AsyncIterator[CheckpointTuple]:
        """Yield the stored checkpoints of the debate, newest first.

        `source` limits the checkpoints to those with this LangGraph source, such as `update`.
        """
        saver = cast(BaseCheckpointSaver[str], self.graph.checkpointer)
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, "checkpoint_ns": ""}}
        return saver.alist(config, filter={"source": source} if source else None)

    async def _latest(self, config: RunnableConfig) -> StateSnapshot:
        """Return the latest state snapshot from the cache, or load it."""
        stored = await cast(BaseCheckpointSaver[str], self.graph.checkpointer).aget_tuple(config)
        mark = (stored.checkpoint["id"], stored.pending_writes) if stored else None
        known, snapshot = self.loaded.get(self.thread, (None, None))
        if snapshot is None or known != mark:
            snapshot = await self.graph.aget_state(config)
            self.loaded.clear()
            self.loaded[self.thread] = mark, snapshot
        return snapshot._replace(values={**snapshot.values})

    def caught_up(self) -> StateSnapshot:
        """Finish any interrupted step, and return the latest state.

        A step is interrupted if its run died after the step's work but before its checkpoint was written.
        Updating the state of an unfinished step would start a second branch.
        """
        snapshot = self.state()
        if not snapshot.next and not is_over(snapshot):
            self.advance(interrupt_before="*")
            snapshot = self.state()
        return snapshot

    def advance(self, given: Values | None = None, **options: Any) -> None:
        """Run the graph until its next interrupt."""
        start = cast(ConversationInput | None, given)

        async def run() -> None:
            with within_langsmith_root(self.roots.get(self.thread)):
                await self.graph.ainvoke(start, self.run_config, durability="sync", **options)

        call_from_sync(run)

    def update(self, values: Values, following: Sequence[str] = ()) -> None:
        """Write the given values to the debate's stored LangGraph state.

        The next nodes stay the same unless `following` names other nodes.

        Open questions to people are asked again, because an update drops them.
        """
        snapshot = self.state()
        to_run = following or snapshot.next
        self.update_after(self.graph.node_before(to_run[0]) if to_run else "close", values)
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
        """Hold the debate's lease during a `with` block, and yield a session that can write to the debate.

        Raises:
            DebateBusy: Another run writes the debate, in this process or another.
        """
        if self.lease:
            yield self
            return
        with self.records.leases.hold(self.thread) as lease:
            yield replace(self, records=self.records.fenced_by(lease), lease=lease)


def is_over(snapshot: StateSnapshot) -> bool:
    """Return True if the debate is over because the state snapshot has no tasks left.

    `next` is not enough: it is also empty if a process died between a node's writes and the next checkpoint.
    Such a step still has its task.
    """
    return not snapshot.tasks


def filled_channels(values: Values) -> dict[str, Any]:
    """Return the state channels whose values are not empty."""
    return {key: value for key, value in values.items() if value not in ({}, [], "")}

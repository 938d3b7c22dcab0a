"""A session: an open database of debates and the debate in it that an operation works on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import StateSnapshot

from moot.graph.debate import NODES, DebateGraph
from moot.nodes.driving.environment import Environment
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.effects import is_pause
from moot.state.config import DebateConfig
from moot.state.config.boundary import Claim, reaches
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationInput
from moot.state.leases import Lease, with_lease
from moot.state.records import Records

Values = Mapping[str, Any]
"""Values of a state's channels."""


@dataclass(frozen=True)
class DebateSession:
    """What every operation on a stored debate works with."""

    graph: DebateGraph
    records: Records
    environment: Environment
    thread: str = ""
    """The debate's id, which is its LangGraph thread's; `""` where none is chosen yet."""
    lease: Lease | None = None
    """By which its debate is written, and `records` are; see `writing`."""
    extensions: tuple[int, ...] = ()
    """Turns by which each end is followed: of a replay, where what it replays was extended."""
    loaded: dict[str, tuple[object, StateSnapshot]] = field(default_factory=dict, repr=False, compare=False)
    """The debate whose state was loaded last: what it was loaded of, and the state."""

    def on(self, thread: str) -> DebateSession:
        """Return the session of another debate in this database."""
        return replace(self, thread=thread)

    @property
    def run_config(self) -> RunnableConfig:
        """What LangGraph calls the config of a run."""
        config: RunnableConfig = {"configurable": {"thread_id": self.thread}}
        return with_lease(config, self.lease) if self.lease else config

    @property
    def name(self) -> str:
        """What `--id` gave, else the id."""
        return self.records.catalogue.name_of(self.thread)

    def claim(self, values: Values, operators: DebateConfig | None = None) -> Claim:
        """Return a state's configuration with what its debate was granted, and what the operator says now."""
        granted = self.records.grants.of(self.thread) if self.thread else ()
        said = reaches(operators) if operators else ()
        return Claim(frozen_config(values), {*granted, *said}, self.environment.harmless)

    def state(self, checkpoint: str = "") -> StateSnapshot:
        """Return LangGraph's snapshot of the state, the latest or that of a checkpoint."""
        chosen = {"checkpoint_id": checkpoint} if checkpoint else {}
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, **chosen}}
        return call_from_sync(self.graph.aget_state if checkpoint else self._latest, config)

    def checkpoints(self, source: str = "") -> AsyncIterator[CheckpointTuple]:
        """Yield what is stored of the debate's checkpoints, or of those of a source, the newest first."""
        saver = cast(BaseCheckpointSaver[str], self.graph.checkpointer)
        config: RunnableConfig = {"configurable": {"thread_id": self.thread, "checkpoint_ns": ""}}
        return saver.alist(config, filter={"source": source} if source else None)

    async def _latest(self, config: RunnableConfig) -> StateSnapshot:
        """Return the latest snapshot, which a long debate takes a second to load: once a checkpoint."""
        stored = await cast(BaseCheckpointSaver[str], self.graph.checkpointer).aget_tuple(config)
        mark = (stored.checkpoint["id"], stored.pending_writes) if stored else None
        known, snapshot = self.loaded.get(self.thread, (None, None))
        if snapshot is None or known != mark:
            snapshot = await self.graph.aget_state(config)
            self.loaded.clear()
            self.loaded[self.thread] = mark, snapshot
        return snapshot._replace(values={**snapshot.values})

    def caught_up(self) -> StateSnapshot:
        """Return the latest state, to go on from; for those who write.

        A step that a run had finished, but died before it could conclude, is concluded first: an update would
        otherwise stand beside what that step leads to.
        """
        snapshot = self.state()
        if not snapshot.next and not is_over(snapshot):
            self.advance(interrupt_before="*")
            snapshot = self.state()
        return snapshot

    def advance(self, given: Values | None = None, **options: Any) -> None:
        """Run to where LangGraph's options say that it is interrupted, every checkpoint written at once."""
        start = cast(ConversationInput | None, given)
        call_from_sync(lambda: self.graph.ainvoke(start, self.run_config, durability="sync", **options))

    def update(self, values: Values, following: Sequence[str] = ()) -> None:
        """Write into the state without moving the debate: what was to run next, or `following`, runs next.

        What a person is asked is asked again: an update drops open questions.
        """
        snapshot = self.state()
        to_run = following or snapshot.next
        self.update_after(before_node(self.graph, to_run[0]) if to_run else "close", values)
        if not following and any(not is_pause(each.value) for each in snapshot.interrupts):
            self.advance()  # what was answered before the question stands in the journal

    def update_after(self, node: str, values: Values) -> None:
        """Write into the state as if a node had, after which its successor runs next."""
        call_from_sync(self.graph.aupdate_state, self.run_config, dict(values), node)

    def note_status(self, status: str) -> None:
        """Note the debate's status in the catalogue."""
        self.records.catalogue.update(self.thread, status=status, updated_at=self.environment.clock())

    @contextmanager
    def writing(self) -> Iterator[DebateSession]:
        """Hold the debate for a `with` block, in which the session that this yields may write it.

        Raises:
            DebateBusy: another run, in this process or another, writes it.
        """
        if self.lease:
            yield self
            return
        with self.records.leases.holding(self.thread) as lease:
            yield replace(self, records=self.records.under(lease), lease=lease)


def is_over(snapshot: StateSnapshot) -> bool:
    """Return whether nothing is left to do at LangGraph's snapshot of a state.

    Its `next` alone does not tell: that is empty too where a process died between storing what a node wrote
    and the checkpoint after it. Such a step still has its task.
    """
    return not snapshot.tasks


def filled_channels(values: Values) -> dict[str, Any]:
    """Return the values of those channels in which something is."""
    return {key: value for key, value in values.items() if value not in ({}, [], "")}


def before_node(graph: DebateGraph, node: str) -> str:
    """Return a node of the graph from which an edge leads to this one, and nowhere else if may be.

    `open` comes last: where it leads, a run's input decides.
    """
    edges = [edge for edge in graph.get_graph().edges if edge.target == node]
    order = [*list(NODES)[1:], "open"]
    return min(edges, key=lambda edge: (edge.conditional, order.index(edge.source))).source

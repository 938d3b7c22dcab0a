"""Replays: a debate argued again from its journal, without a model."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig

from moot.graph.debate import build_graph
from moot.graph.lifetime import start_debate
from moot.graph.session import DebateSession, Values, is_over
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.models.registry import Models
from moot.state.entries import kind_of


def start_replay(session: DebateSession, name: str | None) -> DebateSession:
    """Make a new debate with another one's topic, configuration and givens, answered from its journal.

    It is extended where that one was, each time that it had come to its end. A request that the journal does
    not hold, because something was said from the floor in between or a prompt has changed since, fails like a
    model that cannot be reached.
    """
    values = session.state().values
    environment = replace(session.environment, complete=Tape(session).complete)
    graph = build_graph(session.graph.checkpointer, environment=environment)  # type: ignore[arg-type]  # compiled with one
    transcript = values["full_transcript"]
    first = min((receipt["seq"] for receipt in values.get("receipts") or []), default=len(transcript))
    given = {
        "topic": values["topic"],
        "full_transcript": [e for e in transcript[:first] if kind_of(e).gift not in ("topic", "document")],
        "context_documents": values.get("context_documents") or [],
    }
    began, extensions = _extensions(session, values)
    replaying = replace(session, graph=graph, environment=environment)
    made = start_debate(replaying, given, session.claim(began).admit(), name)
    return replace(made, extensions=extensions)


def _extensions(session: DebateSession, values: Values) -> tuple[Values, tuple[int, ...]]:
    """Return a debate's state as it was before it was first extended, and by how many turns each time."""
    began, turns = values, list[int]()
    for checkpoint in call_from_sync(_updates, session):
        after = session.state(checkpoint)
        parent = (after.parent_config or {}).get("configurable", {}).get("checkpoint_id", "")
        before = session.state(parent) if parent else after
        said = [snapshot.values.get("config", {}).get("turns") for snapshot in (before, after)]
        if said[0] != said[1] and is_over(before):
            began = began if turns else before.values
            turns.append(said[1] - before.values["turn_count"])
    return began, tuple(turns)


async def _updates(session: DebateSession) -> list[str]:
    """Return the checkpoints, oldest first, at which a debate's state was written from outside."""
    return sorted([stored.checkpoint["id"] async for stored in session.checkpoints("update")])


class Tape:
    """The replies of a debate and of those it was forked from, by request, in the order they were given."""

    def __init__(self, session: DebateSession) -> None:
        records, debate = session.records, session.thread
        parents = {row.id: row.parent for row in records.catalogue.rows()}
        line: list[str] = []
        while debate and debate not in line:
            line.append(debate)
            debate = parents.get(debate, "")
        configs = [session.on(each).state().values.get("config") or {} for each in line]
        self._seeds = [config.get("seed") for config in configs]
        self._replies: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        for each in reversed(line):
            for key, reply in sorted(records.journal.replies(each).items()):
                self._replies[key[-1]].append(reply)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return the journalled reply to this very request, an error where there is none."""
        # A fork asks with a seed of its own what the debate it was forked from asked with another.
        beyond = (call.seed or 0) - (self._seeds[0] or 0)  # of several equal requests at once
        asked = [None if seed is None and not beyond else (seed or 0) + beyond for seed in self._seeds]
        found = (self._replies.get(replace(call, seed=seed).digest) for seed in asked)
        replies = next(filter(None, found), None)
        if not replies:
            return Reply(error=f"{call.model}: the journal holds no reply to this {call.purpose} request")
        return Reply.from_json(replies.popleft() if len(replies) > 1 else replies[0])

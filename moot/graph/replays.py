"""Replays: a debate argued again from its journal, without a model."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig

from moot.graph.debate import build_graph
from moot.graph.lifetime import start_debate
from moot.graph.session import DebateSession
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.models.registry import Models
from moot.state.entries import kind_of
from moot.state.records import Records


def start_replay(session: DebateSession, name: str | None) -> DebateSession:
    """Make a new debate with another one's topic, configuration and givens, answered from its journal.

    A request that the journal does not hold, because something was said from the floor in between or a prompt
    has changed since, fails like a model that cannot be reached.
    """
    values = session.state().values
    environment = replace(session.environment, complete=Tape(session.records, session.thread).complete)
    graph = build_graph(session.graph.checkpointer, environment=environment)  # type: ignore[arg-type]  # compiled with one
    transcript = values["full_transcript"]
    first = min((receipt["seq"] for receipt in values.get("receipts") or []), default=len(transcript))
    given = {
        "topic": values["topic"],
        "full_transcript": [e for e in transcript[:first] if kind_of(e).gift not in ("topic", "document")],
        "context_documents": values.get("context_documents") or [],
    }
    replaying = replace(session, graph=graph, environment=environment)
    return start_debate(replaying, given, session.claim(values).admitted(), name)


class Tape:
    """The replies of a debate and of those it was forked from, by request, in the order they were given."""

    def __init__(self, records: Records, debate: str) -> None:
        parents = {row.id: row.parent for row in records.catalogue.rows()}
        line: list[str] = []
        while debate and debate not in line:
            line.append(debate)
            debate = parents.get(debate, "")
        self._replies: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        for each in reversed(line):
            for key, reply in sorted(records.journal.replies(each).items()):
                self._replies[key[-1]].append(reply)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return the journalled reply to this very request, an error where there is none."""
        replies = self._replies.get(call.digest)
        if not replies:
            return Reply(error=f"{call.model}: the journal holds no reply to this {call.purpose} request")
        return Reply.from_json(replies.popleft() if len(replies) > 1 else replies[0])

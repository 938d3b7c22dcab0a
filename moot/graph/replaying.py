"""Replays: a debate argued again from its journal, without a model."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from moot.graph.debate import build_graph
from moot.nodes.calls import ModelCall, Reply
from moot.nodes.models.registry import Models
from moot.state.config import DebateConfig
from moot.state.entries import Entry
from moot.state.records import Records

if TYPE_CHECKING:
    from moot.graph.api import Debate, Debates


def start_replay(debates: Debates, source: Debate, name: str | None) -> Debate:
    """Make a new debate with another one's topic, configuration and givens, answered from its journal.

    A request that the journal does not hold, because something was said from the floor in between or a prompt
    has changed since, fails like a model that cannot be reached.

    Raises:
        DebateExists: the name is taken.
    """
    values = source.state().values
    tape = Tape(debates.records, source)
    replaying = copy(debates)
    replaying.environment = replace(debates.environment, complete=tape.complete)
    replaying.graph = build_graph(debates.graph.checkpointer, environment=replaying.environment)  # type: ignore[arg-type]  # compiled with one
    return replaying.start(
        values["topic"],
        DebateConfig.model_validate(values["config"]),
        name=name,
        transcript=_given(values),
        documents=values.get("context_documents") or [],
    )


class Tape:
    """The replies of a debate and of those it was forked from, by request, in the order they were given."""

    def __init__(self, records: Records, source: Debate) -> None:
        self._replies: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        for debate in reversed(_line(records, source.id)):
            for key, reply in sorted(records.journal.replies(debate).items()):
                self._replies[key[-1]].append(reply)

    async def complete(
        self, call: ModelCall, models: Models, *, config: RunnableConfig | None = None
    ) -> Reply:
        """Return the journalled reply to this very request, an error where there is none."""
        replies = self._replies.get(call.digest)
        if not replies:
            return Reply(error=f"{call.model}: the journal holds no reply to this {call.purpose} request")
        return Reply.from_json(replies.popleft() if len(replies) > 1 else replies[0])


def _line(records: Records, debate: str) -> list[str]:
    """Return a debate and those it descends from, itself first."""
    line: list[str] = []
    parents = {row.id: row.parent for row in records.catalogue.rows()}
    while debate and debate not in line:
        line.append(debate)
        debate = parents.get(debate, "")
    return line


def _given(values: Mapping[str, Any]) -> list[Entry]:
    """Return the transcript that the debate was given to continue."""
    receipts = values.get("receipts") or []
    first = min((receipt["seq"] for receipt in receipts), default=len(values["full_transcript"]))
    return [e for e in values["full_transcript"][:first] if e["kind"] not in {"topic", "context"}]

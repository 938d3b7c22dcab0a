"""What the live page is told of a debate: how it stands, whoever runs it; its words where it runs here."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

from langgraph.types import StateSnapshot

from moot.graph.api import Debate, Event
from moot.graph.continuation import can_go_on, questions_at
from moot.graph.debate_host import DebateHost, add_words
from moot.graph.documents import DebateDocument, as_far_as_it_goes
from moot.graph.reports.cast import People
from moot.graph.session import is_over
from moot.nodes.protocols.stand_in import forecast
from moot.state.config.debate_config import frozen_config
from moot.state.entries import JsonObject
from moot.state.event_loop import in_thread

LOOK_AGAIN_S = 0.3
"""Between two looks at a debate's row and latest checkpoint, which take a millisecond."""
BREATH_S = 0.03
"""Words that come within it are told together: more often no screen shows them."""
KEPT = 8
"""Debates whose latest document is kept, for the parts of a page that ask for it at the same time."""

Mark = tuple[object, ...]
"""Differs where a debate has changed."""


class DebateReading(NamedTuple):
    """A debate as it stood at one moment."""

    mark: Mark
    snapshot: StateSnapshot
    document: JsonObject


class DebateReader:
    """Reads debates, each state once."""

    def __init__(self, host: DebateHost) -> None:
        self._host = host
        self._kept: OrderedDict[str, DebateReading] = OrderedDict()

    def mark(self, debate: Debate) -> Mark:
        """Return what differs once the debate, or whether it runs, has changed."""
        latest = debate.session.records.sql.execute(
            "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?", (debate.id,)
        )
        return debate.row, debate.is_running(), str(latest), self._host.errors.get(debate.id, "")

    def read(self, debate: Debate) -> DebateReading:
        """Return the debate as it stands."""
        mark, kept = self.mark(debate), self._kept.get(debate.id)
        if not kept or kept.mark != mark:
            snapshot = debate.state()
            kept = DebateReading(mark, snapshot, debate.document(snapshot))
        self._kept[debate.id] = kept
        self._kept.move_to_end(debate.id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept

    def overview(self, debate: Debate) -> JsonObject:
        """Return how a debate stands: its row, who debates, what runs, what is asked."""
        mark, snapshot, document = self.read(debate)
        told = as_far_as_it_goes(DebateDocument, {"config": document["config"]})
        values, errors = snapshot.values, document["errors"]
        last_error = str(errors[-1]["error"]) if document["status"] == "failed" and errors else ""
        planned = forecast(frozen_config(values)) if values.get("config") else None
        return {
            **asdict(debate.row),
            "checkpoint": mark[2],
            "topic": document["topic"] or debate.row.topic,
            "ended_because": document["ended_because"],
            "error": self._host.errors.get(debate.id) or last_error,
            "running": debate.is_running(),
            "over": is_over(snapshot),
            "goes_on": bool(values.get("config")) and can_go_on(values),
            "nodes": list(snapshot.next),
            "step": values.get("step") or {},
            "entries": len(document["transcript"]),
            "planned_turns": planned.turns if planned else None,
            "people": [asdict(person) for person in People(told).values()],
            "model": document["config"].get("model", ""),
            "questions": questions_at(snapshot),
            "pinned": values.get("pinned") or [],
        }


async def follow(
    host: DebateHost, reader: DebateReader, debate: Debate, ending: Callable[[], bool] = lambda: False
) -> AsyncIterator[JsonObject]:
    """Yield what happens in a debate: `{"debate": …}` as it stands, `{"said": …, "events": …}` in between.

    `said` has the next words of speeches under way, by the ids of the entries that they will be.
    """
    heard: asyncio.Queue[Event] = asyncio.Queue()
    with host.hearing(debate.id, heard.put_nowait):
        so_far = {key: dict(speech) for key, speech in host.speeches.get(debate.id, {}).items()}
        seen: Mark | None = None
        rested = 0.0
        while not ending():
            looked = time.monotonic()
            if looked >= rested and (mark := await in_thread(reader.mark, debate)) != seen:
                yield {"debate": await in_thread(reader.overview, debate)}
                now = time.monotonic()
                seen, rested = mark, now + (now - looked)  # a long debate takes half the time to load
            if so_far:
                yield {"said": so_far, "events": []}
                so_far = {}
            if events := await _next_events(heard):
                yield _message_of(events)


async def _next_events(heard: asyncio.Queue[Event]) -> list[Event]:
    """Wait for an event, and a breath longer for more; return none where it is time to look again."""
    with suppress(TimeoutError):
        events = [await asyncio.wait_for(heard.get(), LOOK_AGAIN_S)]
        await asyncio.sleep(BREATH_S)
        return [*events, *(heard.get_nowait() for _ in range(heard.qsize()))]
    return []


def _message_of(events: Sequence[Event]) -> JsonObject:
    said: dict[str, Event] = {}
    for event in events:
        if event["event"] == "token":
            add_words(said, event)
    rest = [event for event in events if event["event"] not in ("token", "entry")]
    return {"said": said, "events": rest}

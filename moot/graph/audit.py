"""What each kind of memory cost and how often it was shown; and speeches as they would be without one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast, get_args

from moot.graph.documents import DebateDocument
from moot.graph.lookback import state_at
from moot.graph.session import DebateSession
from moot.nodes.driving.answering import Answering, JournalPlace
from moot.nodes.driving.environment import NodeContext
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.effects import Work
from moot.nodes.floors.model_floors import ModelFloor, Spoken, let_speak
from moot.nodes.floors.seats import make_seats
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.config.model_settings import is_built_in
from moot.state.conversation import ConversationState, MemoryKind, Receipt
from moot.state.entries import tokens_of
from moot.state.errors import InputError

KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
_VERSIONS = {"rolling": "rolling summary", "perspective": "perspective", "judge": "judge's summary"}


@dataclass(frozen=True)
class MemoryCost:
    """One kind of memory over a whole debate."""

    kind: MemoryKind
    made: int
    """Versions, notes, reflections or cards; of what is not made, the views that showed it."""
    calls: int
    """Calls of models that made it."""
    tokens: int
    """Tokens of these calls, prompts and answers."""
    cost_usd: float
    """Counted where prices are configured."""
    views: int
    """Prompts that showed it: of speeches, judges and moderators."""
    shown_tokens: int
    """Tokens that it took in them, about."""


def audit(document: DebateDocument) -> list[MemoryCost]:
    """Return what each kind of memory of a debate cost, and how often it was shown."""
    board, calls = document["blackboard"], document.get("calls", [])
    pinned = document.get("state", {}).get("pinned", [])
    made: dict[str, int] = {"reflections": len(board["reflections"]), "cruxes": len(board["cards"])}
    notes = [note for note in board["minutes"] if note["note"] not in ("reading", "outlook")]
    made |= {"ledger": len(notes), "pinned": len(pinned)}
    for version in document["summaries"]:
        kind = _VERSIONS.get(version["kind"], "rolling summary")
        made[kind] = made.get(kind, 0) + 1
    memories = [each.get("memory", {}) for each in (*document["receipts"], *calls)]
    rows = []
    for each in KINDS:
        own = [call["usage"] for call in calls if call["makes"] == each]
        shown = [memory[each] for memory in memories if each in memory]
        cost = sum(usage.get("cost_usd", 0.0) for usage in own)
        counted = made.get(each, 0 if each in _MADE else len(shown))
        rows.append(
            MemoryCost(each, counted, len(own), sum(map(tokens_of, own)), cost, len(shown), sum(shown))
        )
    return rows


_MADE = ("rolling summary", "perspective", "judge's summary")


@dataclass(frozen=True)
class Replayed:
    """One speech as it was, and as it would have been without a kind of memory."""

    entry_id: str
    speaker: str
    shown_tokens: int
    """Tokens that the memory took in the prompt, 0 where it was not there."""
    said: str
    without: str
    error: str
    """Why there is no other speech, `""` where there is one."""
    tokens: int
    """Tokens that asking again took, prompt and answer."""

    def to_json(self) -> dict[str, object]:
        """Return it as JSON types."""
        return asdict(self)


def replay_without(
    session: DebateSession, kind: str, first: int, last: int, *, model: str | None = None
) -> list[Replayed]:
    """Ask for turns again as they were asked, without one kind of memory; nothing is stored.

    Args:
        session: of the debate.
        kind: a `MemoryKind` that speeches are shown.
        first: the first turn, from 1.
        last: the last turn.
        model: who answers instead of the speakers' own models.

    Raises:
        InputError: there is no such kind or turn, a person took it, or the offline model, unnamed, would.
    """
    values = session.state().values
    receipts: list[Receipt] = (values.get("receipts") or [])[max(0, first - 1) : last]
    if not receipts or first > last or first < 1:
        count = len(values.get("receipts") or [])
        raise InputError(f"--turns {first}-{last}: this debate has turns 1 to {count}")
    transcript = values["full_transcript"]
    return [
        _replayed(session, _known(kind), receipt, transcript[receipt["seq"]]["content"], model)
        for receipt in receipts
    ]


def _known(kind: str) -> MemoryKind:
    usable = [each for each in KINDS if each != "judge's summary"]
    if kind not in usable:
        raise InputError(f"--replay-without {kind!r}: give one of {', '.join(map(repr, usable))}")
    return cast(MemoryKind, kind)


def _replayed(
    session: DebateSession, kind: MemoryKind, receipt: Receipt, said: str, model: str | None
) -> Replayed:
    holder, before = state_at(session, receipt["checkpoint"])
    state = without(before, kind)
    if model:
        debaters = [{**each, "model": model} for each in state["config"]["debaters"]]
        state = {**state, "config": {**state["config"], "model": model, "debaters": debaters}}
    config = frozen_config(state)
    speaker = config.debater(receipt["speaker"])
    if not model and is_built_in(config.model_of(speaker)):
        raise InputError(
            f"{speaker.name!r} is the offline model's, which says nothing that memory could change: name "
            "another with --model, or it with --model offline"
        )
    claim = session.claim(state, DebateConfig(model=model) if model else None)
    context = NodeContext(session.environment, claim, holder.thread, receipt["checkpoint"])
    seat = make_seats(state, context, config)[receipt["floor"]]
    if seat.asked is None:
        raise InputError(f"a person said {receipt['entry_id']}: there is nobody to ask again")
    answering = Answering(session.environment, claim, JournalPlace())
    spoken = call_from_sync(_speak, seat.asked, answering)
    shown = receipt.get("memory", {}).get(kind, 0)
    tokens = tokens_of(answering.spent.totals)
    return Replayed(
        receipt["entry_id"], speaker.name, shown, said, spoken.reply.text, spoken.reply.error, tokens
    )


def without(state: ConversationState, kind: MemoryKind) -> ConversationState:
    """Return a state in which nothing of a kind of memory is."""
    config = state["config"]
    memory, debaters = config["memory"], config["debaters"]
    quiet = {**memory, "retrieval": {**memory["retrieval"], "enabled": False}}
    changes: Mapping[str, Mapping[str, object]] = {
        "rolling summary": {"rolling_summary": {}},
        "perspective": {"perspective_summaries": {}},
        "ledger": {"minutes": []},
        "reflections": {"reflections": []},
        "cruxes": {"crux_cards": {}},
        "retrieved": {"config": {**config, "memory": quiet}},
        "earlier debates": {"recollections": {}},
        "own texts": {"config": {**config, "debaters": [{**each, "anchors": []} for each in debaters]}},
        "pinned": {"pinned": []},
    }
    return cast(ConversationState, {**state, **changes[kind]})


async def _speak(floor: ModelFloor, answering: Answering) -> Spoken:
    """Let one floor speak, with its tools; nothing is journalled."""
    flow, outcome = let_speak([floor]), cast(Any, None)
    try:
        while True:
            effect: Any = flow.send(outcome)
            if isinstance(effect, Work):
                outcome = await asyncio.gather(*(asyncio.to_thread(job.run) for job in effect.jobs))
            else:
                outcome = await answering.answer(effect)
    except StopIteration as end:
        return cast(Spoken, end.value[0])

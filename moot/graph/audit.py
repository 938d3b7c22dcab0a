"""What each kind of memory cost and how often it was shown; and speeches as they would be without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import cast, get_args

from moot.graph.documents import DebateDocument
from moot.graph.lookback import state_at
from moot.graph.session import DebateSession
from moot.nodes.driving.answering import run_to_end
from moot.nodes.driving.environment import NodeContext
from moot.nodes.driving.portal import call_from_sync
from moot.nodes.floors.seats import ModelFloor, make_seats
from moot.nodes.floors.speaking import let_speak
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
    noted = [note for note in board["minutes"] if note["note"] not in ("reading", "outlook")]
    made: dict[str, int] = {
        **dict.fromkeys(_VERSIONS.values(), 0),
        **Counter(_VERSIONS.get(each["kind"], "rolling summary") for each in document["summaries"]),
        "ledger": len(noted),
        "reflections": len(board["reflections"]),
        "cruxes": len(board["cards"]),
        "pinned": len(document.get("state", {}).get("pinned", [])),
    }
    memories = [each.get("memory", {}) for each in (*document["receipts"], *calls)]
    rows = []
    for kind in KINDS:
        own = [call["usage"] for call in calls if call["makes"] == kind]
        shown = [memory[kind] for memory in memories if kind in memory]
        cost = sum(usage.get("cost_usd", 0.0) for usage in own)
        tokens = sum(map(tokens_of, own))
        counted = made.get(kind, len(shown))
        rows.append(MemoryCost(kind, counted, len(own), tokens, cost, len(shown), sum(shown)))
    return rows


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
    """Ask for turns, `first` to `last` from 1, again without one kind of memory; nothing is stored.

    A `model` answers instead of the speakers' own.

    Raises:
        InputError: there is no such kind or turn, a person took it, or the offline model, unnamed, would.
    """
    values = session.state().values
    known: list[Receipt] = values.get("receipts") or []
    receipts = known[max(0, first - 1) : last]
    if not receipts or first > last or first < 1:
        raise InputError(f"--turns {first}-{last}: this debate has turns 1 to {len(known)}")
    usable = [each for each in KINDS if each != "judge's summary"]
    if kind not in usable:
        raise InputError(f"--replay-without {kind!r}: give one of {', '.join(map(repr, usable))}")
    said = values["full_transcript"]
    return [
        _ask_again(session, cast(MemoryKind, kind), receipt, said[receipt["seq"]]["content"], model)
        for receipt in receipts
    ]


def _ask_again(
    session: DebateSession, kind: MemoryKind, receipt: Receipt, said: str, model: str | None
) -> Replayed:
    """Have one floor speak again, with its tools; nothing is journalled."""
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
    seat = make_seats(state, context)[receipt["floor"]]
    if not isinstance(seat, ModelFloor):
        raise InputError(f"a person said {receipt['entry_id']}: there is nobody to ask again")
    (spoken,), answering = call_from_sync(run_to_end, let_speak([seat]), session.environment, claim)
    return Replayed(
        entry_id=receipt["entry_id"],
        speaker=speaker.name,
        shown_tokens=receipt.get("memory", {}).get(kind, 0),
        said=said,
        without=spoken.reply.text,
        error=spoken.reply.error,
        tokens=tokens_of(answering.spent),
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

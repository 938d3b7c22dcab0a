"""Looks back at the prompt that an utterance came from, assembled again from the state of that moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodes.driver import NodeContext
from nodes.floor_calls import floor_view
from nodes.frozen import frozen_config
from nodes.memory.tokens import message_tokens
from nodes.models.calls import ModelCall, WireMessage
from nodes.turn import turn
from state.errors import DebateNotFound, InputError

if TYPE_CHECKING:
    from graph.stored_debate import Debate
    from state.conversation import ConversationState, Receipt


@dataclass(frozen=True)
class Part:
    """One message of a prompt."""

    section: str
    """`system`, `summary`, `messages`, `tail`, or what else the view policy names it."""
    tokens: int
    """Exact size by OpenAI's chat formula, the message's frame included."""
    message: WireMessage


@dataclass(frozen=True)
class Lookback:
    """The exact prompt of one utterance."""

    receipt: Receipt
    """What was recorded when it was sent."""
    parts: tuple[Part, ...]
    """The prompt, message by message."""
    digest: str
    """SHA-256 of the request as it is assembled now."""

    @property
    def exact(self) -> bool:
        """Whether this is, byte for byte, the request that was sent."""
        return self.digest == self.receipt["digest"]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        parts = [{"section": p.section, "tokens": p.tokens, **p.message} for p in self.parts]
        return {"receipt": dict(self.receipt), "exact": self.exact, "digest": self.digest, "prompt": parts}


def look_back(debate: Debate, seq: int) -> Lookback:
    """Assemble again the prompt that the entry at `seq` came from.

    The state is the checkpoint's that the receipt names; of a fork, the ancestor's where the entry was said.
    No model is called.

    Raises:
        InputError: no prompt led to this entry, or its checkpoint is gone.
    """
    receipts: list[Receipt] = debate.state().values.get("receipts") or []
    receipt = next((each for each in receipts if each["seq"] == seq), None)
    if receipt is None:
        raise InputError(
            f"no prompt led to entry {seq}: `moot show {debate.name} --receipts` lists those that did"
        )
    state = _state_of(debate, receipt["checkpoint"])
    context = NodeContext(debate._debates.environment, debate=debate.id, checkpoint=receipt["checkpoint"])
    call = next((call for call in _calls(state, context) if call.floor == receipt["floor"]), None)
    if call is None:
        raise InputError(f"no prompt led to entry {seq}: a person said it")
    return Lookback(receipt, _parts(state, context, receipt["floor"], call), call.digest)


def _state_of(debate: Debate, checkpoint: str) -> ConversationState:
    """Return the state at a checkpoint of a debate or of those that it was forked from."""
    holder: Debate | None = debate
    while checkpoint and holder is not None:
        values: ConversationState = holder.state(checkpoint).values
        if values:
            return values
        holder = _parent(holder)
    raise InputError(f"the checkpoint {checkpoint!r} that this prompt was made from is gone")


def _parent(debate: Debate) -> Debate | None:
    try:
        return debate._debates.get(debate.row.parent) if debate.row.parent else None
    except DebateNotFound:
        return None


def _calls(state: ConversationState, context: NodeContext) -> Sequence[ModelCall]:
    """Return the first batch that `turn` asks for: its floors."""
    body = turn(state, context)
    for effect in body:
        if isinstance(effect, Sequence):
            body.close()
            return effect
    raise InputError("this step asked no model")


def _parts(state: ConversationState, context: NodeContext, floor: int, call: ModelCall) -> tuple[Part, ...]:
    config = frozen_config(state)
    count = context.env.count_for(config)
    view = floor_view(state, config, floor, context)
    return tuple(
        Part(section, message_tokens(message, count), message)
        for section, message in zip(view.layout, call.messages, strict=True)
    )

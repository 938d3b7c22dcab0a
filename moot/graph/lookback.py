"""Looks back at the prompt that an utterance came from, assembled again from the state of that moment."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from moot.graph.session import DebateSession
from moot.nodes.calls import ModelCall, Reply, WireMessage
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Emit, Job, Work
from moot.nodes.floors.seats import whole_view
from moot.nodes.tools.exchange import wire_tokens
from moot.nodes.turn import turn
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState, Receipt
from moot.state.earlier_builds import up_to_date
from moot.state.entries import JsonObject
from moot.state.errors import DebateNotFound, InputError


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

    def to_json(self) -> JsonObject:
        """Return it as JSON types."""
        parts = [{"section": p.section, "tokens": p.tokens, **p.message} for p in self.parts]
        return {"receipt": dict(self.receipt), "exact": self.exact, "digest": self.digest, "prompt": parts}


def look_back(session: DebateSession, seq: int) -> Lookback:
    """Assemble again the prompt that the entry at `seq` came from.

    The state is the checkpoint's that the receipt names; of a fork, the ancestor's where the entry was said.
    No model is called.

    Raises:
        InputError: no prompt led to this entry, or its checkpoint is gone.
    """
    receipts: list[Receipt] = session.state().values.get("receipts") or []
    receipt = next((each for each in receipts if each["seq"] == seq), None)
    if receipt is None:
        raise InputError(
            f"no prompt led to entry {seq}: `moot show {session.name} --receipts` lists those that did"
        )
    checkpoint = receipt["checkpoint"]
    holder, state = _holder_of(session, checkpoint)
    context = NodeContext(
        session.environment, session.claim(state), debate=holder.thread, checkpoint=checkpoint
    )
    calls = [call for call in _calls(state, context, holder) if call.floor == receipt["floor"]]
    if not calls:
        raise InputError(f"no prompt led to entry {seq}: a person said it")
    call = next((call for call in calls if call.digest == receipt["digest"]), calls[0])
    return Lookback(receipt, _parts(state, context, call), call.digest)


def _holder_of(session: DebateSession, checkpoint: str) -> tuple[DebateSession, ConversationState]:
    """Return the debate, or one that it was forked from, that has a checkpoint, with the state there."""
    holder = session
    with suppress(DebateNotFound):
        while checkpoint and holder.thread:
            if values := holder.state(checkpoint).values:
                return holder, up_to_date(cast(ConversationState, values))
            holder = holder.on(holder.records.find(holder.thread).parent)
    raise InputError(f"the checkpoint {checkpoint!r} that this prompt was made from is gone")


def _calls(state: ConversationState, context: NodeContext, holder: DebateSession) -> list[ModelCall]:
    """Return what `turn` asked of models, as far as the journal tells how it went on."""
    step, body = state["step"]["no"], turn(state, context)
    answers = holder.records.journal.replies(holder.thread, step)
    calls: list[ModelCall] = []
    outcome: Any = None
    try:
        for batch in count():
            effect = body.send(outcome)
            while isinstance(effect, Emit):
                effect = body.send(None)
            if not isinstance(effect, Work | Sequence):
                break  # a person was asked
            asked: Sequence[Job | ModelCall] = effect.jobs if isinstance(effect, Work) else effect
            calls += [call for call in asked if isinstance(call, ModelCall)]
            keys = ((step, "turn", batch, place, each.digest) for place, each in enumerate(asked))
            found = [answers.get(key) for key in keys]
            if None in found:
                break
            replies = [Reply.from_json(reply) for reply in found if reply is not None]
            outcome = [reply.text for reply in replies] if isinstance(effect, Work) else replies
    except StopIteration:
        pass
    finally:
        body.close()
    return calls


def _parts(state: ConversationState, context: NodeContext, call: ModelCall) -> tuple[Part, ...]:
    config = frozen_config(state)
    counter = context.env.count_for(config)
    view = whole_view(state, config, call, context)
    return tuple(
        Part(section, wire_tokens([message], counter), message)
        for section, message in zip(view.layout, call.messages, strict=True)
    )

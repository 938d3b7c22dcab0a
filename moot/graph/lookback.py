"""Looks back at the prompt that an utterance came from, assembled again from the state of that moment."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from moot.graph.debate import NODES
from moot.graph.judgement import JudgingOptions
from moot.graph.session import DebateSession
from moot.nodes.calls import ModelCall, Reply, WireMessage
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Hear, Heard, Job, LookUp, Remember, Work
from moot.nodes.judge import assess_debate
from moot.nodes.tools.exchange import wire_tokens
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import CallReceipt, ConversationState, Receipt
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
    """The exact prompt of one utterance, or of one other call."""

    receipt: Receipt | CallReceipt
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


def look_back(session: DebateSession, wanted: int | str) -> Lookback:
    """Assemble again the prompt that an entry came from, by its `seq`, or that of another call, by its id.

    The state is the checkpoint's that the receipt names; of a fork, the ancestor's where the entry was said.
    No model is called.

    Raises:
        InputError: no prompt led to this entry, there is no such call, or its checkpoint is gone.
    """
    listed, key = ("calls", "id") if isinstance(wanted, str) else ("receipts", "seq")
    sent: list[JsonObject] = session.state().values.get(listed) or []
    found = next((each for each in sent if each[key] == wanted), None)
    if found is None:
        what = wanted if isinstance(wanted, str) else f"entry {wanted}"
        raise InputError(
            f"no prompt led to {what}: `moot show {session.name} --{listed}` lists those that were sent"
        )
    holder, state = state_at(session, found["checkpoint"])
    config, node = frozen_config(state), found.get("node", "turn")
    context = NodeContext(session.environment, session.claim(state), holder.thread, found["checkpoint"])
    count = context.env.count_for(config)
    if node in NODES:
        body = NODES[node](state, context)
    else:  # it was judged again, with what it was judged by
        judged_by = JudgingOptions(**found.get("options", {})).applied_to(config)
        flow = assess_debate(state, judged_by, context.env.count_for(judged_by))
        body = cast(Body, flow)  # which asks, and no more
    asked = [call for call in _calls(body, holder, found["step"], node) if call.floor == found["floor"]]
    if not asked:
        raise InputError(f"no prompt led to {wanted}: a person said it")
    call = next((call for call in asked if call.digest == found["digest"]), asked[0])
    parts = zip(call.view.layout if call.view else (), call.messages, strict=False)
    told = tuple(Part(section, wire_tokens([message], count), message) for section, message in parts)
    return Lookback(cast(Receipt | CallReceipt, found), told, call.digest)


def state_at(session: DebateSession, checkpoint: str) -> tuple[DebateSession, ConversationState]:
    """Return the debate, or one that it was forked from, that has a checkpoint, with the state there."""
    holder = session
    with suppress(DebateNotFound):
        while checkpoint and holder.thread:
            if values := holder.state(checkpoint).values:
                return holder, up_to_date(cast(ConversationState, values))
            holder = holder.on(holder.records.find(holder.thread).parent)
    raise InputError(f"the checkpoint {checkpoint!r} that this prompt was made from is gone")


def _calls(body: Body, holder: DebateSession, step: int, node: str) -> list[ModelCall]:
    """Return what a body asked of models, as far as the journal tells how it went on."""
    answers = holder.records.journal.replies(holder.thread, step)
    calls: list[ModelCall] = []
    outcome: Any = None
    try:
        for batch in count():
            effect = body.send(outcome)
            while isinstance(effect, Emit | Hear | LookUp | Remember):
                effect = body.send(Heard() if isinstance(effect, Hear) else [])
            if not isinstance(effect, Work | Sequence):
                break  # a person was asked
            asked: Sequence[Job | ModelCall] = effect.jobs if isinstance(effect, Work) else effect
            calls += [call for call in asked if isinstance(call, ModelCall)]
            keys = ((step, node, batch, place, each.digest) for place, each in enumerate(asked))
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

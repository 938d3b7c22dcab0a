"""Reconstruction of the exact prompt of a message, from the debate's state at that time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any, cast, get_args

from moot.calls import effects, model_calls
from moot.config import DebateConfig, debate_config, model_settings
from moot.debates.continuation import JudgingOptions
from moot.debates.session import DebateSession
from moot.documents import DebateDocument
from moot.graph.debate import NODES
from moot.nodes.extract import extract_rest
from moot.runtime.background_loop import call_from_sync
from moot.runtime.context import node_context
from moot.runtime.fitting import fitted_body, fitted_context
from moot.runtime.run_node import run_to_end
from moot.runtime.run_turns import ModelTurnRequest, make_turn_requests, run_turns
from moot.state.conversation import CallReceipt, ConversationState, MemoryKind, Receipt
from moot.state.entries import JsonObject, entry_id, tokens_of
from moot.state.errors import DebateNotFound, InputError
from moot.tools.tool import wire_tokens


@dataclass(frozen=True)
class PromptPart:
    """One message of a reconstructed prompt."""

    section: str
    """Section of the prompt that contains the message, for example `system` or `turn_suffix`."""
    tokens: int
    """Exact number of tokens in the message, including the overhead of the message format."""
    message: model_calls.WireMessage


@dataclass(frozen=True)
class ReconstructedPrompt:
    """Prompt of an earlier model call, rebuilt from the stored state."""

    receipt: Receipt | CallReceipt
    """Stored record of the original model call."""
    parts: tuple[PromptPart, ...]
    """Messages that make up the prompt, in the order in which they were sent."""
    digest: str
    """SHA-256 hash of the reconstructed request, to compare with the original."""

    @property
    def exact(self) -> bool:
        """True if the reconstructed request equals the original request byte for byte."""
        return self.digest == self.receipt["digest"]

    def to_json(self) -> JsonObject:
        """Return the reconstructed prompt and the record of its call as a JSON object."""
        parts = [{"section": p.section, "tokens": p.tokens, **p.message} for p in self.parts]
        return {"receipt": dict(self.receipt), "exact": self.exact, "digest": self.digest, "prompt": parts}


def reconstruct_prompt(session: DebateSession, seq_or_call_id: int | str) -> ReconstructedPrompt:
    """Reconstruct the prompt of a transcript entry or of another model call.

    The receipt names the checkpoint with the state. For a fork, the checkpoint can belong to an ancestor.

    Raises:
        InputError: The entry has no prompt, the call does not exist, or its checkpoint is deleted.
    """
    channel, key = ("calls", "id") if isinstance(seq_or_call_id, str) else ("receipts", "seq")
    receipts: list[JsonObject] = session.state().values.get(channel) or []
    receipt = next((each for each in receipts if each[key] == seq_or_call_id), None)
    label = seq_or_call_id if isinstance(seq_or_call_id, str) else f"message {entry_id(seq_or_call_id)}"
    if receipt is None:
        raise InputError(
            f"no prompt was sent for {label}: run `moot show {session.name} --{channel}` to list the prompts "
            "that were sent"
        )
    holder, state = state_at(session, receipt["checkpoint"])
    env, node = session.environment, receipt.get("node", "turn")
    context = node_context(env, state, session.permissions(state), holder.thread, receipt["checkpoint"])
    if node in NODES:
        body = fitted_body(node, NODES[node])(context)
    elif receipt.get("purpose") == "extract":  # claims found after the end
        body = fitted_body("extract", extract_rest)(context)
    else:  # a later judging, with its own options
        judging_config = JudgingOptions(**receipt.get("options", {})).applied_to(context.config)
        judged = replace(context, config=judging_config, count=env.token_counter_for(judging_config))
        judged = fitted_context(judged, state.get("model_facts") or {}, "judge")
        body = cast(effects.NodeBody, judged.judging.assess())  # a generator of model calls only
    calls = [
        call
        for call in _calls(body, holder, receipt["step"], node)
        if call.call_index == receipt["call_index"]
    ]
    if not calls:
        raise InputError(f"no prompt was sent for {label}, because a person wrote it")
    call = next((call for call in calls if call.digest == receipt["digest"]), calls[0])
    pairs = zip(call.prompt.layout if call.prompt else (), call.messages, strict=False)
    parts = tuple(
        PromptPart(section, wire_tokens([message], context.count), message) for section, message in pairs
    )
    return ReconstructedPrompt(cast(Receipt | CallReceipt, receipt), parts, call.digest)


def state_at(session: DebateSession, checkpoint: str) -> tuple[DebateSession, ConversationState]:
    """Return the session of the debate or the ancestor that has a checkpoint, and the state there."""
    holder = session
    with suppress(DebateNotFound):
        while checkpoint and holder.thread:
            if values := holder.state(checkpoint).values:
                return holder, cast(ConversationState, values)
            holder = holder.on(holder.records.find(holder.thread).parent)
    raise InputError(
        f"this prompt cannot be reconstructed, because its checkpoint {checkpoint!r} has been deleted"
    )


def _calls(
    body: effects.NodeBody, holder: DebateSession, step: int, node: str
) -> list[model_calls.ModelCall]:
    """Return a node's model calls in one step, up to the first without recorded replies."""
    answers = holder.records.journal.replies(holder.thread, step)
    calls: list[model_calls.ModelCall] = []
    outcome: Any = None
    try:
        for batch in count():
            effect = body.send(outcome)
            while isinstance(
                effect, effects.Emit | effects.ReadInbox | effects.SearchStore | effects.PutInStore
            ):
                effect = body.send(effects.InboxContents() if isinstance(effect, effects.ReadInbox) else [])
            if not isinstance(effect, effects.LocalWork | Sequence):
                break  # a question to a person
            jobs: Sequence[effects.LocalJob | model_calls.ModelCall] = (
                effect.jobs if isinstance(effect, effects.LocalWork) else effect
            )
            calls += [call for call in jobs if isinstance(call, model_calls.ModelCall)]
            keys = ((step, node, batch, call_index, each.digest) for call_index, each in enumerate(jobs))
            stored_replies = [answers.get(key) for key in keys]
            if None in stored_replies:
                break
            replies = [reply for reply in stored_replies if reply is not None]
            outcome = [reply.text for reply in replies] if isinstance(effect, effects.LocalWork) else replies
    except StopIteration:
        pass
    finally:
        body.close()
    return calls


KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
_VERSIONS = {"rolling": "rolling summary", "perspective": "perspective", "judge": "judge's summary"}


@dataclass(frozen=True)
class MemoryCost:
    """Cost of one kind of memory, and the number of prompts that contained it."""

    kind: MemoryKind
    made: int
    """Number of items of this kind, such as summary versions, claim events, reflections or pinned messages.
    For kinds without items of their own, the number of prompts that contain the kind."""
    calls: int
    """Number of model calls that created this kind of memory."""
    tokens: int
    """Number of prompt and reply tokens in the calls that created this kind of memory."""
    cost_usd: float
    """Cost in US$ of the calls that created this kind of memory, or 0 if the prices are unknown."""
    prompts: int
    """Number of prompts that contain this kind of memory. Prompts of judges count too."""
    shown_tokens: int
    """Approximate number of tokens that this kind of memory uses in all prompts."""


def audit(document: DebateDocument) -> list[MemoryCost]:
    """Return the cost of each kind of debate memory, and the number of prompts that contained it."""
    board, calls = document["blackboard"], document.get("calls", [])
    events = [
        event
        for event in board["claim_events"]
        if event["type"] not in ("extraction_pass", "reflection_pass")
    ]
    item_counts: dict[str, int] = {
        **dict.fromkeys(_VERSIONS.values(), 0),
        **Counter(_VERSIONS.get(each["kind"], "rolling summary") for each in document["summaries"]),
        "ledger": len(events),
        "reflections": len(board["reflections"]),
        "cruxes": len(board["cards"]),
        "pinned": len(document.get("state", {}).get("pinned", [])),
    }
    memories = [each.get("memory", {}) for each in (*document["receipts"], *calls)]
    rows = []
    for kind in KINDS:
        usages = [call["usage"] for call in calls if call["memory_kind"] == kind]
        shown_tokens = [memory[kind] for memory in memories if kind in memory]
        cost = sum(usage.get("cost_usd", 0.0) for usage in usages)
        tokens = sum(map(tokens_of, usages))
        item_count = item_counts.get(kind, len(shown_tokens))
        rows.append(
            MemoryCost(kind, item_count, len(usages), tokens, cost, len(shown_tokens), sum(shown_tokens))
        )
    return rows


@dataclass(frozen=True)
class ReplayedTurn:
    """A debater's original message and the message without one kind of memory."""

    entry_id: str
    speaker: str
    shown_tokens: int
    """Number of tokens that this kind of memory used in the original prompt."""
    said: str
    without: str
    error: str
    """Error message if repeating the turn failed, otherwise `""`."""
    tokens: int
    """Number of prompt and reply tokens used to repeat the turn."""

    def to_json(self) -> dict[str, object]:
        """Return the original and the repeated message as a JSON object."""
        return asdict(self)


def replay_without(
    session: DebateSession, kind: str, first: int, last: int, *, model: str | None = None
) -> list[ReplayedTurn]:
    """Repeat turns of a debate with one kind of memory removed from the prompts. Nothing is stored.

    `model` replies instead of the debaters' own models.

    Raises:
        InputError: The kind or a turn does not exist, a person took the turn, or the debater's model is
            `offline` and no `model` is given.
    """
    values = session.state().values
    all_receipts: list[Receipt] = values.get("receipts") or []
    receipts = all_receipts[max(0, first - 1) : last]
    if not receipts or first > last or first < 1:
        raise InputError(
            f"--turns {first}-{last} is not a valid range: use turn numbers from 1 to {len(all_receipts)}"
        )
    valid_kinds = [each for each in KINDS if each != "judge's summary"]
    if kind not in valid_kinds:
        raise InputError(
            f"--replay-without {kind!r} is not a kind of memory: use one of "
            f"{', '.join(map(repr, valid_kinds))}"
        )
    transcript = values["full_transcript"]
    return [
        _replay_call(session, cast(MemoryKind, kind), receipt, transcript[receipt["seq"]]["content"], model)
        for receipt in receipts
    ]


def _replay_call(
    session: DebateSession, kind: MemoryKind, receipt: Receipt, original_text: str, model: str | None
) -> ReplayedTurn:
    """Repeat a debater's turn without one kind of memory. The journal does not get the reply."""
    holder, full_state = state_at(session, receipt["checkpoint"])
    state = without(full_state, kind)
    if model:
        debaters = [{**each, "model": model} for each in state["config"]["debaters"]]
        state = {**state, "config": {**state["config"], "model": model, "debaters": debaters}}
    config = debate_config.frozen_config(state)
    speaker = config.debater(receipt["speaker"])
    if not model and model_settings.is_built_in(config.model_of(speaker)):
        raise InputError(
            f"debater {speaker.name!r} uses the model {config.model_of(speaker)!r}, which ignores memory: "
            "choose another model with --model, or add --model offline to repeat the turn anyway"
        )
    permissions = session.permissions(state, DebateConfig(model=model) if model else None)
    context = node_context(session.environment, state, permissions, holder.thread, receipt["checkpoint"])
    request = make_turn_requests(context)[receipt["call_index"]]
    if not isinstance(request, ModelTurnRequest):
        raise InputError(
            f"the turn of message {receipt['entry_id']} cannot be repeated, because a person wrote the "
            "message: choose turns of models"
        )
    (result,), handler = call_from_sync(
        run_to_end, run_turns([request]), session.environment, permissions, session.beside_graph
    )
    return ReplayedTurn(
        entry_id=receipt["entry_id"],
        speaker=speaker.name,
        shown_tokens=receipt.get("memory", {}).get(kind, 0),
        said=original_text,
        without=result.reply.text,
        error=result.reply.error,
        tokens=tokens_of(handler.spent),
    )


def without(state: ConversationState, kind: MemoryKind) -> ConversationState:
    """Return a copy of a debate's state with one kind of memory emptied or disabled."""
    config = state["config"]
    memory, debaters = config["memory"], config["debaters"]
    no_retrieval = {**memory, "retrieval": {**memory["retrieval"], "enabled": False}}
    changes: Mapping[str, Mapping[str, object]] = {
        "rolling summary": {"rolling_summary": {}},
        "perspective": {"perspective_summaries": {}},
        "ledger": {"claim_events": []},
        "reflections": {"reflections": []},
        "cruxes": {"crux_cards": {}},
        "retrieved": {"config": {**config, "memory": no_retrieval}},
        "cross-debate memory": {"cross_debate_memory": {}},
        "reference documents": {
            "config": {**config, "debaters": [{**each, "reference_documents": []} for each in debaters]}
        },
        "pinned": {"pinned": []},
    }
    return cast(ConversationState, {**state, **changes[kind]})

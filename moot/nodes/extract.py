"""Node `extract`: a model extracts claims from new messages."""

from collections.abc import Sequence

from moot.calls.effects import NodeBody, Update, errors_update
from moot.calls.model_calls import CallGenerator
from moot.claims.claim_extraction import ClaimExtraction
from moot.claims.crux_cards import with_entries
from moot.claims.ledger_from_events import ledger_of
from moot.claims.model_extraction import as_context, extract_claims, extraction_batches, texts_tokens
from moot.memory.background import background_entries, select_background
from moot.runtime.context import NodeContext
from moot.state.claim_events import OVERALL, Room
from moot.state.conversation import ConversationState, options_of
from moot.state.entries import Entry, ids_in, seqs_of, traits_of


def extract(context: NodeContext) -> NodeBody:
    """Use a model to find claims in new messages, and record what debaters say about them.

    If a call fails, its messages yield no claims, and the failure is added to the debate's errors.
    """
    return (yield from _extract_through(context, due_through(context, context.leaving_through)))


def extract_rest(context: NodeContext) -> NodeBody:
    """Find claims in all messages without extracted claims, whatever the settings say. See `extract`."""
    return (yield from _extract_through(context, len(context.state["full_transcript"]) - 1))


def _extract_through(context: NodeContext, through: int) -> NodeBody:
    state, transcript = context.state, context.state["full_transcript"]
    update: Update = {}
    start = ledger_of(state).read_through + 1
    if active_rooms := _spoken_in_rooms(state):
        update["crux_rooms"] = active_rooms
    if through < start:
        return update
    entries = [
        entry
        for entry in transcript[start : through + 1]
        if entry["speaker"] in context.names and traits_of(entry).argues
    ]
    if not entries:
        return update
    extraction, failures = yield from _extract_claims(context, entries)
    update["claim_events"] = extraction.finish(through)
    return {**update, **errors_update(state, "extract", failures)}


def extraction_due(context: NodeContext, leaving: int) -> bool:
    """Return True if claims must be extracted now, or crux rooms got new messages.

    `leaving` is the `seq` up to which messages are about to leave the window, -1 for none.
    """
    state = context.state
    return bool(_spoken_in_rooms(state)) or due_through(context, leaving) > ledger_of(state).read_through


def _spoken_in_rooms(state: ConversationState) -> dict[str, Room]:
    """Return the crux rooms that got new messages, with the ids of these messages."""
    rooms = state.get("crux_rooms", {})
    start = ledger_of(state).read_through + 1
    return with_entries(rooms, state["full_transcript"][start:]) if rooms else {}


def due_through(context: NodeContext, leaving: int) -> int:
    """Return the number of the last message from which claims must be extracted now.

    The number is -1 if there is no such message. Claims are extracted before something reads them. A protocol
    with phases names those after which claims are read. In the long form, claims are extracted when messages
    leave the window, and from the remaining messages after the last turn.
    """
    state, config, protocol = context.state, context.config, context.protocol
    step, last_seq = state.get("step") or {}, len(state["full_transcript"]) - 1
    if not context.extracts_claims:
        return -1
    rows = {name: phase.extracts for name, phase in protocol.phases.items() if phase.extracts}
    if rows:
        extracts = rows.get(step["phase"]) if step else None
        return last_seq if not step or (extracts and extracts(config)) else -1
    is_over = not step or state.get("turn_count", 0) >= config.total_turns()
    return last_seq if is_over else leaving


def _extract_claims(
    context: NodeContext, entries: Sequence[Entry]
) -> CallGenerator[tuple[ClaimExtraction, list[str]]]:
    """Let a model extract claims, and return them and an error for each failed call."""
    state, config, transcript = context.state, context.config, context.state["full_transcript"]
    # Claims may be extracted from earlier messages that the entries cite. People's messages give facts.
    cited_seqs = {seq for entry in entries for seq in seqs_of(ids_in(entry["content"]))}
    span = transcript[entries[0]["seq"] : entries[-1]["seq"]]
    cited_seqs |= {entry["seq"] for entry in span if traits_of(entry).by == "person"}
    cited_seqs -= {entry["seq"] for entry in (*entries, *background_entries(context))}
    earlier = [transcript[seq] for seq in sorted(cited_seqs) if 0 < seq < entries[-1]["seq"]]
    background = select_background(context)
    context_texts = as_context(background.texts("", background.tokens))
    extraction = ClaimExtraction(
        known=state.get("claim_events") or [],
        topic=state["topic"],
        entries={entry["id"]: entry for entry in (*earlier, *entries)},
        debaters=list(context.names),
        by="model",
        aspects=(state.get("protocol_state") or {}).get("aspects") or (),
        options=options_of(state),
        background=background.texts,
        background_tokens=texts_tokens(context_texts, context.count),
        threshold=config.blackboard.confidence,
    )
    failures: list[str] = []
    for chunk in extraction_batches(entries, config):
        extraction.aspect, extraction.subject = _subject(state, chunk)
        extraction.last = _is_last_word(context, chunk)
        failures += yield from extract_claims(extraction, config, chunk, context.count)
    return extraction, failures


def _is_last_word(context: NodeContext, entries: Sequence[Entry]) -> bool:
    """Return True if messages are of the final step, and the debate cannot be continued."""
    step = context.state.get("step") or {}
    if not step.get("is_final") or context.protocol.can_continue:
        return False
    return all(entry["phase"] == step["phase"] for entry in entries)


def _subject(state: ConversationState, entries: Sequence[Entry]) -> tuple[str, str]:
    """Return the aspect that the messages discuss, and its crux rooms or `""`."""
    rooms = state.get("crux_rooms", {})
    first_room = rooms.get(entries[0]["room"])
    claim = ledger_of(state).claims.get(first_room["claim"]) if first_room else None
    aspect = claim["aspect"] if claim else state.get("step", {}).get("aspect") or OVERALL
    entry_rooms = [rooms[key] for key in dict.fromkeys(entry["room"] for entry in entries) if key]
    room_notes = [
        f"{' and '.join(room['between'])} in a side room on {room['claim']}" for room in entry_rooms
    ]
    return aspect, "; ".join([aspect, *room_notes]) if room_notes else ""

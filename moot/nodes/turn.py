"""`turn`: lets every floor of the step speak, models at the same time, people by interrupt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moot.nodes.blackboard.by_rule import facts_of
from moot.nodes.calls import Reply
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Emit, Update, Work
from moot.nodes.floors.human_floors import hear_people
from moot.nodes.floors.model_floors import Spoken, let_speak
from moot.nodes.floors.seats import Seat, embedding_work, make_seats, whole_view
from moot.nodes.memory.window import window_message
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.reading.facts import importance
from moot.nodes.text.tokens import cut_middle
from moot.nodes.tools.exchange import RESULT_TOKENS, Exchange, ToolCall
from moot.state.config.frozen import frozen_config
from moot.state.conversation import ConversationState, Receipt
from moot.state.entries import Entry, EntryKind, entry_id, make_entry, turns_taken


@dataclass(frozen=True)
class _Taken:
    """One floor, taken."""

    seat: Seat
    spoken: Spoken


def turn(state: ConversationState, context: NodeContext) -> Body:
    """Let every floor of the step speak; entries enter in floor order, never in arrival order."""
    config = frozen_config(state)
    job = embedding_work(state, context, config)
    failures = [failure for failure in (yield Work([job])) if failure] if job else []
    seats = make_seats(state, context, config)
    models = iter((yield from let_speak([seat.asked for seat in seats if seat.asked])))
    people = iter((yield from hear_people(state, config, [seat.given for seat in seats if seat.given])))
    taken = [_Taken(seat, next(models) if seat.asked else Spoken(Reply(text=next(people)))) for seat in seats]
    if not any(item.spoken.reply.ok for item in taken):
        taken[0].spoken.reply.require()
    entries: list[Entry] = []
    receipts: list[Receipt] = []
    for item in taken:
        entries += _tool_entries(state, context, len(state["full_transcript"]) + len(entries), item)
        seq = len(state["full_transcript"]) + len(entries)
        entries.append((_entry if item.spoken.reply.ok else _notice)(state, context, seq, item))
        receipts.append(_receipt(state, context, entries[-1], item))
    for entry in entries:
        yield Emit({"event": "entry", "entry": entry})
    update: Update = {
        "full_transcript": entries,
        "messages": [window_message(entry) for entry in entries],
        "receipts": receipts,
        "turn_count": state.get("turn_count", 0) + turns_taken(entries, config.names()),
    }
    step, replies = state["step"]["no"], [item.spoken.reply for item in taken]
    failures += [reply.error for reply in replies if not reply.ok]
    errors = [{"step": step, "node": "turn", "error": failure} for failure in failures]
    return {**update, "errors": errors} if errors else update


def _tool_entries(state: ConversationState, context: NodeContext, start: int, item: _Taken) -> list[Entry]:
    """Return the calls of tools that came before a speech, each with its result."""
    entries: list[Entry] = []
    count = context.env.count_for(frozen_config(state))
    for exchange in item.spoken.exchanges:
        for place, call in enumerate(exchange.calls):
            asked = _tool_call(exchange, place, call)
            number = start + len(entries)
            entries.append(_made(state, context, number, item, "tool_call", asked))
            answered = {
                "speaker": "tools",
                "targets": [entry_id(number)],
                "content": f"{call.name}: {cut_middle(call.result, RESULT_TOKENS, count)}",
            }
            entries.append(_made(state, context, number + 1, item, "tool_result", answered))
    return entries


def _tool_call(exchange: Exchange, place: int, call: ToolCall) -> dict[str, Any]:
    """Return what is said of one call; words and usage of a reply with several belong to the first."""
    said = exchange.reply.text.strip() if place == 0 else ""
    return {
        "speaker": "",
        "targets": [],
        "content": "\n\n".join(filter(None, [said, f"{call.name} {call.arguments}"])),
        "model": exchange.reply.model,
        "usage": exchange.reply.usage if place == 0 else {},
    }


def _made(
    state: ConversationState,
    context: NodeContext,
    seq: int,
    item: _Taken,
    kind: EntryKind,
    fields: Mapping[str, Any],
) -> Entry:
    """Return an entry of this step, its tokens counted."""
    values = {
        "phase": state["step"]["phase"],
        "round": state["step"]["round"],
        "room": item.seat.floor["room"],
        "at": context.env.clock(),
        **{key: value for key, value in fields.items() if key not in ("speaker", "content")},
    }
    speaker = fields["speaker"] or item.seat.floor["speaker"]
    entry = make_entry(seq, speaker, kind, fields["content"], **values)
    return {**entry, "tokens": context.env.count_for(frozen_config(state))(entry["content"])}


def _entry(state: ConversationState, context: NodeContext, seq: int, item: _Taken) -> Entry:
    config, reply = frozen_config(state), item.spoken.reply
    kind = protocol_named(config.protocol).entry_kind(state["step"]["phase"])
    said = {
        "speaker": "",
        "content": reply.text + (" […cut off]" if reply.finish_reason == "length" else ""),
        "targets": item.seat.floor["targets"],
        "model": reply.model,
        "usage": reply.usage,
    }
    entry = _made(state, context, seq, item, kind, said)  # type: ignore[arg-type]  # the protocol's
    return {**entry, "importance": importance(entry, facts_of(entry, config.names()))}


def _notice(state: ConversationState, context: NodeContext, seq: int, item: _Taken) -> Entry:
    """Return what stands in the transcript for a floor that failed.

    Raises:
        ModelError: the protocol does not go on without it.
    """
    config, floor, reply = frozen_config(state), item.seat.floor, item.spoken.reply
    said = protocol_named(config.protocol).stand_in(state, config, floor, reply.error)
    if said is None:
        reply.require()
    targets = [floor["speaker"], *floor["targets"]]
    fields = {"speaker": "moot", "content": said or "", "targets": targets}
    return _made(state, context, seq, item, "notice", fields)


def _receipt(state: ConversationState, context: NodeContext, entry: Entry, item: _Taken) -> Receipt:
    seat, call = item.seat, item.spoken.call
    asked_again = call is not None and call.behind
    view = whole_view(state, frozen_config(state), call, context) if call and asked_again else seat.view
    return {
        "entry_id": entry["id"],
        "seq": entry["seq"],
        "speaker": seat.floor["speaker"],
        "phase": entry["phase"],
        "round": entry["round"],
        "step": state["step"]["no"],
        "floor": seat.index,
        "budget": view.budget if view else 0,
        "total_tokens": view.total_tokens if view else 0,
        "sections": dict(view.sections) if view else {},
        "message_ids": _ends(view.shown) if view else [],
        "retrieved": list(view.retrieved) if view else [],
        "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
        "left_out": list(view.left_out) if view else [],
        "digest": call.digest if call else "",
        "checkpoint": context.checkpoint,
    }


def _ends(ids: Sequence[str]) -> list[str]:
    return [ids[0], ids[-1]] if ids else []

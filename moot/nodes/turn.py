"""`turn`: lets every floor of the step speak, models at the same time, people by interrupt."""

from __future__ import annotations

import json
from collections.abc import Sequence

from moot.nodes.calls import ModelCall, Reply, View
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import Body, Work, errors_update
from moot.nodes.floors.seats import HumanFloor, ModelFloor, embedding_work, make_seats
from moot.nodes.floors.speaking import Spoken, hear_people, let_speak
from moot.nodes.memory.window import Scribe
from moot.nodes.models.failures import REFUSALS
from moot.nodes.protocols.protocol_table import protocol_named
from moot.nodes.reading.moves import importance
from moot.nodes.reading.tool_results import use_of
from moot.nodes.text.tokens import TokenCounter, cut_middle
from moot.nodes.tools.exchange import RESULT_TOKENS, Exchange
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, Floor, Receipt
from moot.state.entries import Entry, turns_taken

MARKS = {"length": " […cut off]", **dict.fromkeys(REFUSALS, " […cut off by the provider's content filter]")}
"""What stands behind words that a provider did not let end."""
PASSES = "[passes: would not answer]"
"""The turn of a model that refused to speak; why is among the debate's errors."""


def passes(reply: Reply, config: DebateConfig) -> bool:
    """Return whether a floor passes because its model refused to speak."""
    return reply.refused and config.limits.refusals == "pass"


def turn(state: ConversationState, context: NodeContext) -> Body:
    """Let every floor of the step speak; entries enter in floor order, never in arrival order."""
    config, step = frozen_config(state), state["step"]
    job = embedding_work(state, context)
    failures: list[str] = (yield Work([job])) if job else []
    seats = make_seats(state, context)
    models = iter((yield from let_speak([seat for seat in seats if isinstance(seat, ModelFloor)])))
    people = iter((yield from hear_people(state, [seat for seat in seats if isinstance(seat, HumanFloor)])))
    spoken = [
        next(models) if isinstance(seat, ModelFloor) else Spoken(Reply(text=next(people))) for seat in seats
    ]
    if not any(each.reply.ok or passes(each.reply, config) for each in spoken):
        spoken[0].reply.require()

    count = context.env.count_for(config)
    scribe = Scribe(
        len(state["full_transcript"]), count, context.env.clock, phase=step["phase"], round=step["round"]
    )
    receipts: list[Receipt] = []
    for index, (floor, each) in enumerate(zip(step["floors"], spoken, strict=True)):
        _write_tools(scribe, floor, each.exchanges, count)
        entry = _write_speech(scribe, state, floor, each.reply)
        receipts.append(_receipt(state, context, entry, index, each.call))
    entered = yield from scribe.enter()
    failures += [each.reply.error for each in spoken]
    return {
        **entered,
        "receipts": receipts,
        "turn_count": state.get("turn_count", 0) + turns_taken(scribe.entries, config.names()),
        **errors_update(state, "turn", failures),
    }


def _write_tools(scribe: Scribe, floor: Floor, exchanges: Sequence[Exchange], count: TokenCounter) -> None:
    """Write the calls of tools that came before a speech, each with its result.

    Words and usage of a reply with several calls belong to the first.
    """
    room = floor["room"]
    for exchange in exchanges:
        said, usage = exchange.reply.text.strip(), exchange.reply.usage
        for call in exchange.calls:
            asked = "\n\n".join(filter(None, [said, f"{call.name} {call.arguments}"]))
            model = exchange.reply.model
            entry = scribe.write(floor["speaker"], "tool_call", asked, room=room, model=model, usage=usage)
            result = f"{call.name}: {cut_middle(call.result, RESULT_TOKENS, count)}"
            answer = scribe.write("tools", "tool_result", result, room=room, targets=[entry["id"]])
            # `run_tool` says so of whatever went wrong, and a tool's own words never begin so.
            failed = call.result.startswith("error: ")
            answer["tool"] = use_of(call.name, json.loads(call.arguments), call.result, failed=failed)
            said, usage = "", {}


def _write_speech(scribe: Scribe, state: ConversationState, floor: Floor, reply: Reply) -> Entry:
    """Write a speech, or the notice that stands for a floor that failed.

    Raises:
        ModelError: the protocol does not go on without it.
    """
    config, room = frozen_config(state), floor["room"]
    protocol, refused = protocol_named(config.protocol), passes(reply, config)
    if not reply.ok and not refused:
        notice = protocol.stand_in(state, config, floor, reply.error)
        if notice is None:
            reply.require()
        targets = [floor["speaker"], *floor["targets"]]
        return scribe.write("moot", "notice", notice or "", room=room, targets=targets)
    kind = protocol.entry_kinds.get(state["step"]["phase"], "speech")
    content = PASSES if refused else reply.text + MARKS.get(reply.finish_reason, "")
    fields = {"room": room, "targets": floor["targets"], "model": reply.model, "usage": reply.usage}
    entry = scribe.write(floor["speaker"], kind, content, **fields)
    entry["importance"] = importance(entry)
    return entry


def _receipt(
    state: ConversationState, context: NodeContext, entry: Entry, index: int, call: ModelCall | None
) -> Receipt:
    view = call.view if call and call.view else View((), 0, 0)
    return {
        "entry_id": entry["id"],
        "seq": entry["seq"],
        "speaker": state["step"]["floors"][index]["speaker"],
        "phase": entry["phase"],
        "round": entry["round"],
        "step": state["step"]["no"],
        "floor": index,
        **view.record(),
        "retrieved": list(view.retrieved),
        "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
        "digest": call.digest if call else "",
        "checkpoint": context.checkpoint,
    }

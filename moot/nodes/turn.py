"""Node `turn`: runs all turns of a step. Models are called in parallel, people are asked by an interrupt."""

import json
from collections.abc import Sequence

from moot.calls.effects import LocalWork, NodeBody, errors_update
from moot.calls.model_calls import INCOMPLETE, REPEATED, ModelCall, Prompt, Reply
from moot.config import DebateConfig
from moot.memory.tool_results import make_tool_use
from moot.memory.window import TranscriptWriter
from moot.models import model_call, reply_faults
from moot.models.failures import REFUSALS
from moot.protocols.answer_calls import add_answers
from moot.runtime import run_turns
from moot.runtime.context import NodeContext
from moot.state.conversation import Receipt, Turn
from moot.state.entries import PASSES, Entry, JsonObject, is_passed, turns_taken
from moot.text.tokens import TokenCounter, truncate_middle
from moot.tools.tool import RESULT_TOKENS, ToolExchange

TRUNCATION_MARKS = {
    **dict.fromkeys(("length", INCOMPLETE), " […cut off]"),
    **dict.fromkeys(REFUSALS, " […cut off by the provider's content filter]"),
    REPEATED: " […cut off: the model repeated itself]",
}
"""Marks at the end of truncated messages, keyed by the reply's finish reason."""


def is_pass(reply: Reply, config: DebateConfig) -> bool:
    """Return True if a model's refusal counts as a passed turn."""
    return reply.refused and config.limits.refusals == "pass"


def turn(context: NodeContext) -> NodeBody:
    """Run all turns of the current step, and record their messages and tool calls in the transcript.

    Entries are written in the order of the turns, not of the replies' arrival.
    """
    state, config, step = context.state, context.config, context.state["step"]
    job = run_turns.turn_embedding_job(context)
    failures: list[str] = (yield LocalWork([job])) if job else []
    requests = run_turns.make_turn_requests(context)
    models = iter(
        (
            yield from run_turns.run_turns(
                [request for request in requests if isinstance(request, run_turns.ModelTurnRequest)]
            )
        )
    )
    people = iter(
        (
            yield from run_turns.run_human_turns(
                context, [request for request in requests if isinstance(request, run_turns.HumanTurnRequest)]
            )
        )
    )
    results = [
        next(models)
        if isinstance(request, run_turns.ModelTurnRequest)
        else run_turns.TurnResult(Reply(text=next(people)))
        for request in requests
    ]
    if not any(each.reply.ok or is_pass(each.reply, config) for each in results):
        results[0].reply.require()

    writer = TranscriptWriter(
        len(state["full_transcript"]),
        context.count,
        context.env.clock,
        *context.origin,
        phase=step["phase"],
        round=step["round"],
    )
    receipts: list[Receipt] = []
    messages: list[Entry] = []
    for index, (turn, result) in enumerate(zip(step["turns"], results, strict=True)):
        _write_tools(writer, turn, result.exchanges, context.count)
        entry = _write_speech(writer, context, turn, result.reply)
        receipts.append(_receipt(context, entry, index, result.call))
        if result.reply.ok and not is_passed(entry):
            messages.append(entry)
    failures += yield from add_answers(context, context.protocol, writer.entries, messages)
    update = yield from writer.enter()
    failures += [each.reply.error for each in results]
    loops = [each.reply.model for each in results if each.reply.finish_reason == REPEATED]
    failures += map(model_call.repetition_note, dict.fromkeys(loops))
    return {
        **update,
        "receipts": receipts,
        "turn_count": state.get("turn_count", 0) + turns_taken(writer.entries, context.names),
        **errors_update(state, "turn", failures),
    }


def _write_tools(
    writer: TranscriptWriter, turn: Turn, exchanges: Sequence[ToolExchange], count: TokenCounter
) -> None:
    """Write a turn's tool calls and results. The first call has the reply's text and usage."""
    room = turn["room"]
    for exchange in exchanges:
        text, usage = exchange.reply.text.strip(), exchange.reply.usage
        for call in exchange.calls:
            content = "\n\n".join(filter(None, [text, f"{call.name} {call.arguments}"]))
            model = exchange.reply.model
            entry = writer.write(turn["speaker"], "tool_call", content, room=room, model=model, usage=usage)
            result = f"{call.name}: {truncate_middle(call.result, RESULT_TOKENS, count)}"
            answer = writer.write("tools", "tool_result", result, room=room, targets=[entry["id"]])
            # `run_tool` marks every failure with this prefix.
            failed = call.result.startswith("error: ")
            answer["tool"] = make_tool_use(call.name, json.loads(call.arguments), call.result, failed=failed)
            text, usage = "", {}


def _write_speech(writer: TranscriptWriter, context: NodeContext, turn: Turn, reply: Reply) -> Entry:
    """Write a debater's message, or a notice if the turn failed.

    Raises:
        ModelError: the turn failed and the protocol requires it.
    """
    config, protocol, room = context.config, context.protocol, turn["room"]
    is_refused = is_pass(reply, config)
    if not reply.ok and not is_refused:
        notice = protocol.fallback_entry(context.state, config, turn, reply.error)
        if notice is None:
            reply.require()
        targets = [turn["speaker"], *turn["targets"]]
        return writer.write("moot", "notice", notice or "", room=room, targets=targets)
    row = protocol.phases.get(context.state["step"]["phase"])
    kind = row.kind if row else "speech"
    text = reply.text
    if not config.debater(turn["speaker"]).is_human:
        text = _marked(text, context, turn["speaker"])
    content = PASSES["model"] if is_refused else text + TRUNCATION_MARKS.get(reply.finish_reason, "")
    fields: JsonObject = {
        "room": room,
        "targets": turn["targets"],
        "model": reply.model,
        "usage": reply.usage,
    }
    entry = writer.write(turn["speaker"], kind, content, **fields)
    if reply.placeholder:
        entry["placeholder"] = True
    return entry


def _marked(text: str, context: NodeContext, speaker: str) -> str:
    """Mark the lines of a message that begin with the name of another debater."""
    others = {
        label: key
        for key, name in context.names.items()
        if key != speaker
        for label in reply_faults.labels_of(name, context.config.debater(key).role)
    }

    def is_quotation(key: str, line: str) -> bool:
        transcript = context.state["full_transcript"]
        return any(each["speaker"] == key and line in each["content"] for each in transcript)

    return reply_faults.mark_other_speakers(text, context.names[speaker], others, is_quotation)


def _receipt(context: NodeContext, entry: Entry, index: int, call: ModelCall | None) -> Receipt:
    state = context.state
    prompt = call.prompt if call and call.prompt else Prompt((), 0, 0)
    return {
        "entry_id": entry["id"],
        "seq": entry["seq"],
        "speaker": state["step"]["turns"][index]["speaker"],
        "phase": entry["phase"],
        "round": entry["round"],
        "step": state["step"]["number"],
        "call_index": index,
        **prompt.to_receipt(),
        "retrieved": list(prompt.retrieved),
        "summary_version": int(state.get("rolling_summary", {}).get("version", 0)),
        "digest": call.digest if call else "",
        "checkpoint": context.checkpoint,
    }

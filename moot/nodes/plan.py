"""Node `plan`: reads the inbox, checks the limits, and asks the protocol for the next step.

It runs between two steps. A requested pause takes effect here.
"""

from typing import Literal, cast

from moot.calls import effects, model_calls
from moot.judging.draft_test import TEST, draft_test_due
from moot.nodes.clarify import clarification_step
from moot.people import interjection_entries, interjections_update, planned_interjections
from moot.protocols.registry import limit_reached, next_step
from moot.protocols.schedule import DECIDE, ConsultModels, End, make_step
from moot.runtime.context import NodeContext
from moot.state.conversation import ConversationState, Step, step_number
from moot.state.entries import JsonObject
from moot.state.reducers import add_totals
from moot.storage.failed_runs import failures_update, with_failures
from moot.storage.inbox import with_questions


def plan(context: NodeContext) -> effects.NodeBody:
    """Add new interjections to the transcript, and choose the next step."""
    state = context.state
    inbox: effects.InboxContents = yield effects.ReadInbox(state.get("last_inbox_number", 0))
    if inbox.pause:
        yield effects.Ask(effects.PAUSE)
    counted = with_questions(with_failures(state, inbox.failed), inbox.question_usage)
    step, failures = yield from _next_step(context.with_state(cast(ConversationState, counted)))
    memo, rooms = step.pop("protocol_update", {}), step.pop("rooms", {})
    step["number"] = step_number(state) + 1
    speakers = [turn["speaker"] for turn in step["turns"]]
    update: JsonObject = {"step": step, "round": step["round"], "current_speaker": ", ".join(speakers)}
    update |= failures_update(state, inbox.failed)
    if inbox.question_usage:
        update["usage"] = add_totals(dict(inbox.question_usage), [update.get("usage", {})])
    error_update = effects.errors_update(
        update, "plan", [f"decided without a model: {failure}" for failure in failures]
    )
    if error_update:
        update["errors"] = [*update.get("errors", ()), *error_update["errors"]]
    update |= {"protocol_state": memo} if memo else {}
    update |= {"crux_rooms": rooms} if rooms else {}
    planned = planned_interjections(context)
    entries = interjection_entries(context, inbox.messages, planned, context.env.clock())
    step["entry_count"] = len(state["full_transcript"]) + len(entries)
    if entries:
        assigned_count = len(entries) - len(inbox.messages) - len(planned)
        update |= interjections_update(entries, assigned_count, *context.origin)
    if planned:
        update["planned_interjections_used"] = state.get("planned_interjections_used", 0) + len(planned)
    if inbox.last_number:
        update["last_inbox_number"] = inbox.last_number
    for entry in entries:
        yield effects.Emit({"event": "entry", "entry": entry})
    fields = {"number": step["number"], "kind": step["kind"], "phase": step["phase"], "round": step["round"]}
    yield effects.Emit({"event": "step", **fields, "speakers": speakers})
    return update


def _next_step(context: NodeContext) -> model_calls.CallGenerator[tuple[Step, list[str]]]:
    """Choose the next step, and return it with an error for each failed model call."""
    state, config, protocol = context.state, context.config, context.protocol
    clarification = None if limit_reached(state, config) else clarification_step(state, config)
    if clarification is not None:
        return clarification, []
    failures: list[str] = []
    planned = next_step(state, config)
    while isinstance(planned, ConsultModels):
        replies = yield planned.calls()
        failures += [reply.error for reply in replies if not reply.ok]
        planned = planned.decide(replies)
    if not isinstance(planned, End):
        return planned, failures
    is_judged = config.judge.enabled and protocol.judge_spec.judged
    wants_verdict = is_judged and not state.get("verdict")
    answer_turns = {each["turns"] for each in state.get("final_answers", [])}
    if wants_verdict and state.get("turn_count", 0) not in answer_turns and protocol.deciders(state, config):
        return make_step(DECIDE, state.get("round", 0), [], kind="judge"), failures
    if draft_test_due(state, config, by_default=TEST in protocol.phases):
        return make_step(TEST, state.get("round", 0), [], kind="judge"), failures
    step = make_step("closing", state.get("round", 0), [], kind="judge" if wants_verdict else "close")
    cause: Literal["limit", "protocol"] = "limit" if planned.limit else "protocol"
    return {
        **step,
        "end_reason": {"cause": cause, "setting": planned.limit, "reason": planned.reason},
    }, failures

"""`plan`: takes up what was said from the floor, checks the limits, asks the protocol for the next step.

A step's boundary is here: this is also where a run stops that somebody asked to pause.
"""

from typing import Literal, cast

from moot.nodes.calls import Flow
from moot.nodes.clarify import clarification_step
from moot.nodes.driving.environment import NodeContext
from moot.nodes.effects import PAUSE, Ask, Body, Emit, Hear, Heard, errors_update
from moot.nodes.people.interjections import (
    interjection_entries,
    interjections_update,
    planned_interjections,
)
from moot.nodes.protocols.protocol import Consult, End, make_step
from moot.nodes.protocols.protocol_table import limit_reached, next_step, protocol_named
from moot.state.config import DebateConfig
from moot.state.config.debate_config import frozen_config
from moot.state.conversation import ConversationState, StateValues, Step, step_no
from moot.state.entries import JsonObject
from moot.state.failed_runs import failures_update, with_failures


def plan(state: ConversationState, context: NodeContext) -> Body:
    """Decide the next step."""
    config = frozen_config(state)
    heard: Heard = yield Hear(state.get("heard", 0))
    if heard.pause:
        yield Ask(PAUSE)
    step, failures = yield from _next_step(with_failures(state, heard.failed), config)
    memo, rooms = step.pop("memo", {}), step.pop("rooms", {})
    step["no"] = step_no(state) + 1
    speakers = [floor["speaker"] for floor in step["floors"]]
    update: JsonObject = {"step": step, "round": step["round"], "current_speaker": ", ".join(speakers)}
    update |= failures_update(state, heard.failed)
    told = errors_update(update, "plan", [f"decided by rule: {failure}" for failure in failures])
    if told:
        update["errors"] = [*update.get("errors", ()), *told["errors"]]
    update |= {"protocol_state": memo} if memo else {}
    update |= {"crux_rooms": rooms} if rooms else {}
    planned = planned_interjections(state)
    count, now = context.env.count_for(config), context.env.clock()
    entries = interjection_entries(state, heard.said, planned, now, count)
    step["after"] = len(state["full_transcript"]) + len(entries)
    if entries:
        adopted = len(entries) - len(heard.said) - len(planned)
        update |= interjections_update(entries, adopted)
    if planned:
        update["interjections_taken"] = state.get("interjections_taken", 0) + len(planned)
    if heard.said:
        update["heard"] = heard.said[-1].no
    for entry in entries:
        yield Emit({"event": "entry", "entry": entry})
    told = {"no": step["no"], "kind": step["kind"], "phase": step["phase"], "round": step["round"]}
    yield Emit({"event": "step", **told, "speakers": speakers})
    return update


def _next_step(given: StateValues, config: DebateConfig) -> Flow[tuple[Step, list[str]]]:
    """Return the next step, and why models that were asked about it gave no answer."""
    state = cast(ConversationState, given)
    clarifying = None if limit_reached(state, config) else clarification_step(state, config)
    if clarifying is not None:
        return clarifying, []
    failures: list[str] = []
    planned = next_step(state, config)
    while isinstance(planned, Consult):
        replies = yield planned.calls()
        failures += [reply.error for reply in replies if not reply.ok]
        planned = planned.decide(replies)
    if not isinstance(planned, End):
        return planned, failures
    judged = config.judge.enabled and protocol_named(config.protocol).brief.judged
    wants_verdict = judged and not state.get("verdict")
    step = make_step("closing", state.get("round", 0), [], kind="judge" if wants_verdict else "close")
    by: Literal["limit", "protocol"] = "limit" if planned.limit else "protocol"
    return {**step, "ended_by": {"by": by, "what": planned.limit, "reason": planned.reason}}, failures

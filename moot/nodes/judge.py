"""Node `judge`: a panel of judges writes the verdict, or a protocol runs its own check."""

from moot.calls.effects import Emit, NodeBody, errors_update
from moot.calls.model_calls import CallGenerator
from moot.judging.assessment import Assessment, next_judging
from moot.judging.draft_test import TEST, run_draft_test
from moot.memory.perspectives import PerspectiveResult, judge_summary
from moot.memory.summarizers.drafting import summary_event, version_of
from moot.protocols.answer_calls import final_answers
from moot.protocols.answer_counts import answer_counts
from moot.protocols.registry import limit_reached
from moot.protocols.schedule import DECIDE
from moot.protocols.voting import stages_text
from moot.runtime.context import NodeContext
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject
from moot.state.verdict import PanelVerdict, Stage


def _step_before_end(context: NodeContext) -> CallGenerator[JsonObject]:
    """Let debaters give final answers or test the decision. Else the step's phase assesses the debate."""
    state, config, protocol = context.state, context.config, context.protocol
    if state["step"]["phase"] == DECIDE:
        return (yield from final_answers(context, protocol.deciders(state, config)))
    if state["step"]["phase"] == TEST:
        end = limit_reached(state, config)
        return (yield from run_draft_test(context, end.reason if end else ""))
    row = protocol.phases.get(state["step"]["phase"])
    assess = row.assess if row else None
    return (yield from assess(context)) if assess else {}


def _add_answers(context: NodeContext, decision: PanelVerdict, stages: list[Stage], *, is_vote: bool) -> None:
    """Add what is known about the debaters' own answers to a decision."""
    votes = context.protocol.vote(context.state, context.config)
    notes = votes.notes() if votes else []
    notes += [votes.tie_text()] if votes and not is_vote else []
    if stages:
        decision["stages"] = stages
        notes.append(stages_text(stages))
    if counts := answer_counts(context.state, context.config, stages):
        decision["answers"] = counts
    decision["notes"] = [*decision["notes"], *notes]


def judge(context: NodeContext) -> NodeBody:
    """Judge the debate and add the verdict to the state.

    A verdict that failed is stored as failed, but a usable verdict stays in its place.
    """
    state, config, protocol = context.state, context.config, context.protocol
    if "end_reason" not in state["step"]:
        return (yield from _step_before_end(context))
    protocol_verdict = protocol.protocol_verdict(state, config)
    proceedings = protocol.proceedings(state, config)
    result: PerspectiveResult | None = None
    if protocol_verdict is None:
        judge_state: ConversationState = {**state}
        judge_state.pop("judge_summary", None)  # belongs to an earlier verdict
        judging = context.with_state(judge_state).judging
        final_entries = proceedings.final_round
        if final_entries and not judging.shows_whole:
            result = yield from judge_summary(context, final_entries, context.env.clock())
        if result and (result.summary or result.failure):
            yield summary_event(result.summary, result.owner, result.failure)
        if result and result.summary:
            judging = context.with_state({**judge_state, "judge_summary": result.summary}).judging
        assessment = yield from judging.assess()
    else:
        assessment = Assessment([], {**protocol_verdict, "judging": next_judging(state)})
    decision = assessment.decision
    _add_answers(context, decision, list(proceedings.stages), is_vote=protocol_verdict is not None)
    outcome = {key: decision.get(key, "") for key in ("status", "winner", "decision")}
    yield Emit({"event": "verdict", **outcome})
    update: JsonObject = {"verdicts": assessment.verdicts}
    earlier_verdict: PanelVerdict | None = state.get("verdict") or None
    if decision["status"] == "ok" or earlier_verdict is None or earlier_verdict["status"] != "ok":
        update |= {"verdict": decision, "solution": decision["solution_markdown"]}
    if result and result.summary:
        update |= {"judge_summary": result.summary, "summary_versions": [version_of(result.summary)]}
    failures = [decision["error"] if decision["status"] == "failed" else "", result.failure if result else ""]
    return {**update, **errors_update(state, "judge", failures)}

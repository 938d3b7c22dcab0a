"""Node `judge`: a panel of judges writes the verdict, or a protocol runs its own check."""

from moot.calls.effects import Emit, NodeBody, errors_update
from moot.calls.model_calls import CallGenerator
from moot.config import DebateConfig
from moot.config.debate_config import frozen_config
from moot.judging.panel import Assessment, assess, next_judging, shows_whole
from moot.memory.perspectives import PerspectiveResult, judge_summary
from moot.memory.summarizers.drafting import summary_event, version_of
from moot.protocols.base import DECIDE
from moot.protocols.registry import limit_reached, protocol_named
from moot.protocols.voting import final_answers, stages_text
from moot.runtime.environment import NodeContext
from moot.state.conversation import ConversationState
from moot.state.entries import JsonObject
from moot.state.verdict import PanelVerdict
from moot.text.tokens import TokenCounter


def assess_debate(
    state: ConversationState, config: DebateConfig, count: TokenCounter
) -> CallGenerator[Assessment]:
    """Ask the judges to assess the debate, following the rules of its protocol."""
    protocol = protocol_named(config.protocol)
    return assess(state, config, count, protocol.judged_as(state), protocol.judged_entries(state))


def _step_before_end(
    state: ConversationState, config: DebateConfig, count: TokenCounter
) -> CallGenerator[JsonObject]:
    """Run a step of the `judge` node before the debate's end.

    The debaters give their final answers, or the protocol assesses the debate so far.
    """
    protocol = protocol_named(config.protocol)
    if state["step"]["phase"] == DECIDE:
        return (yield from final_answers(state, config, protocol.deciders(state, config), count))
    if limit_reached(state, config):
        return {}  # `plan` ends the debate: a client can write the state, and run this node again
    return (yield from protocol.judge_step(state, config, count))


def judge(state: ConversationState, context: NodeContext) -> NodeBody:
    """Judge the debate and add the verdict to the state.

    A verdict that failed is stored as failed, but a usable verdict stays in its place.
    """
    config = frozen_config(state)
    count, protocol = context.env.token_counter_for(config), protocol_named(config.protocol)
    if "end_reason" not in state["step"]:
        return (yield from _step_before_end(state, config, count))
    protocol_verdict = protocol.protocol_verdict(state, config)
    result: PerspectiveResult | None = None
    if protocol_verdict is None:
        judge_state: ConversationState = {**state}
        judge_state.pop("judge_summary", None)  # belongs to an earlier verdict
        final_entries, spec = protocol.final_round(state), protocol.judged_as(state)
        if final_entries and not shows_whole(
            judge_state, config, count, spec, protocol.judged_entries(judge_state)
        ):
            result = yield from judge_summary(state, config, final_entries, count, context.env.clock())
        if result and (result.summary or result.failure):
            yield summary_event(result.summary, result.owner, result.failure)
        if result and result.summary:
            judge_state["judge_summary"] = result.summary
        assessment = yield from assess_debate(judge_state, config, count)
    else:
        assessment = Assessment([], {**protocol_verdict, "judging": next_judging(state)})
    decision = assessment.decision
    votes = protocol.vote(state, config)
    ties = [votes.tie_text()] if votes and protocol_verdict is None else []
    stages = protocol.stages(state, config)
    if stages:
        decision["stages"] = stages
        ties.append(stages_text(stages))
    if remarks := [*ties, *protocol.notes(state, config)]:
        decision["notes"] = [*decision["notes"], *remarks]
    yield Emit({"event": "verdict", "status": decision["status"], "winner": decision["winner"]})
    update: JsonObject = {"verdicts": assessment.verdicts}
    earlier_verdict: PanelVerdict | None = state.get("verdict") or None
    if decision["status"] == "ok" or earlier_verdict is None or earlier_verdict["status"] != "ok":
        update |= {"verdict": decision, "solution": decision["solution_markdown"]}
    if result and result.summary:
        update |= {"judge_summary": result.summary, "summary_versions": [version_of(result.summary)]}
    failures = [decision["error"] if decision["status"] == "failed" else "", result.failure if result else ""]
    return {**update, **errors_update(state, "judge", failures)}
